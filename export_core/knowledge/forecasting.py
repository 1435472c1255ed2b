"""The forecast of what a consumer will do with an artifact, from its bytes and from known issues; nothing is run.

A forecast has four answers: whether the consumer loads the artifact, compiles it, runs it, and gives the writer's
numbers. Each answer is `YES`, `NO`, `YES_BUT` (on a condition, or not each time) or `UNKNOWN`, with reasons. An
artifact that does not load does not run either, so an answer is never better than the answer before it.

A function that takes an artifact raises `ArtifactError` if one of the artifact's modules cannot be read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from export_core.artifact.artifact import Artifact
from export_core.artifact.audit import OF_DEVICES, WITH_XLA, only_jax, targets_of_jax
from export_core.artifact.readers import CONVERSION, LoadResult, Reader, advises_conversion, loads, without_conversion
from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple
from export_core.base.text import few
from export_core.knowledge.concerns import (
    CALL,
    About,
    concerned_operations,
    is_concerned,
    named,
    operations_of,
    prepared,
)
from export_core.knowledge.knowledge_base import Entry, entries_of
from export_core.knowledge.measured import measured, stand_ins_of
from export_core.knowledge.replaced_calls import lapack_is_replaced, why_not_replaced
from export_core.releases.names import parts_of
from export_core.releases.stable_targets import stable_targets

if TYPE_CHECKING:
    from export_core.knowledge.replaced_calls import ReleaseOfReader

YES, YES_BUT, UNKNOWN, NO = "yes", "yes, but", "unknown", "no"
_RANK = {YES: 0, YES_BUT: 1, UNKNOWN: 2, NO: 3}  # The worst answer has the highest number.

LOADS, COMPILES, RUNS, NUMBERS = range(4)
_QUESTION = {"read": LOADS, "deserialize": LOADS, "module": LOADS, "lower": COMPILES, "compile": COMPILES, "run": RUNS}
"""The first question whose answer an entry makes worse, by the entry's stage.

The last stage, `compare`, is not here: its entries are about the numbers only.
"""

_ACCEPTED = "accepted"
_OF_NUMBERS = ("numerics", "overwritten", _ACCEPTED)
"""The outcomes of entries about artifacts that run, whatever the stage in which a cell shows the fault."""

_AN_OPERATION = "An operation "
"""The beginning of the titles of entries about several operations: a forecast names those that the artifact has."""

ONE_DEVICE = "it runs artifacts for one device, and this one is for {}"
"""The reason why a runtime that is not jaxlib does not run an artifact; `{}` stands for the number of devices."""
X64, DEVICES = "jax_enable_x64", "devices"
"""The settings that stand for abilities of a jaxlib: 64-bit numbers, and as many devices as an artifact needs."""
MATRIX = (X64, DEVICES)  # The abilities that the matrix gives to each reader.


class Reason(NamedTuple):
    """A reason why a forecast does not answer a question with `YES`."""

    text: str  # What happens, or what is not known, without a full stop.
    todo: str = ""  # What to do, as a sentence; "" if there is no advice, or `text` contains it.
    entry: str = ""  # The id of the entry that gives this reason; "" if the artifact's bytes give it.
    accepts: bool = False  # Whether a call runs that the writer refuses, such as one with sizes of no allowed shape.

    def __str__(self) -> str:
        return f"{self.text} ({self.entry})" if self.entry else self.text


Found = tuple[int, str, Reason]
"""Something found about an artifact: the first question whose answer it makes worse, that answer, and the reason."""


class Answer(NamedTuple):
    """The answer to one question of a forecast, with its reasons."""

    answer: str  # One of `YES`, `YES_BUT`, `UNKNOWN` and `NO`.
    reasons: tuple[Reason, ...] = ()  # Why the answer is not `YES`: each reason alone would make it what it is.


_YES = Answer(YES)
_ALL_YES = (_YES,) * 4
_NONE_MISSING = frozenset[str]()


class Forecast:
    """The forecast of what a reader will do with an artifact on a platform."""

    # Not a NamedTuple, which takes twice as long to make: an artifact has one for each of the two hundred readers.
    __slots__ = ("_answers", "_consumer", "by_bytes")

    def __init__(self, by_bytes: LoadResult) -> None:
        self.by_bytes = by_bytes  # Whether the reader loads the artifact, as far as the artifact's bytes show it.
        self._answers: tuple[Answer, ...] = ()  # Empty until they are set or, after a refusal, asked for.
        self._consumer: _Consumer | None = None  # What answered; None for a reader that refuses the artifact's bytes.

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers to the four questions, in order: whether the reader loads, compiles and runs it, and numbers."""
        if not self._answers:  # Half of all readers, of which a command shows `by_bytes` alone.
            self._answers = (Answer(NO, tuple(map(Reason, self.by_bytes.reasons))),) * 4
        return self._answers

    @answers.setter
    def answers(self, answers: tuple[Answer, ...]) -> None:
        self._answers = answers

    @property
    def reader(self) -> Reader:
        """The reader."""
        return self.by_bytes.reader

    @property
    def loads(self) -> Answer:
        """Whether the reader loads the artifact: deserializes it, and parses its module."""
        return self.answers[LOADS]

    @property
    def compiles(self) -> Answer:
        """Whether the reader lowers and compiles the artifact."""
        return self.answers[COMPILES]

    @property
    def runs(self) -> Answer:
        """Whether a call of the artifact ends with results."""
        return self.answers[RUNS]

    @property
    def numbers(self) -> Answer:
        """Whether the results are those of the writer."""
        return self.answers[NUMBERS]

    @property
    def load(self) -> LoadResult:
        """The answer `loads` as a `LoadResult`: its `ok` is True for `YES`, False for `NO`, and None otherwise."""
        if self.by_bytes.ok is False:
            return self.by_bytes
        ok = {YES: True, NO: False}.get(self.loads.answer)
        return LoadResult(self.reader, ok, tuple(reason.text for reason in self.loads.reasons))

    @property
    def spoiled(self) -> Answer:
        """The worst of the four answers, or the first of several equally bad ones; `numbers` if all are `YES`."""
        return next(
            (each for wanted in (NO, UNKNOWN, YES_BUT) for each in self.answers if each.answer == wanted), self.numbers
        )

    @property
    def doubts(self) -> tuple[Reason, ...]:
        """The reasons of the worst answer; if that is `YES_BUT`, the reasons of all answers."""
        spoiled = self.spoiled
        return (self.numbers if spoiled.answer == YES_BUT else spoiled).reasons

    @property
    def issues(self) -> tuple[Reason, ...]:
        """The known issues that concern the artifact in this reader, including those that a worse answer hides.

        There are none if the artifact's bytes show that the reader does not load it.
        """
        consumer = self._consumer
        return tuple(reason for *_, reason in consumer.by_entries(self.reader)) if consumer else ()

    @property
    def in_words(self) -> str:
        """What the reader will do with the artifact, in a few words without reasons, such as ``does not load it``."""
        for answer, what in ((self.loads, "load"), (self.compiles, "compile"), (self.runs, "run")):
            if answer.answer == NO:
                return f"does not {what} it"
        if self.numbers.answer == NO:
            return "runs it with other numbers"
        words = {YES: "runs it", YES_BUT: "runs it, but", UNKNOWN: "may run it"}
        return words[self.runs.answer if self.numbers.answer == YES else self.numbers.answer]

    @property
    def doubt(self) -> str:
        """What may go wrong first, such as ``not compile`` or ``give other numbers``; "" if all answers are `YES`."""
        spoiled = self.spoiled
        if spoiled.answer == YES:
            return ""
        answers = {"not load": self.loads, "not compile": self.compiles, "not run": self.runs}
        accepts = all(reason.accepts for reason in spoiled.reasons)
        last = "accept what it should refuse" if accepts else "give other numbers"
        return next((what for what, answer in answers.items() if answer.answer == spoiled.answer), last)


def usual_platform(artifact: Artifact) -> str:
    """Return the default platform of an artifact: cpu if it was exported for cpu, else the first of its platforms.

    It is cpu for an artifact that names no platforms, such as a bare StableHLO module.
    """
    platforms = artifact.envelope.platforms if artifact.envelope is not None else ()
    return "cpu" if "cpu" in platforms or not platforms else platforms[0]


def forecast(artifact: Artifact, reader: Reader, platform: str = "", settings: Sequence[str] = ()) -> Forecast:
    """Return a forecast of what one reader will do with an artifact.

    Args:
        artifact: The artifact.
        reader: A jaxlib, or a release of another runtime.
        platform: The platform; "" stands for `usual_platform`.
        settings: The flags and abilities of the reader, in addition to the settings of its release.
    """
    return next(forecasts(artifact, (reader,), platform, settings))


def forecasts(
    artifact: Artifact, readers: Iterable[Reader], platform: str = "", settings: Sequence[str] = ()
) -> Iterator[Forecast]:
    """Yield a forecast for each of several readers of an artifact; the other arguments are those of `forecast`."""
    platform, about = platform or usual_platform(artifact), About(artifact)
    by_bytes = loads(artifact, readers)
    found = [*map(Forecast, by_bytes)]
    consumers: dict[tuple[str, str], _Consumer] = {}
    refused: dict[str, list[Forecast]] = {}  # What releases of each other runtime do not load.
    for known, (reader, ok, _) in zip(found, by_bytes, strict=True):
        release = reader.release
        runtime = release.runtime
        if ok is False:  # What a reader does not load, it does not run.
            if runtime:
                family = parts_of(runtime)[0]
                if family not in refused:
                    refused[family] = []
                refused[family].append(known)
            continue
        family, _, in_brackets = parts_of(runtime)
        key = family, release.with_settings or in_brackets
        if (consumer := consumers.get(key)) is None:
            of_reader = tuple(settings)
            if runtime or release.with_settings:
                of_reader = _abilities(settings, release.x64) + release.settings
            consumer = consumers[key] = _Consumer(about, family or "jaxlib", platform, of_reader)
        consumer.forecasts.append(known)
        consumer.built.append(release.built)
    for consumer in consumers.values():
        consumer.answer()
        if consumer.name != "jaxlib":
            _say_where_a_conversion_helps(artifact, consumer.forecasts, platform)
    converted = about.converted if refused else about
    for family, known_refused in refused.items():
        if (consumer := consumers.get((family, ""))) is None or consumer.about is not converted or consumer.settings:
            consumer = _Consumer(converted, family, platform, ())
        if consumer.may_refuse:
            _say_where_no_conversion_helps(artifact, known_refused, platform)
    for consumer in consumers.values():
        consumer.forecasts = []  # which refer to the consumer: a cycle would not be freed with the artifact
    return iter(found)


def _say_where_no_conversion_helps(artifact: Artifact, refused: Sequence[Forecast], platform: str) -> None:
    """Replace the advice to convert, for readers that would not run the converted artifact either, by the reason."""
    advised = [known for known in refused if advises_conversion(known.by_bytes)]
    converted = forecasts_when_converted(artifact, [known.reader for known in advised], platform)
    for known, then in zip(advised, converted, strict=True):
        if then.spoiled.answer == NO:
            why = "; ".join(map(str, then.spoiled.reasons))
            known.by_bytes = without_conversion(known.by_bytes, then.in_words, why)


def _say_where_a_conversion_helps(artifact: Artifact, loaded: Sequence[Forecast], platform: str) -> None:
    """Add the advice to convert to forecasts of readers that fail only because of the artifact's shardings.

    The readers load the artifact, and are releases of a runtime that is not jaxlib.
    """
    readers = [known.reader for known in loaded if known.spoiled.answer == NO]
    if not readers or not shardings_in_the_way(artifact, readers[0]):  # The same for all releases of a runtime.
        return
    failing = (known for known in loaded if known.spoiled.answer == NO)
    for known, then in zip(failing, forecasts_when_converted(artifact, readers, platform), strict=True):
        if then.spoiled.answer != NO:
            advice = known.reader.instead("")
            known.answers = tuple(_with_advice(each, advice) for each in known.answers)


def _with_advice(answer: Answer, advice: str) -> Answer:
    """Return an answer with advice at the end of its last reason, if the answer is `NO`."""
    if answer.answer != NO:
        return answer
    *others, last = answer.reasons
    todo = "" if CONVERSION.rstrip() in last.todo else last.todo
    return Answer(NO, (*others, last._replace(text=last.text + advice, todo=todo)))


def shardings_in_the_way(artifact: Artifact, reader: Reader) -> bool:
    """Return whether shardings keep a runtime without XLA from running an artifact, so that a conversion removes them.

    StableHLO's interpreter, for example, reads Shardy's operations and runs none, but it ignores a mesh and attributes.
    Even on one device jax writes shardings for PRNG keys: Shardy's, or the custom call `Sharding`.
    """
    if not has_removable_shardings(artifact, reader):
        return False
    if not reader.knows_shardy or any(call.target == "Sharding" for call in artifact.custom_calls):
        return True
    return any(name.startswith("sdy.") and name != "sdy.mesh" for name in About(artifact).operations)


def has_removable_shardings(artifact: Artifact, reader: Reader) -> bool:
    """Return whether an artifact has shardings that a conversion for a runtime without XLA removes."""
    if not reader.release.runtime or reader.release.family in WITH_XLA:
        return False
    has_calls = any(call.target == "Sharding" for call in artifact.custom_calls)
    return has_calls or any("sdy" in module.dialects for module in artifact.modules)


def conversion_may_help(
    forecast_text: str, release: ReleaseOfReader, targets: Iterable[str], allow: Collection[str] = ()
) -> bool:
    """Return whether converting an artifact that failed in a reader may make it work there.

    It may not if the reader was expected to run the artifact. If the forecast says that another runtime does not run
    it, the forecast has to advise a conversion; if that runtime compiles with XLA, what only jax registers must be
    replaceable instead. For a jaxlib, the calls of LAPACK that it does not run must be replaceable.

    Args:
        forecast_text: The forecast's answer with its reasons, as in a result; "" if no forecast was made.
        release: The release of the reader.
        targets: The targets of the artifact's custom calls.
        allow: The targets that the project accepts.
    """
    answer, _, reasons = forecast_text.partition(": ")
    if release.runtime and answer == NO:
        calls = [target for target in targets_of_jax(targets) if target not in allow]
        if calls and release.family in WITH_XLA:
            return not why_not_replaced(calls, release)
        return CONVERSION in reasons
    return answer not in (YES, YES_BUT) and (bool(release.runtime) or lapack_is_replaced(targets, release, allow))


def forecasts_when_converted(artifact: Artifact, readers: Sequence[Reader], platform: str = "") -> list[Forecast]:
    """Return a forecast of what each of these readers would do with the artifact after a conversion for it.

    The readers must be releases of runtimes other than jaxlib. The converted artifact is assumed to load in them.
    """
    about = About(artifact).converted
    found = [Forecast(LoadResult(reader, True, ())) for reader in readers]
    consumers: dict[str, _Consumer] = {}
    for known in found:
        release = known.reader.release
        name = release.family
        consumer = consumers.setdefault(name, _Consumer(about, name, platform or usual_platform(artifact), ()))
        consumer.forecasts.append(known)
        consumer.built.append(release.built)
    for consumer in consumers.values():
        consumer.answer()
    return found


class _Kind(NamedTuple):
    """All properties of a release that decide its answers about an artifact; equal kinds have equal answers."""

    era: int  # How many of `_Consumer.dates` are not after its build date; -1 if that date is not known.
    missing: frozenset[str]  # The custom-call targets of the artifact that a jaxlib does not promise to have.
    stand_ins: int  # The measured releases that stand in for one of another runtime; 0 if they ran all operations.
    ok: bool | None  # Whether the release loads the artifact; None if that cannot be known.
    reasons: tuple[str, ...]  # Why that is not known.


class _Unmeasured(NamedTuple):
    """The parts of an artifact that releases of a runtime did not run when they were measured, as texts."""

    calls: str = ""  # The targets of the custom calls that failed.
    failed: str = ""  # The operations, with element types, that failed in each program.
    partly: str = ""  # The operations that passed in some forms only.
    unseen: str = ""  # The operations and custom calls of which nothing is known.


class _Consumer:
    """The forecasts of one artifact for the releases of one consumer, such as jaxlib or IREE, and what decides them.

    They are for one platform, and for readers with these settings.
    """

    def __init__(self, about: About, name: str, platform: str, settings: tuple[str, ...]):
        self.about = about
        self.name = name
        self.platform = platform
        self.settings = settings
        self.forecasts: list[Forecast] = []  # Those for its releases that may load the artifact.
        self.built: list[str] = []  # The build date of the release of each of `forecasts`.
        self._unmeasured: dict[int, _Unmeasured] = {}  # What `unmeasured` returned.
        # None for a jaxlib, in which operations are not measured one by one.
        self.table = None if name == "jaxlib" else measured().get(name)

    @cached_property
    def needed(self) -> Mapping[str, frozenset[str]]:
        """The operations of the artifact, with their element types, that a release must be able to run."""
        if self.name == "pjrt":  # Its compiler is that of its jaxlib, so that only custom calls count.
            return {CALL: self.about.calls} if self.about.calls else {}
        return self.about.uses

    @cached_property
    def ran_all(self) -> int:
        """The set of measured releases that ran all of `needed`, as bits."""
        return self.table.ran_all(self.needed) if self.table is not None else 0

    def unmeasured(self, stand_ins: int) -> _Unmeasured:
        """Return the parts of the artifact that the measured releases in `stand_ins` did not run."""
        if (known := self._unmeasured.get(stand_ins)) is None and self.table is not None:
            if self.table.is_outside(stand_ins) and self.needed is self.about.uses:
                known = self._unmeasured[stand_ins] = _Unmeasured(unseen=self.about.few_uses)
                return known
            left = self.table.unseen(self.needed, stand_ins)
            calls = failed = ""
            of_calls: list[str] = []
            failing = self.table.failing(left, stand_ins)
            if failing or CALL in left:
                left = {name: types - failing.get(name, frozenset()) for name, types in left.items()}
                unpromised = () if self.about.has_branches else self.about.calls_of_devices
                denied = {*self.about.calls_of_jax, *unpromised}
                calls = ", ".join(sorted(failing.pop(CALL, frozenset()) - denied))
                of_calls = [f"custom call {target}" for target in sorted(left.pop(CALL, frozenset()) - denied)]
                failed = few(named(failing))
            partly = few(self.table.in_some_forms(self.needed, stand_ins))
            known = self._unmeasured[stand_ins] = _Unmeasured(calls, failed, partly, few([*named(left), *of_calls]))
        return known or _Unmeasured()

    @cached_property
    def entries(self) -> list[Entry]:
        """The entries of the knowledge base that match the artifact, and may hold for one of the releases."""
        first, last = min(self.built), max(self.built)  # The first is "" if a date is not known.
        known = self.about.concerned
        found: list[Entry] = []  # Not `list[Entry]()`, which takes 1 µs.
        for entry in self.asked:
            if first and ((entry.since and last < entry.since) or (entry.mended and first >= entry.mended)):
                continue
            if (holds := known.get(entry.id)) is None:
                holds = self._is_concerned(entry)
            if holds:
                found.append(entry)
        return found

    @property
    def asked(self) -> list[Entry]:
        """The consumer's entries for its platform and settings, except those for operations that the artifact lacks."""
        known, key = self.about.asked, (self.name, self.platform, self.settings)
        if (entries := known.get(key)) is None:
            operations = self.about.operations
            entries = known[key] = [
                entry for entry, needed in _asked(*key) if not needed or not needed.isdisjoint(operations)
            ]
        return entries

    def _is_concerned(self, entry: Entry) -> bool:
        """Return whether an entry of the knowledge base matches the artifact; the answer is cached."""
        if (known := self.about.concerned.get(entry.id)) is None:
            known = self.about.concerned[entry.id] = is_concerned(self.about, entry.concerns)
        return known

    @property
    def may_refuse(self) -> bool:
        """Whether there is any known reason why some release of the runtime may fail with the artifact."""
        return bool(
            not self.about.is_plain
            or any(map(self._is_concerned, self.asked))
            or (self.table is not None and self.table.may_fail(self.needed))
        )

    @cached_property
    def dates(self) -> list[str]:
        """The build dates from which one of `entries` begins to hold, or no longer holds, sorted."""
        entries = self.entries  # Most artifacts have none.
        return sorted({date for entry in entries for date in (entry.since, entry.mended) if date}) if entries else []

    def answer(self) -> None:
        """Set the answers of all `forecasts`; they are computed once for releases with the same properties."""
        # By the fields of a `_Kind`, which costs more to make.
        found: dict[tuple[object, ...], tuple[Answer, ...]] = {}
        last: tuple[object, ...] = ()
        answers: tuple[Answer, ...] = ()
        dates, table = self.dates, self.table
        missing, stand_ins = _NONE_MISSING, 0
        called = _NONE_MISSING if table is not None else self.about.looked_up(self.platform)
        not_ran = ~self.ran_all
        for known, built in zip(self.forecasts, self.built, strict=True):
            reader, ok, reasons = known.by_bytes
            if table is not None:
                stand_ins = stand_ins_of(reader.release.runtime)
                if not stand_ins & not_ran:
                    stand_ins = 0
            elif called and not reader.release.runtime:
                missing = called - stable_targets(reader.release.jax)
            era = -1 if not built else bisect_right(dates, built) if dates else 0
            alike = (era, missing, stand_ins, ok, reasons)
            if alike != last:  # Neighbours are mostly alike.
                last = alike
                answers = found.get(alike) or found.setdefault(alike, self._answers(_Kind(*alike), reader))
            known._answers = answers  # The setter would take as long as all else that happens to a reader.
            known._consumer = self

    def _answers(self, kind: _Kind, reader: Reader) -> tuple[Answer, ...]:
        """Return the four answers of the forecasts for all releases of a kind; `reader` is any one of these."""
        if self.table is not None and self.about.is_plain and not (kind.stand_ins or kind.reasons or self.entries):
            return _ALL_YES  # Most runtimes, and nothing below would be found.
        facts = [(LOADS, YES if kind.ok else UNKNOWN, Reason(text)) for text in kind.reasons]
        facts += self._by_bytes(kind, reader)
        facts += self.by_entries(reader)
        facts += self._by_failures(kind)  # after the entries, which say what to do
        return _answers(facts)

    def by_entries(self, reader: Reader) -> Iterator[Found]:
        """Yield the findings of those entries of the knowledge base that hold for a reader, by its build date."""
        for entry in self.entries:
            if _holds_for(entry, reader.release.built):
                yield from _by_entry(entry, self.about, reader)

    def _by_failures(self, kind: _Kind) -> Iterator[Found]:
        """Yield that the artifact will not run, if it has operations with which releases of this kind always failed.

        They failed in every program with these operations that was run to measure the runtime.
        """
        if kind.stand_ins and (failed := self.unmeasured(kind.stand_ins).failed):
            reason = Reason(f"this release failed in each program with {failed} that was run")
            if self.name != "stablehlo":  # The interpreter compiles nothing.
                yield COMPILES, UNKNOWN, reason  # The programs failed there or when they were called.
            yield RUNS, NO, reason

    def _by_bytes(self, kind: _Kind, reader: Reader) -> Iterator[Found]:
        """Yield the findings from the artifact's bytes about whether a reader compiles and runs it."""
        about, platform = self.about, self.platform
        artifact = about.artifact
        envelope, devices = artifact.envelope, about.devices
        if reader.release.runtime:
            builds = RUNS if reader.release.family == "stablehlo" else COMPILES  # The interpreter compiles nothing.
            if targets := about.calls_of_jax:
                yield builds, NO, Reason(only_jax(targets))
            if (targets := about.calls_of_devices) and not about.has_branches:
                yield builds, NO, Reason(OF_DEVICES.format(", ".join(targets)))
            if devices > 1:
                yield RUNS, NO, Reason(ONE_DEVICE.format(devices))
            calls, _, partly, unseen = self.unmeasured(kind.stand_ins) if kind.stand_ins else _Unmeasured()
            if calls:
                yield builds, NO, Reason(f"this release has no custom call {calls}")
            if partly:
                yield COMPILES, YES_BUT, Reason(f"this release takes {partly} in some forms only")
            if unseen:
                text = f"no run of {unseen} in this release is known"
                yield builds, UNKNOWN, Reason(text, "`jaxexport matrix` runs it.")
            for call in artifact.saved_model.calls if artifact.saved_model is not None else ():
                if not call.runs_on_cpu:
                    yield RUNS, NO, Reason(f"{call.title} is for {', '.join(call.platforms)}, and not for a CPU")
            return
        is_lifted = envelope is not None and any(check.kind == "platform" for check in envelope.disabled_checks)
        if envelope is not None and platform not in envelope.platforms and not is_lifted:
            yield COMPILES, NO, Reason(f"it was exported for {', '.join(envelope.platforms)}, and not for {platform}")
        elif envelope is not None and not about.has_branches and (foreign := about.calls_of_others(platform)):
            yield COMPILES, NO, Reason(f"it calls {', '.join(sorted(foreign))}, which {platform} does not have")
        if artifact.unread:
            yield COMPILES, UNKNOWN, Reason("parts of it are not read")
        if kind.missing:
            calls = ", ".join(sorted(kind.missing))
            # Unknown on an accelerator, as everything is there, so that this reason is shown.
            answer = YES_BUT if platform == "cpu" else UNKNOWN
            yield COMPILES, answer, Reason(f"it calls {calls}, which this reader does not promise to have")
        if platform != "cpu":
            todo = f"`jaxexport matrix --platforms {platform}:compile` compiles it, without a device."
            yield COMPILES, UNKNOWN, Reason(f"nothing is known of {platform}", todo)
        if devices > artifact.devices:  # such as a shard_map over an AbstractMesh
            need = f"it needs {devices} devices, and its envelope has {artifact.devices}"
            yield COMPILES, YES_BUT, Reason(f"{need}: pass arguments on a mesh of {devices} devices")
        elif devices > 1 and DEVICES not in self.settings:
            yield RUNS, YES_BUT, Reason(f"it needs {devices} devices")


@lru_cache(maxsize=64)
def _asked(name: str, platform: str, settings: tuple[str, ...]) -> tuple[tuple[Entry, frozenset[str]], ...]:
    """Return a consumer's entries for a platform and settings, each with the result of `operations_of`.

    An artifact without any of these operations cannot match the entry.
    """
    return tuple(
        (entry._replace(concerns=prepared(entry.concerns)), operations_of(entry.concerns))
        for entry in entries_of(name)
        if entry.holds_with(platform, settings)
    )


def _holds_for(entry: Entry, built: str) -> bool:
    """Return whether a release has the fault of an entry by its build date; True if the date is not known."""
    return not built or entry.holds_for(built)


def _abilities(settings: Sequence[str], x64: bool | None) -> tuple[str, ...]:
    """Return the settings of a reader with the ability of 64-bit numbers if `x64` is True, without if it is False.

    `x64` is what the settings of the release itself turn on or off. If it is None, `settings` are unchanged.
    """
    if x64 is None:
        return tuple(settings)
    return (*(setting for setting in settings if setting != X64), *([X64] if x64 else []))


def _answers(found: Sequence[Found]) -> tuple[Answer, ...]:
    """Return the four answers of a forecast, from everything that was found about an artifact.

    Each answer is the worst one found about its question or an earlier question, with all reasons for it.
    """
    if not found:
        return _ALL_YES
    answers = []
    last, worst = _YES, YES
    reasons: list[Reason] = []
    for question in range(4):
        is_new = False
        for of, answer, reason in found:
            if of == question:
                if _RANK[answer] > _RANK[worst]:
                    worst, reasons = answer, []
                if answer == worst and reason not in reasons:
                    reasons.append(reason)
                    is_new = True
        if is_new:
            last = Answer(worst, tuple(reasons))
        answers.append(last)
    return tuple(answers)


def _by_entry(entry: Entry, about: About, reader: Reader) -> Iterator[Found]:
    """Yield the finding of an entry that matches the artifact and holds for the reader.

    Nothing is yielded if the entry is only about artifacts of older writers.
    """
    question = NUMBERS if entry.outcome in _OF_NUMBERS else _QUESTION.get(entry.stage, NUMBERS)
    title = entry.title
    if title.startswith(_AN_OPERATION) and (which := concerned_operations(about, entry.concerns)):
        title = f"{title}: {few(which)}"
    reason = Reason(title, entry.todo, entry.id, entry.outcome == _ACCEPTED)
    if not reader.release.built:
        yield question, UNKNOWN, reason
        return
    writers = _written_before(entry, about)
    if writers != NO:
        # An operation may be in another platform's branch; a custom call of this platform is in its own branch.
        may_be_elsewhere = entry.platforms and "calls" not in entry.concerns and about.has_branches
        is_sure = entry.is_sure and writers == YES and (reader.release.runtime or not may_be_elsewhere)
        yield question, NO if is_sure else YES_BUT, reason


def _written_before(entry: Entry, about: About) -> str:
    """Return whether the artifact's writer is old enough to be one of those that an entry is about: `YES` or `NO`.

    Return `YES_BUT` if only some of the artifact's possible writers are.
    """
    if not entry.written_before:
        return YES
    from export_core.artifact.writers import find_writer
    from export_core.releases.calendar_entries import shipped_entries

    releases = shipped_entries()
    possible = {*find_writer(about.artifact, releases).possible}
    are = {release.built < entry.written_before for release in releases if release.jaxlib in possible}
    return YES if are == {True} else YES_BUT if True in are else NO

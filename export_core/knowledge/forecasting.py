"""The forecast of what a consumer will do with an artifact, from its bytes and from known issues; nothing is run.

A forecast has four answers: whether the consumer loads the artifact, compiles it, runs it, and gives the writer's
numbers. Each answer is `YES`, `NO`, `YES_BUT` (on a condition, or not each time) or `UNKNOWN`, with reasons. An
artifact that does not load does not run either, so an answer is never better than the answer before it.

A function that takes an artifact raises `ArtifactError` if one of the artifact's modules cannot be read.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from export_core.artifact.artifact import Artifact
from export_core.artifact.audit import ONLY_JAX
from export_core.artifact.readers import LoadResult, Reader, loads
from export_core.base.text import few
from export_core.knowledge.concerns import CALL, About, Unmeasured
from export_core.knowledge.knowledge_base import Entry, entries_of
from export_core.knowledge.measured import Measured, measured
from export_core.releases.stable_targets import stable_targets

YES, YES_BUT, UNKNOWN, NO = "yes", "yes, but", "unknown", "no"
_FROM_BEST = (YES, YES_BUT, UNKNOWN, NO)

LOADS, COMPILES, RUNS, NUMBERS = range(4)
_QUESTION = {"read": LOADS, "deserialize": LOADS, "module": LOADS, "lower": COMPILES, "compile": COMPILES, "run": RUNS}
"""The first question whose answer an entry makes worse, by the entry's stage.

The last stage, `compare`, is not here: its entries are about the numbers only.
"""

ONE_DEVICE = "it runs artifacts for one device, and this one is for {}"
"""The reason why a runtime that is not jaxlib does not run an artifact; `{}` stands for the number of devices."""
X64, DEVICES = "jax_enable_x64", "devices"
"""The settings that stand for abilities of a jaxlib: 64-bit numbers, and as many devices as an artifact needs."""
MATRIX = (X64, DEVICES)  # The abilities that the matrix gives to each reader.


class Reason(NamedTuple):
    """A reason why an answer is not `YES`."""

    text: str  # What happens, or what is not known, without a full stop.
    todo: str = ""  # What to do, as a sentence; "" if there is no advice, or `text` contains it.
    entry: str = ""  # The id of the entry that gives this reason; "" if the artifact's bytes give it.

    def __str__(self) -> str:
        return f"{self.text} ({self.entry})" if self.entry else self.text


class Answer(NamedTuple):
    """The answer to one question of a forecast, with its reasons."""

    answer: str  # One of `YES`, `YES_BUT`, `UNKNOWN` and `NO`.
    reasons: tuple[Reason, ...] = ()  # Why the answer is not `YES`: each reason alone would make it what it is.


class Forecast(NamedTuple):
    """The forecast of what a reader will do with an artifact on a platform."""

    reader: Reader  # The reader.
    platform: str  # The platform.
    loads: Answer  # Whether the reader loads the artifact: deserializes it, and parses its module.
    compiles: Answer  # Whether the reader lowers and compiles the artifact.
    runs: Answer  # Whether a call of the artifact ends with results.
    numbers: Answer  # Whether the results are those of the writer.

    @property
    def load(self) -> LoadResult:
        """The answer `loads` as a `LoadResult`: its `ok` is True for `YES`, False for `NO`, and None otherwise."""
        ok = {YES: True, NO: False}.get(self.loads.answer)
        return LoadResult(self.reader, ok, tuple(reason.text for reason in self.loads.reasons))

    @property
    def spoiled(self) -> Answer:
        """The first answer that is `NO`, else the first `UNKNOWN`, else the first `YES_BUT`, else `numbers`."""
        answers = self.loads, self.compiles, self.runs, self.numbers
        return next(
            (each for wanted in (NO, UNKNOWN, YES_BUT) for each in answers if each.answer == wanted), self.numbers
        )

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
        """What the reasons of `spoiled` are about, such as ``not compile``; "" if its answer is `YES`."""
        spoiled = self.spoiled
        if spoiled.answer == YES:
            return ""
        whats = {"not load": self.loads, "not compile": self.compiles, "not run": self.runs}
        return next((what for what, answer in whats.items() if answer.answer == spoiled.answer), "give other numbers")


def usual_platform(artifact: Artifact) -> str:
    """Return the platform that is meant if none is named: cpu if the artifact is for cpu, else its first platform.

    An artifact that names no platforms, such as a bare StableHLO module, counts as one for cpu.
    """
    platforms = artifact.envelope.platforms if artifact.envelope is not None else ()
    return "cpu" if "cpu" in platforms or not platforms else platforms[0]


def forecast(artifact: Artifact, reader: Reader, platform: str = "", settings: Sequence[str] = ()) -> Forecast:
    """Return what one reader will do with an artifact.

    Args:
        artifact: The artifact.
        reader: A jaxlib, or a release of another runtime.
        platform: The platform; "" stands for `usual_platform`.
        settings: The flags and abilities of the reader, in addition to the settings of its release.
    """
    return next(forecasts(artifact, (reader,), platform, settings))


_ALL = (Answer(YES),) * 4  # The answers for most readers, of which no fault is known.


def forecasts(
    artifact: Artifact, readers: Iterable[Reader], platform: str = "", settings: Sequence[str] = ()
) -> Iterator[Forecast]:
    """Yield what each of several readers will do with an artifact. The other arguments are those of `forecast`."""
    platform, about = platform or usual_platform(artifact), About(artifact)
    for load in loads(artifact, readers):
        if load.ok is False:  # what it does not load, it does not run
            no = Answer(NO, tuple(dict.fromkeys(map(Reason, load.reasons))))
            yield Forecast(load.reader, platform, no, no, no, no)
            continue
        release = load.reader.release
        own_settings = _abilities(settings, release.x64) + release.settings
        found: list[list[tuple[str, Reason]]] = [[], [], [], []]
        found[LOADS] += [(YES if load.ok else UNKNOWN, Reason(text)) for text in load.reasons]
        for question, answer, reason in _by_bytes(about, load.reader, platform, own_settings):
            found[question].append((answer, reason))
        for entry in entries_of(release.family or "jaxlib"):
            if about.is_known_foreign(entry):  # as most are: 100 readers do not look at its dates again
                continue
            for question, answer, reason in _by_entry(entry, about, load.reader, platform, own_settings):
                found[question].append((answer, reason))
        yield Forecast(load.reader, platform, *(_answers(found) if any(found) else _ALL))


def _abilities(settings: Sequence[str], x64: bool | None) -> tuple[str, ...]:
    """Return `settings` with `X64` if `x64` is True, without `X64` if it is False, and unchanged if it is None.

    `x64` is True if the settings of the release itself turn 64-bit numbers on, False if they turn them off, else None.
    """
    if x64 is None:
        return tuple(settings)
    return (*(setting for setting in settings if setting != X64), *([X64] if x64 else []))


def _answers(found: Sequence[Sequence[tuple[str, Reason]]]) -> Iterator[Answer]:
    """Yield the four answers of a forecast, in the order of the questions.

    `found` has an answer and its reason for each thing found about each question. The worst of all found about a
    question and the questions before it is its answer, with all reasons for that answer.
    """
    before: list[tuple[str, Reason]] = []
    for own in found:
        before += own
        worst = max((answer for answer, _ in before), key=_FROM_BEST.index, default=YES)
        yield Answer(worst, tuple(dict.fromkeys(reason for answer, reason in before if answer == worst)))


def _by_bytes(
    about: About, reader: Reader, platform: str, settings: tuple[str, ...]
) -> Iterator[tuple[int, str, Reason]]:
    """Yield what the artifact's bytes show, apart from whether the reader loads it.

    Each fact is yielded as the first question whose answer it makes worse, that answer, and the reason.
    """
    artifact = about.artifact
    envelope, devices = artifact.envelope, about.devices
    if reader.release.runtime:
        builds = RUNS if reader.release.family == "stablehlo" else COMPILES  # The interpreter compiles nothing.
        if targets := about.calls_of_jax:
            yield builds, NO, Reason(ONLY_JAX.format(", ".join(targets)))
        if devices > 1:
            yield RUNS, NO, Reason(ONE_DEVICE.format(devices))
        if of := measured().get(reader.release.family):
            places = of.places(reader.release.version)
            if (known := about.measured.get((reader.release.family, places))) is None:
                known = about.measured[reader.release.family, places] = _unmeasured(about, of, places)
            if known.calls:
                yield builds, NO, Reason(f"{reader.release.title} has no custom call {known.calls}")
            if known.partly:
                yield COMPILES, YES_BUT, Reason(f"{reader.release.title} takes {known.partly} in some forms only")
            # The compiler of pjrt is that of its jaxlib, whose operations were not measured one by one.
            if known.unseen and reader.release.family != "pjrt":
                text = f"no run of {known.unseen} in {reader.release.title} is known"
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
    called = about.looked_up(platform)
    if called and (missing := sorted(called - stable_targets(reader.release.jax))):
        calls = ", ".join(missing)
        # Unknown on an accelerator, as everything is there, so that this reason is shown.
        answer = YES_BUT if platform == "cpu" else UNKNOWN
        yield COMPILES, answer, Reason(f"it calls {calls}, which this reader does not promise to have")
    if platform != "cpu":
        todo = f"`jaxexport matrix --platforms {platform}:compile` compiles it, without a device."
        yield COMPILES, UNKNOWN, Reason(f"nothing is known of {platform}", todo)
    if devices > artifact.devices:  # such as a shard_map over an AbstractMesh
        need = f"it needs {devices} devices, and its envelope has {artifact.devices}"
        yield COMPILES, YES_BUT, Reason(f"{need}: pass arguments on a mesh of {devices} devices")
    elif devices > 1 and DEVICES not in settings:
        yield RUNS, YES_BUT, Reason(f"it needs {devices} devices")


def _unmeasured(about: About, measured_in: Measured, places: frozenset[int]) -> Unmeasured:
    """Return what an artifact uses that the releases at `places` in `measured_in` were not seen to run."""
    unseen = measured_in.unseen(about.uses, places)
    calls = sorted(about.calls & unseen.pop(CALL, frozenset()) - {*about.calls_of_jax})
    names = [f"{name}{f' of {of}' if of else ''}" for name, types in unseen.items() for of in sorted(types)]
    return Unmeasured(", ".join(calls), few(measured_in.in_some_forms(about.uses, places)), few(names))


def _by_entry(
    entry: Entry, about: About, reader: Reader, platform: str, settings: tuple[str, ...]
) -> Iterator[tuple[int, str, Reason]]:
    """Yield the first question whose answer an entry makes worse, that answer, and the reason.

    Nothing is yielded if the entry does not apply to the artifact, the reader, the platform and the settings.
    """
    # Whether a release without a build date has the fault of an entry is not known.
    built = reader.release.built
    if not entry.holds_for(built or entry.since or "0", platform, settings) or not about.is_concerned(entry):
        return
    question = NUMBERS if entry.outcome in ("numerics", "overwritten") else _QUESTION.get(entry.stage, NUMBERS)
    reason = Reason(entry.title, entry.todo, entry.id)
    if not built:
        yield question, UNKNOWN, reason
        return
    writers = _written_before(entry, about)
    if writers != NO:
        # An operation may be in another platform's branch; a custom call of this platform is in its own branch.
        may_be_elsewhere = entry.platforms and "calls" not in entry.concerns and about.has_branches
        is_sure = entry.is_sure and writers == YES and (reader.release.runtime or not may_be_elsewhere)
        yield question, NO if is_sure else YES_BUT, reason


def _written_before(entry: Entry, about: About) -> str:
    """Return whether the writer of the artifact is one of those that an entry is about: `YES` or `NO`.

    `YES_BUT` means that this holds for some of the artifact's possible writers only.
    """
    if not entry.written_before:
        return YES
    from export_core.artifact.writers import find_writer
    from export_core.releases.calendar_entries import shipped_entries

    releases = shipped_entries()
    possible = {*find_writer(about.artifact, releases).possible}
    are = {release.built < entry.written_before for release in releases if release.jaxlib in possible}
    return YES if are == {True} else YES_BUT if True in are else NO

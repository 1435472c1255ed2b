"""The forecast of what a consumer will do with an artifact, from its bytes and from known issues; nothing is run.

Four answers: does it load the artifact, compile it, run it, and give its writer's numbers. Each is `YES`, `NO`,
`YES_BUT` (on a condition, or not each time) or `UNKNOWN`, with reasons. What does not load does not run, so that an
answer is never better than the one before it.

Whatever takes an artifact raises `ArtifactError` where a module of it cannot be read.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from export_core.artifact.artifact import Artifact
from export_core.artifact.audit import ONLY_JAX
from export_core.artifact.readers import LoadResult, Reader, loads
from export_core.base.text import few
from export_core.knowledge.concerns import CALL, About
from export_core.knowledge.knowledge_base import Entry, entries_of
from export_core.knowledge.measured import measured
from export_core.releases.stable_targets import stable_targets

YES, YES_BUT, UNKNOWN, NO = "yes", "yes, but", "unknown", "no"
_FROM_BEST = (YES, YES_BUT, UNKNOWN, NO)

LOADS, COMPILES, RUNS, NUMBERS = range(4)
_QUESTION = {"read": LOADS, "deserialize": LOADS, "module": LOADS, "lower": COMPILES, "compile": COMPILES, "run": RUNS}
"""The first question whose answer an entry spoils, by its stage.

Of the last stage, `compare`, only the numbers.
"""

ONE_DEVICE = "it runs artifacts for one device, and this one is for {}"
"""The sentence about another runtime than jaxlib, with the number of devices."""
X64, DEVICES = "jax_enable_x64", "devices"
"""The abilities of a reader of jaxlib: 64-bit numbers, and as many devices as an artifact needs."""
MATRIX = (X64, DEVICES)  # The abilities of a reader in a matrix.


class Reason(NamedTuple):
    """A reason why an answer is not yes."""

    text: str  # What happens, or what is not known, without a full stop.
    todo: str = ""  # What to do, a sentence; empty where the text says it.
    entry: str = ""  # The id of the entry that shows it; empty where the bytes of the artifact do.

    def __str__(self) -> str:
        return f"{self.text} ({self.entry})" if self.entry else self.text


class Answer(NamedTuple):
    """An answer with its reasons, of which the first decides."""

    answer: str  # One of `YES`, `YES_BUT`, `UNKNOWN` and `NO`.
    reasons: tuple[Reason, ...] = ()  # Why it is not `YES`.


class Forecast(NamedTuple):
    """The forecast of what a reader will do with an artifact on a platform."""

    reader: Reader  # The reader.
    platform: str  # The platform.
    loads: Answer  # Whether it loads the artifact: deserializes it, and parses its module.
    compiles: Answer  # Whether it lowers and compiles it.
    runs: Answer  # Whether a call ends with results.
    numbers: Answer  # Whether the results are those of the writer.

    @property
    def load(self) -> LoadResult:
        """Whether it loads the artifact, as true, false or None where that is not known, and why not."""
        ok = {YES: True, NO: False}.get(self.loads.answer)
        return LoadResult(self.reader, ok, tuple(reason.text for reason in self.loads.reasons))

    @property
    def spoiled(self) -> Answer:
        """The first answer that is no, else the first that is unknown or has a condition, else the last."""
        answers = self.loads, self.compiles, self.runs, self.numbers
        return next(
            (each for wanted in (NO, UNKNOWN, YES_BUT) for each in answers if each.answer == wanted), self.numbers
        )

    @property
    def in_words(self) -> str:
        """What it will do, in a few words and without reasons."""
        for answer, what in ((self.loads, "load"), (self.compiles, "compile"), (self.runs, "run")):
            if answer.answer == NO:
                return f"does not {what} it"
        if self.numbers.answer == NO:
            return "runs it with other numbers"
        words = {YES: "runs it", YES_BUT: "runs it, but", UNKNOWN: "may run it"}
        return words[self.runs.answer if self.numbers.answer == YES else self.numbers.answer]


def usual_platform(artifact: Artifact) -> str:
    """Return the platform that is meant where none is named: the CPU if the artifact is for it, else its first one."""
    platforms = artifact.envelope.platforms if artifact.envelope is not None else ()
    return "cpu" if "cpu" in platforms or not platforms else platforms[0]


def forecast(artifact: Artifact, reader: Reader, platform: str = "", settings: Sequence[str] = ()) -> Forecast:
    """Return what one reader will do with an artifact.

    Args:
        artifact: The artifact.
        reader: A jaxlib, or a release of another runtime.
        platform: The platform; without one, `usual_platform`.
        settings: The reader's flags, beside its defaults.
    """
    return next(forecasts(artifact, (reader,), platform, settings))


_ALL = (Answer(YES),) * 4  # No fault is known of most readers.


def forecasts(
    artifact: Artifact, readers: Iterable[Reader], platform: str = "", settings: Sequence[str] = ()
) -> Iterator[Forecast]:
    """Yield what each of these readers will do with an artifact, as `forecast` does."""
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
            for question, answer, reason in _by_entry(entry, about, load.reader, platform, own_settings):
                found[question].append((answer, reason))
        yield Forecast(load.reader, platform, *(_answers(found) if any(found) else _ALL))


def _abilities(settings: Sequence[str], x64: bool | None) -> tuple[str, ...]:
    """Return the flags of a reader, of which its own settings may turn 64-bit numbers on or off."""
    if x64 is None:
        return tuple(settings)
    return (*(setting for setting in settings if setting != X64), *([X64] if x64 else []))


def _answers(found: Sequence[Sequence[tuple[str, Reason]]]) -> Iterator[Answer]:
    """Yield the four answers, each with the reasons of those before it that are as bad."""
    before: list[tuple[str, Reason]] = []
    for own in found:
        before += own
        worst = max((answer for answer, _ in before), key=_FROM_BEST.index, default=YES)
        yield Answer(worst, tuple(dict.fromkeys(reason for answer, reason in before if answer == worst)))


def _by_bytes(
    about: About, reader: Reader, platform: str, settings: tuple[str, ...]
) -> Iterator[tuple[int, str, Reason]]:
    """Yield what the bytes show beside whether it loads, each with the first question whose answer it spoils."""
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
                known = of.unseen(about.uses, places), of.in_some_forms(about.uses, places)
                about.measured[reader.release.family, places] = known
            unseen, some = {**known[0]}, known[1]
            if lacking := sorted(about.calls & unseen.pop(CALL, frozenset()) - {*targets}):
                yield builds, NO, Reason(f"{reader.release.title} has no custom call {', '.join(lacking)}")
            if some:
                yield COMPILES, YES_BUT, Reason(f"{reader.release.title} takes {few(some)} in some forms only")
            # The compiler of pjrt is that of its jaxlib, whose operations were not measured one by one.
            if unseen and reader.release.family != "pjrt":
                names = [f"{name}{f' of {of}' if of else ''}" for name, types in unseen.items() for of in sorted(types)]
                yield (
                    builds,
                    UNKNOWN,
                    Reason(f"no run of {few(names)} in {reader.release.title} is known", "`jaxexport matrix` runs it."),
                )
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
        need = f"it needs {devices} devices, and its envelope has {artifact.devices}: pass arguments on such a mesh"
        yield COMPILES, YES_BUT, Reason(need)
    elif devices > 1 and DEVICES not in settings:
        yield RUNS, YES_BUT, Reason(f"it needs {devices} devices")


def _by_entry(
    entry: Entry, about: About, reader: Reader, platform: str, settings: tuple[str, ...]
) -> Iterator[tuple[int, str, Reason]]:
    """Yield the reason of an entry that concerns an artifact, with the first question whose answer it spoils."""
    # A release outside the calendar may or may not have it.
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
        # Operations may be in another platform's branch; the calls of a platform are in its own.
        may_be_elsewhere = entry.platforms and "calls" not in entry.concerns and about.has_branches
        is_sure = entry.is_sure and writers == YES and (reader.release.runtime or not may_be_elsewhere)
        yield question, NO if is_sure else YES_BUT, reason


def _written_before(entry: Entry, about: About) -> str:
    """Return whether an artifact is by a writer of an entry.

    `YES_BUT` means that only some of the possible writers are.
    """
    if not entry.written_before:
        return YES
    from export_core.artifact.writers import find_writer
    from export_core.releases.calendar_entries import shipped_entries

    releases = shipped_entries()
    possible = {*find_writer(about.artifact, releases).possible}
    are = {release.built < entry.written_before for release in releases if release.jaxlib in possible}
    return YES if are == {True} else YES_BUT if True in are else NO

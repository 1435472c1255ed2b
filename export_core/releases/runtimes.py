"""The runtimes that read artifacts and are not jaxlib: their releases, their promises, and what they need to run.

A runtime is a YAML file and a worker half beside it. An entry point of the group `jaxexport.runtimes` names a function
without arguments that returns its `Runtime`. Six runtimes ship in export_core.runtimes.
"""

import datetime
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from export_core.base.errors import Problem
from export_core.base.patterns import problem_of_pattern
from export_core.base.text import did_you_mean
from export_core.releases.calendar import (
    Calendar,
    Release,
    RuntimeRelease,
    commas_missing,
    similar_release,
    version_key,
)
from export_core.releases.errors import ReleaseError
from export_core.releases.names import Titled, parts_of
from export_core.releases.windows import Promise, Windows, promise

GROUP = "jaxexport.runtimes"
JAXLIB = "jaxlib"
_TAKEN = ("all", "deployed", "newest", "window", "writer")
"""The names that no runtime can have: words of --readers, and "writer", with which folders of environments begin."""
_LONGEST_DAYS = 36_500  # A century, so that no date leaves the range of Python's dates.
_NAMED = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)(?P<versions>\s*[=<>!~][^\[]*|\s+\d[^\[]*)?(\[(?P<settings>[^\[\]]*)\])?"
)
SETTINGS = "JAXEXPORT_READER_SETTINGS"
"""The environment variable that gives a worker half the settings of its reader: `NAME=VALUE`, with `;` between them."""


class RuntimePromise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The promise of a runtime, in days between the build dates of the writer's jaxlib and the runtime's release."""

    backward_days: int  # How long after the writer a release may be built that has to read its artifacts.
    forward_days: int  # How long before the writer a release may be built that has to read its artifacts.
    source: str  # The address of the page that says so.
    says: str  # The sentence in which it says so.


class RuntimeRefusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message by which a runtime is known to refuse an artifact."""

    message: str  # A regular expression, found in the message of the error or in what was printed on stderr.
    meaning: str  # What it means, and how to export an artifact that is taken.
    promised: bool = True  # Whether the runtime promises to take such artifacts. False for custom calls, for one.


LACKS_DTYPE = RuntimeRefusal(
    r"\bhas no dtype \w",
    "a dtype that this runtime lacks: export with a wider one, such as bfloat16, float32 or int8, or take a newer "
    "release that has it",
    promised=False,
)
"""The refusal that all runtimes share: their worker halves say so of the dtype of an argument or a result."""


class Runtime(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A runtime that is not jaxlib: the packages of its releases, its code for a worker, and its promise."""

    name: str  # What comes before `==` in the name of a reader.
    about: str  # What it is, in a sentence or two.
    worker: str  # The file of its worker half, beside its YAML file.
    requirements: tuple[str, ...]  # Pip requirements of a release, with `{version}`; numpy and ml_dtypes are added.
    check: str  # Code that must run in its environment. The last line that it prints is the version.
    variables: dict[str, str] = {}  # Environment variables of its cells.
    settings: dict[str, str] = {}
    """What of it the name of a reader can set, such as `iree==3.13.0[NAME=VALUE]`: by name a regular expression of
    values. Its worker half gets them in the variable `JAXEXPORT_READER_SETTINGS`."""
    megabytes: int | None = None  # The typical size of its environment on disk.
    download_megabytes: int | None = None  # What is typically downloaded for it.
    issues: str = ""  # The address of its issue tracker.
    promise: RuntimePromise | None = None  # What it promises; null for nothing.
    releases_of: str = ""
    """The runtime of which this one is a part, if it has no releases of its own: `jaxlib` or another one. The releases
    are taken from there, and so are the promise and the refusals where this file has none."""
    refusals: tuple[RuntimeRefusal, ...] = ()  # The messages by which it refuses artifacts.
    releases: dict[str, RuntimeRelease] = {}  # Its releases, by version.
    folder: Path = Path()  # Where its files are; set when they are read.

    @property
    def known_refusals(self) -> tuple[RuntimeRefusal, ...]:
        """The runtime's own refusals, and the one that all runtimes share."""
        return *self.refusals, LACKS_DTYPE

    @property
    def half(self) -> Path:
        """The path of the Python file that a worker loads to run cells in this runtime."""
        return self.folder / self.worker

    def release(self, version: str, calendar: Calendar) -> RuntimeRelease:
        """Return the runtime's release with this version.

        Raises `ReleaseError` if this version is not known on the day of the calendar.
        """
        known = self.known(calendar)
        if version not in known:
            entry = self.known(replace(calendar, day=None)).get(version)
            built = entry.built if entry else calendar.hidden.get(f"{JAXLIB} {version}")
            if later := calendar.built_later(built if entry or self.releases_of == JAXLIB else None):
                raise ReleaseError(f"{self.name} {version} is not in the calendar of {self.name}{later}")
            as_of = f" as of {calendar.day}" if calendar.day else ""
            raise ReleaseError(
                f"{self.name} {version} is not in the calendar of {self.name}{as_of}."
                f"{similar_release(version, [*known])} {self._listed(known)}"
                + ("" if self.releases_of else " Add another one under `releases: runtimes:` in the policy file.")
            )
        return known[version]

    def variables_of(self, reader: Titled) -> dict[str, str]:
        """Return the environment variables of a reader's cells: those of the runtime, and the reader's settings."""
        return {**self.variables, **({SETTINGS: ";".join(reader.settings)} if reader.settings else {})}

    def checked_settings(self, text: str) -> str:
        """Return the checked and sorted settings of a reader, ``[NAME=VALUE;…]``, from the text in its name's brackets.

        Raises `ReleaseError` for a setting that this runtime does not have, or a value that the setting cannot have.
        """
        words = sorted(filter(None, text.split(";")))
        for word in words:
            name, _, value = word.partition("=")
            if name not in self.settings:
                names = ", ".join(self.settings)
                expected = f"one of {names}" if names else f"no settings, since {self.name} has none"
                raise ReleaseError(
                    f"{self.name}[{word}]: expected {expected}, found {name!r}.{did_you_mean(name, self.settings)}"
                )
            if not re.fullmatch(self.settings[name], value):
                raise ReleaseError(f"{self.name}[{name}=…]: expected {self.settings[name]}, found {value!r}.")
        return f"[{';'.join(words)}]" if words else ""

    def _listed(self, known: Mapping[str, RuntimeRelease]) -> str:
        newest = ", ".join(sorted(known, key=version_key)[-3:])
        return f"The newest known are {newest or 'none'}. `jaxexport releases list --runtime {self.name}` shows all."

    def known(self, calendar: Calendar) -> dict[str, RuntimeRelease]:
        """Return the releases that were built by the day of a calendar, by version, oldest build first."""
        if self.releases_of == JAXLIB:
            entries = {version: calendar.jaxlib[version] for version in calendar.versions()}
            return {
                version: RuntimeRelease(
                    entry.built, entry.python, entry.stablehlo[0], requires=calendar.extra_requirements(version)
                )
                for version, entry in entries.items()
            }
        if self.releases_of:
            return runtime_named(self.releases_of).known(calendar)
        # An entry of this package was measured, and is not replaced.
        built = {
            version: release
            for version, release in {**calendar.runtimes.get(self.name, {}), **self.releases}.items()
            if calendar.day is None or release.built <= calendar.day
        }
        return dict(sorted(built.items(), key=lambda item: (item[1].built, version_key(item[0]))))

    def refusal(self, message: str) -> RuntimeRefusal | None:
        """Return the known refusal that matches an error message or printed text; None if none matches."""
        return next((refusal for refusal in self.known_refusals if re.search(refusal.message, message)), None)


def load_runtime(path: Path) -> Runtime:
    """Return a runtime from its YAML file. If the file has no releases, ``NAME_releases.yaml`` beside it has them.

    Raises `ReleaseError`, which names the file, if it does not have the form of `Runtime`.
    """
    try:
        runtime = msgspec.yaml.decode(path.read_bytes(), type=Runtime)
        releases, table = runtime.releases, path.with_name(f"{runtime.name}_releases.yaml")
        if not releases and table.exists():
            releases = msgspec.yaml.decode(table.read_bytes(), type=dict[str, RuntimeRelease])
    except (OSError, msgspec.MsgspecError) as error:
        raise ReleaseError.about(Problem(path, f"expected the file of a runtime: {error}")) from error
    runtime = msgspec.structs.replace(runtime, releases=releases, folder=path.parent.resolve())
    if problems := [*_problems(runtime, path)]:
        raise ReleaseError.about(*problems)
    return runtime


def _problems(runtime: Runtime, path: Path) -> Iterator[Problem]:
    """Yield the problems in the file of a runtime that types do not show, such as a worker file that is missing."""
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", runtime.name) or runtime.name in _TAKEN:
        taken = ", ".join(_TAKEN)
        text = f"expected letters, digits and _, a letter first, and none of {taken}; found {runtime.name!r}."
        yield Problem(path, text, "name")
    if Path(runtime.worker).name != runtime.worker or not runtime.half.is_file():
        yield Problem(path, f"expected the name of a file beside this one, found {runtime.worker!r}.", "worker")
    for text in runtime.requirements:
        try:
            text.format(version="1.0")
        except (LookupError, ValueError):
            yield Problem(path, f"expected no braces but those of {{version}}, found {text!r}.", "requirements")
    for refusal in runtime.refusals:
        if problem := problem_of_pattern(refusal.message):
            yield Problem(path, problem, "refusals")
    for days in (runtime.promise.backward_days, runtime.promise.forward_days) if runtime.promise else ():
        if not 0 <= days <= _LONGEST_DAYS:
            yield Problem(path, f"expected 0 to {_LONGEST_DAYS} days, found {days}.", "promise")
    for version in runtime.releases:
        try:
            version_key(version)
        except ReleaseError as error:
            yield Problem(path, str(error), "releases")


@functools.cache
def known_runtimes() -> Mapping[str, Runtime]:
    """Return every runtime that is installed, by name.

    Raises `ReleaseError` if two have the same name, or if one cannot be loaded.
    """
    runtimes: dict[str, Runtime] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            runtime = msgspec.convert(point.load()(), Runtime)
        except ReleaseError:
            raise
        except Exception as error:
            raise ReleaseError(
                f"The runtime {point.name} of {point.value} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        if runtime.name in runtimes or runtime.name == JAXLIB:
            problem = f"the runtime {runtime.name} is already defined by another package."
            raise ReleaseError.about(Problem(point.value, problem, advice="Uninstall one of the two."))
        runtimes[runtime.name] = runtime
    return {name: _with_base(runtime, runtimes) for name, runtime in runtimes.items()}


def _with_base(runtime: Runtime, found: Mapping[str, Runtime]) -> Runtime:
    """Return a runtime with its promise and refusals; those it lacks are taken from the runtime in `releases_of`."""
    base = found.get(runtime.releases_of, runtime)
    promise, refusals = runtime.promise or base.promise, runtime.refusals or base.refusals
    return msgspec.structs.replace(runtime, promise=promise, refusals=refusals)


def runtime_named(name: str) -> Runtime:
    """Return the runtime of this name.

    Raises `ReleaseError` if no such runtime is installed.
    """
    runtimes = known_runtimes()
    if name not in runtimes:
        raise ReleaseError(
            f"Expected one of the runtimes {', '.join((JAXLIB, *runtimes))}, found {name!r}."
            f"{did_you_mean(name, (JAXLIB, *runtimes))} For any other, install the package that adds it."
        )
    return runtimes[name]


def runtime_of(reader: str) -> Runtime:
    """Return the runtime of a reader, given by its name, such as ``tensorflow==2.21.0``.

    Raises `ReleaseError` if the runtime is not installed.
    """
    return runtime_named(parts_of(reader)[0])


def names_runtime(text: str) -> bool:
    """Return whether a text such as ``tensorflow`` or ``iree==3.13.0`` names readers of a runtime other than jaxlib."""
    match = _NAMED.fullmatch(text)
    return match is not None and (match["versions"] is not None or match["name"] in known_runtimes())


def runtime_readers(text: str, calendar: Calendar) -> list[Release]:
    """Return the readers that a text names, oldest build first.

    For ``iree`` that is the newest release, for ``tensorflow>=2.19`` every release in the range.

    Raises `ReleaseError` for an unknown runtime or release.
    """
    match = _NAMED.fullmatch(text)
    assert match, text
    name, versions = match["name"], (match["versions"] or "").replace(" ", "")
    if name == JAXLIB:
        problem = "expected a release of jaxlib as its version alone, such as 0.12.0.1 or '>=0.11'."
        raise ReleaseError.about(Problem(text, problem))
    runtime = runtime_named(name)
    if (match["versions"] or " ")[0] in "=<>!~" and (hint := commas_missing(text)):
        raise ReleaseError(f"{text!r} is not one release.{hint}")
    settings = runtime.checked_settings(match["settings"] or "")
    known = every = runtime.known(calendar)
    if re.fullmatch(r"==[^,*]+", versions):
        known = {versions[2:]: runtime.release(versions[2:], calendar)}
    elif versions:
        try:
            chosen = {*SpecifierSet(versions).filter(known, prereleases=True)}
        except InvalidSpecifier:
            version = versions.lstrip("=")
            meant = version if version in known else next(reversed(known), "1.0")
            raise ReleaseError(
                f"Expected a release such as {name}=={meant}, or a range such as '{name}>={meant}', found {text!r}."
            ) from None
        known = {version: release for version, release in known.items() if version in chosen}
    else:
        known = dict(list(known.items())[-1:])
    if not known:
        day = calendar.day or "now"
        problem = f"no known release of {name} matches as of {day}."
        raise ReleaseError.about(Problem(text, problem, advice=runtime._listed(every)))
    return [
        Release(jax="", jaxlib="", built=release.built, runtime=f"{name}=={version}{settings}")
        for version, release in known.items()
    ]


def built_on(reader: str, calendar: Calendar) -> datetime.date | None:
    """Return the day on which a reader, given by its name, was built; None if the calendar lacks it."""
    if not names_runtime(reader):
        jaxlib = parts_of(reader)[0]
        return calendar.jaxlib[jaxlib].built if jaxlib in calendar.jaxlib else None
    release = runtime_of(reader).known(calendar).get(parts_of(reader)[1])
    return release.built if release else None


def promise_to(reader: Release, writer_built: datetime.date, windows: Windows) -> Promise:
    """Return what is promised to a reader for artifacts of a writer built on this day.

    The windows of the policy decide for jaxlib, the runtime's own promise for another runtime.
    """
    if reader.runtime:
        own = runtime_of(reader.runtime).promise
        return promise(writer_built, reader.built, own and Windows(own.backward_days, own.forward_days))
    return promise(writer_built, reader.built, windows)

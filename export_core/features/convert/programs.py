"""The programs that rewrite modules or export an artifact again, each in a process of another release."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import structs

from export_core.artifact import Artifact, read_bytes
from export_core.artifact.envelope.formats import fields_of, format_of, wire_version
from export_core.artifact.readers import Reader, loads, readers_of, version_pair
from export_core.base.json_text import decode_json
from export_core.base.processes import signal_name
from export_core.base.scratch import scratch_folder
from export_core.features.convert.convert import Converted, ModuleJob, RewrittenModules, check_converted
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens.adopt import needs_x64
from export_core.goldens.manifest import EXPORTED_AGAIN
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.placement import Placement
from export_core.releases import Calendar
from export_core.releases.calendar_entries import CalendarEntry, calendar_entries
from export_core.releases.names import version_numbers

SECONDS = 300.0  # How long a program may take: a module of 30,000 operations takes a second.

MOST_RELEASES = 2  # Releases that may be tried to export an artifact again: each may have to be installed.

NO_LOCATIONS = {"JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0", "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": ".*"}
"""Variables with which jax names no file of this package in a module, as if the artifact's program came from it.

The second is for releases before the first had an effect on all locations, such as 0.6.2: they name an empty file.
"""

REWRITE, EXPORT_AGAIN = (
    Path(__file__).parent / "rewriting" / name for name in ("rewriting_program.py", "export_again.py")
)


def run_program(
    environment: Environment, program: Path, job: object, inputs: Mapping[str, bytes], outputs: tuple[str, ...]
) -> RewrittenModules:
    """Run one of the programs of `rewriting/` in an environment and a new folder, and return its result.

    Args:
        environment: The environment of the release that runs it.
        program: The program, which gets the folder as its argument.
        job: What is written to job.json.
        inputs: Further files of the folder, by name.
        outputs: The names of the files that the program writes: they become the `modules` of the result.

    Raises:
        ConversionRefused: The program refused the job, died, took too long, or wrote nothing that can be read.
    """
    jaxlib = f"jaxlib {environment.release.jaxlib}"
    with scratch_folder() as folder:
        for name, data in {**inputs, "job.json": msgspec.json.encode(job)}.items():
            (folder / name).write_bytes(data)
        try:
            ended = subprocess.run(
                [str(environment.python), "-B", str(program), str(folder)],  # -B: nothing is written beside the program
                env={**environment.variables, **NO_LOCATIONS},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ConversionRefused(f"{jaxlib} did not rewrite or export the artifact within {SECONDS:g} s") from None
        except OSError as error:
            raise ConversionRefused(f"{jaxlib} cannot be started: {error}") from None
        try:
            result: RewrittenModules = decode_json((folder / "result.json").read_bytes(), RewrittenModules)
            if result.refused:
                raise ConversionRefused(result.refused)
            return structs.replace(result, modules=tuple((folder / name).read_bytes() for name in outputs))
        except OSError as error:
            _, _, last_line = ended.stderr.decode(errors="replace").strip().rpartition("\n")
            stopped = f"died by {signal_name(-ended.returncode)}" if ended.returncode < 0 else last_line
            raise ConversionRefused(f"{jaxlib} did not rewrite it: {stopped or error}") from None
        except msgspec.MsgspecError as error:
            raise ConversionRefused(f"{jaxlib} wrote a result that cannot be read: {error}") from None


class ModuleRewriter:
    """A rewriter of modules in an environment with the newest jaxlib, which reads what every release has written.

    The environment is built when the first module has to be rewritten; `notify` gets a line about that.
    """

    def __init__(self, calendar: Calendar, notify: Callable[[str], None]) -> None:
        self._calendar = calendar
        self._notify = notify
        self._environment: Environment | None = None

    def __call__(self, job: ModuleJob) -> RewrittenModules:
        """Rewrite the modules of a job.

        Raises `ConversionRefused` if they cannot be rewritten, and `EnvironmentFailed` if no environment can be built
        for that.
        """
        try:
            self._environment = self._environment or self._newest()
        except EnvironmentFailed as error:
            jaxlib = self._calendar.newest()
            raise EnvironmentFailed(
                f"the module has to be rewritten by jaxlib {jaxlib}, whose environment could not be built: "
                f"{error.message()}"
            ) from None
        words = {**structs.asdict(job), "modules": len(job.modules)}
        inputs = {f"{number}.bc": code for number, code in enumerate(job.modules)}
        outputs = tuple(f"{number}.out" for number in range(len(job.modules)))
        return run_program(self._environment, REWRITE, words, inputs, outputs)

    def _newest(self) -> Environment:
        release = self._calendar.release(self._calendar.newest())
        self._notify(f"rewriting modules with {release.title}")
        # Its lock is not released before the process ends: nobody may remove it meanwhile.
        return ReaderEnvironments(self._calendar, notify=self._notify).build(Placement(release))


def exporting_releases(artifact: Artifact, reader: Reader, calendar: Calendar) -> list[str]:
    """Return the jaxlibs that may export an artifact again for a reader, those with the nearest numbers first.

    Raises `ConversionRefused` if there are none, as for several devices, a bare module, or another runtime.
    """
    envelope, release = artifact.envelope, reader.release
    refusal = f"{artifact.name}: not exported again for {release.title}"
    if envelope is None or envelope.nr_devices > 1 or release.runtime:
        raise ConversionRefused(
            f"{refusal}: expected an artifact of jax.export for one device, and a release of jaxlib to convert it for."
        )
    entries = calendar_entries(calendar)
    readers = readers_of(entries)
    place = next(number for number, entry in enumerate(entries) if entry.jaxlib == release.jaxlib)
    nearest = sorted(enumerate(entries), key=lambda numbered: abs(numbered[0] - place))
    found = [
        entry.jaxlib
        for _, entry in nearest
        if entry.jaxlib != release.jaxlib
        and _writes_for(entry, reader)
        and loads(artifact, [readers[entry.jaxlib]])[0].ok
    ]
    if not found:
        raise ConversionRefused(f"{refusal}: no known release both reads it and writes what that reader takes.")
    return found


def export_again(
    artifact: Artifact, reader: Reader, calendar: Calendar, allow: Mapping[str, str], notify: Callable[[str], None]
) -> Converted:
    """Export an artifact again, with a release that reads it and writes a format that the reader takes.

    Derivatives, symbolic shapes and custom calls stay as they are.

    Args:
        artifact: The original.
        reader: The reader that the new artifact is for.
        calendar: The releases that may be used.
        allow: Custom-call targets that the project accepts, each with its reason.
        notify: Gets a line about what happens.

    Raises:
        ConversionRefused: No release can do that.
        EnvironmentFailed: A release that may do that has no environment.
        ArtifactError: The artifact cannot be read.
    """
    problems: list[str] = []
    error_type: type[ConversionRefused | EnvironmentFailed] = ConversionRefused
    for jaxlib in exporting_releases(artifact, reader, calendar)[:MOST_RELEASES]:
        notify(f"exporting {artifact.name} again with jaxlib {jaxlib}")
        try:
            with ReaderEnvironments(calendar, notify=notify) as environments:
                environment = environments.build(Placement(calendar.release(jaxlib)))
                return _export_in(environment, artifact, reader, allow)
        except (ConversionRefused, EnvironmentFailed) as error:
            problems.append(f"jaxlib {jaxlib}: {error.message().rstrip('.')}")
            # Without its environment it is unknown what a release would do: the artifact was not refused.
            error_type = type(error) if isinstance(error, EnvironmentFailed) else error_type
    raise error_type(f"{artifact.name}: not exported again for {reader.release.title}: {'; '.join(problems)}.")


def _export_in(environment: Environment, artifact: Artifact, reader: Reader, allow: Mapping[str, str]) -> Converted:
    envelope, jaxlib = artifact.envelope, environment.release.jaxlib
    assert envelope
    job = {"vjp_order": envelope.vjp_order, "x64": needs_x64(envelope)}
    inputs = {"original.jaxexport": bytes(artifact.data)}
    result = run_program(environment, EXPORT_AGAIN, job, inputs, ("again.jaxexport",))
    again = read_bytes(result.modules[0], f"{artifact.name} exported again for jaxlib {reader.release.jaxlib}")
    check_converted(artifact, again, reader, allow)
    why = f"jaxlib {jaxlib} reads the original, and exports what jaxlib {reader.release.jaxlib} takes"
    rewrites = (f"deserialized and exported again by jaxlib {jaxlib}",)
    return Converted(again, reader, EXPORTED_AGAIN, why, rewrites, result.by)


def _writes_for(entry: CalendarEntry, reader: Reader) -> bool:
    """Return whether a reader takes the envelope format and the StableHLO version that a release exports."""
    number, reads = format_of(entry.jax), version_numbers(reader.release.jax)
    written = entry.stablehlo[1] if len(entry.stablehlo) > 1 else None
    if written is None or reader.stablehlo is None or version_pair(written) > version_pair(reader.stablehlo):
        return False
    fields, version = fields_of(number), wire_version(number)
    if reads < (0, 8, 2):
        # jax 0.9.1 has stopped writing the 16-bit number of devices, without a new format.
        return "nr_devices_short" in fields and version_numbers(entry.jax) < (0, 9, 1) and version in (2, 3)
    return reads < (0, 11, 1) or "nr_devices" in fields

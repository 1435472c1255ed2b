"""Backfill: goldens by older releases, written by running the project's own tests in their environments."""

import contextlib
import datetime
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from export_core.base.errors import PREFIX, with_prefix
from export_core.base.exit_code import ExitCode
from export_core.base.scratch import scratch_folder
from export_core.base.text import plural
from export_core.base.untrusted import read_named, read_regular
from export_core.cli.output import echo
from export_core.cli.steps import Steps
from export_core.features.backfill.foreseen import lacking_modules, project_dependencies
from export_core.matrix.selection import DEPLOYED, Readers, choose_readers, known_releases
from export_core.policy.run_options import GROUPS, Selection
from export_core.readers.build import Built, EnvironmentLocks, Recipe, build, interpreter_for, uv_command
from export_core.readers.environment import requirements, writer_variables
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.packages import make_own_requirement
from export_core.releases import Calendar, Release, ReleaseError, Windows

_PLUGIN = ("-p", "pytest_jaxexport.missing_modules")
SESSION_ENDED = "JAXEXPORT_SESSION_ENDED"
"""The environment variable with the path of a file that the plugin writes when a run of pytest ends as it should.

The file has the number of goldens that the run has written.
"""
COMMAND = "command"
"""The name of the file beside that of `SESSION_ENDED` with the command of this backfill, for the advice of pytest."""
CTRL_C_SECONDS = 2.0  # How long pytest gets to end after a Ctrl-C, which a terminal has sent to pytest too.
STOP_SECONDS = 5.0  # How long it then gets to end after a SIGTERM. CI systems kill after 7.5 s (GitHub) or more.


@dataclass
class Progress:
    """The progress of a backfill: the writers that are left, and how many goldens an interrupted pytest has written."""

    left: list[Release] = field(default_factory=list)
    """The writers whose pytest has not ended yet: first the one that is at work."""
    is_started: bool = False  # Whether pytest was started in the environment of the first of them.
    written: int | None = None  # How many goldens an interrupted pytest has written; None if it did not tell.
    _process: subprocess.Popen[bytes] | None = None

    def run(self, command: Sequence[str], variables: Mapping[str, str], ended: Path) -> int:
        """Run pytest, and return its exit code. An exception in this thread, such as Ctrl-C, first ends pytest.

        `ended` is the file that `SESSION_ENDED` names.
        """
        with subprocess.Popen(command, env=dict(variables)) as process:
            self._process, self.is_started = process, True
            try:
                return process.wait()
            except KeyboardInterrupt:
                self._stop(process)
                with contextlib.suppress(OSError, ValueError):  # it was killed
                    self.written = int(read_regular(ended))
                raise
            finally:
                self._process = None

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        """End pytest, which then reports what it has written; kill it if it does not end, as inside a compilation."""
        # Not Ctrl-C once more: the second would end it in the middle of its summary.
        for seconds, end in ((CTRL_C_SECONDS, process.terminate), (STOP_SECONDS, process.kill)):
            try:
                process.wait(seconds)
                return
            except subprocess.TimeoutExpired:
                end()
        process.wait()

    def kill(self) -> None:
        """Kill pytest, if it runs."""
        if process := self._process:
            process.kill()

    def state(self) -> str:
        """Return a sentence about what an interrupted backfill has written, and how to continue."""
        if not self.left:
            return "Interrupted: every release has written its goldens."
        name = f"jaxlib {self.left[0].jaxlib}"
        if not self.is_started:
            done = f"no golden was written with {name}"
        elif self.written is None:
            done = f"pytest was ended while it ran with {name}; the goldens that it has written are complete"
        else:
            done = f"{plural(self.written, 'golden')} written with {name}"
        writers = ",".join(release.jaxlib for release in self.left)
        return (
            f"Interrupted: {done}. The same command with --writers {writers} and `-- --update-goldens=missing` writes "
            "what is missing."
        )


def choose_writers(
    named: str, calendar: Calendar, *, wheels: tuple[str, ...] = (), indexes: tuple[str, ...] = ()
) -> Readers:
    """Return the releases that `named` lists as writers, oldest build first, and where they are installed from.

    `calendar` is the one by which the tests date their goldens. Raises `ReleaseError` for a release that it lacks, even
    if there is a wheel of it: the tests, in its environment, see the calendar and not the wheel.
    """
    selection = Selection(readers=named, wheels=wheels, indexes=indexes)
    if not selection.named or not {*selection.named}.isdisjoint((*GROUPS, DEPLOYED)):
        raise ReleaseError(
            f"--writers: expected jaxlib versions such as 0.9.2,0.10.2, or wheel files, found {named!r}."
        )
    today = datetime.datetime.now(tz=datetime.UTC).date()
    chosen = choose_readers(selection, known_releases(selection, calendar), Windows(), (), today)
    if runtimes := [release.name for release in chosen.chosen if release.runtime]:
        raise ReleaseError(
            f"--writers: expected versions of jaxlib, since only jax exports, found {', '.join(runtimes)}."
        )
    unknown = [release.jaxlib for release in chosen.chosen if release.jaxlib not in calendar.jaxlib]
    if unknown:
        raise ReleaseError(
            f"--writers {named}: expected releases of the calendar here, which dates the goldens that they write, "
            f"found jaxlib {', '.join(unknown)}. `jaxexport releases refresh --wheels DIR` adds those of a folder; or "
            "date them under `releases:` in the policy file."
        )
    return chosen


def title(release: Release, calendar: Calendar) -> str:
    """Return a writer as text for people: its jax, its jaxlib, when that was built, and why their numbers differ."""
    text = f"jax {release.jax}, jaxlib {release.jaxlib} (built {release.built})"
    own = release.jaxlib
    if release.jax == own or release.jax != calendar.release(own).jax or own in calendar.given_jax:
        return text
    same = f"; --writers {own}-jax{own} takes that of its number" if own in calendar.jax else ""
    return f"{text}: the newest jax that works on this jaxlib{same}"


def requirements_here(install: Sequence[str]) -> tuple[str, ...]:
    """Return the pip requirements of the tests: the given ones, else the project in the working folder, if any."""
    return tuple(install) or ((f"-e{Path.cwd()}",) if Path("pyproject.toml").exists() else ())


def write_goldens(
    writers: Readers,
    install: Sequence[str],
    pytest_args: Sequence[str],
    constraints: tuple[str, ...],
    steps: Steps,
    progress: Progress,
) -> int:
    """Run the marked tests of the project in the working folder with each of these jaxlib releases, writing goldens.

    Args:
        writers: what `choose_writers` chose.
        install: pip requirements of the tests; if empty, the project in the working folder is installed, if it has a
            pyproject.toml.
        pytest_args: further arguments of pytest, after those that this function gives it.
        constraints: pip constraints on the versions of the packages in the environments.
        steps: shows progress while an environment is built.
        progress: records what was done, for the message of an interrupted command.

    Returns:
        0 when every writer wrote; 1 when tests failed in one; 3 when an environment could not be built, or pytest was
        ended by the code that it ran.
    """
    codes = []
    progress.left[:] = writers.chosen
    for release in writers.chosen:
        echo(f"== writing goldens with {title(release, writers.calendar)}")
        try:
            # Locked until pytest has ended: `jaxexport environments clean` must not remove it meanwhile.
            with EnvironmentLocks() as locks:
                with steps:
                    environment = _build_writer(release, writers, install, constraints, locks, steps)
                steps("the environment is ready: running the marked tests in it")
                words = (update_option(pytest_args), "--record-packages", "-m", "export_compat", "-q")
                command = [str(environment.python), "-m", "pytest", *_PLUGIN, *words, *pytest_args]
                codes.append(_run_to_its_end(command, install, progress, release.jaxlib))
        except EnvironmentFailed as error:
            echo(with_prefix(EnvironmentFailed(f"jaxlib {release.jaxlib}: {error}")), err=True)
            codes.append(ExitCode.INCOMPLETE)
        progress.left.pop(0)
        progress.is_started = False
    return max(codes)


def update_option(pytest_args: Sequence[str]) -> str:
    """Return the option with which pytest writes goldens: only missing ones, unless its arguments say otherwise.

    Goldens by older writers may stand for deployed artifacts, so they are replaced only if the arguments ask for it.
    """
    given = [word for word in pytest_args if word.partition("=")[0] == "--update-goldens"]
    return given[-1] if given else "--update-goldens=missing"


def _run_to_its_end(command: Sequence[str], install: Sequence[str], progress: Progress, writer: str) -> int:
    """Run pytest, and return 0 if it passed, 1 if it failed, 3 if its process ended with 0 before its session ended.

    A process ends so if a test or a conftest.py calls `os._exit(0)`. `install` has the requirements of the tests: after
    a failure, a message names the modules that they lack. `writer` is the jaxlib.
    """
    with scratch_folder() as folder:
        ended = folder / "ended"
        options = [word for package in install for word in ("--install", package)]
        words = ("jaxexport", "goldens", "backfill", "--writers", writer, *options, "--")
        (folder / COMMAND).write_text(shlex.join(words), encoding="utf-8")
        # The same variables as a cold cell: no setting of the caller's jax decides what a golden contains.
        variables = {**writer_variables(), SESSION_ENDED: str(ended)}
        code = progress.run(command, variables, ended)
        if code:
            missing = folder / "missing_modules"
            if lacking := sorted({*read_regular(missing).decode().split()}) if missing.exists() else []:
                echo(f"{PREFIX}{_what_to_install(lacking, install)}", err=True)
            return 1
        if ended.exists():
            return 0
    echo(
        f"{PREFIX}pytest ended with 0 before its session did: a test or a conftest.py has ended its process. "
        "Goldens may be missing.",
        err=True,
    )
    return ExitCode.INCOMPLETE


def foreseen_lines(install: Sequence[str], pytest_args: Sequence[str]) -> Iterator[str]:
    """Yield lines on what a backfill will install beside jax, and on modules that the tests will lack there."""
    requirements = requirements_here(install)
    none = "" if requirements else "; the working folder has no pyproject.toml"
    yield f"installed beside them: {', '.join(('pytest', *requirements))}{none}"
    for text in requirements:
        if own := project_dependencies(text):
            yield f"the project in {text.removeprefix('-e')} brings along {', '.join(own)}"
    if lacking := lacking_modules(requirements, pytest_args):
        unknown = [module for module, package in lacking.items() if not package]
        named = f" Name the package of {', '.join(unknown)} if it is called otherwise." if unknown else ""
        yield (
            f"warning: the tests import {', '.join(lacking)}, which none of these packages brings along, as far as is "
            f"known here: {_with_packages([package or name for name, package in lacking.items()], install)}.{named}"
        )


def _with_packages(added: Sequence[str], install: Sequence[str]) -> str:
    """Return the advice to also install the packages `added`, as the end of a sentence."""
    here = str(Path.cwd())
    packages = [text.replace(f"-e{here}", "-e.") for text in requirements_here(install)] + [*added]
    options = " ".join(f"--install {shlex.quote(package)}" for package in packages)
    listed = ", ".join(f'"{package}"' for package in packages)
    return f"run this command with {options}, or write backfill_install: [{listed}] into the policy"


def _what_to_install(modules: Sequence[str], install: Sequence[str]) -> str:
    """Return which modules the tests lack, and how to install their packages beside what is installed already."""
    return (
        f"this environment has no module {', '.join(modules)}, which the tests import. If its package has that name, "
        f"{_with_packages(modules, install)}. Otherwise name the package."
    )


def _build_writer(
    release: Release,
    writers: Readers,
    install: Sequence[str],
    constraints: tuple[str, ...],
    locks: EnvironmentLocks,
    steps: Steps,
) -> Built:
    """Build the environment of a release, with the tests of the project, and return it.

    Raises `EnvironmentFailed`.
    """
    calendar, sources = writers.calendar, writers.sources
    interpreter = interpreter_for(calendar.pythons(release.jaxlib), uv_command())
    if interpreter.note:
        echo(f"jaxlib {release.jaxlib} {interpreter.note}")
    # The project's own files decide what is installed: other dependencies mean another environment.
    files = [path for path in (Path("pyproject.toml"), Path("uv.toml")) if path.exists()]
    decides = "".join(read_named(path).decode(errors="replace") for path in files)
    recipe = Recipe(
        f"writer-{release.jaxlib}",
        interpreter.python,
        (*requirements(release, calendar, sources), "pytest", make_own_requirement(), *requirements_here(install)),
        "import jax, jaxlib.version, pytest_jaxexport; print(jax.__version__, jaxlib.version.__version__)",
        decides + sources.content(release),
        sources.options(),
        constraints,
        project=str(Path.cwd()),
    )
    environment = build(recipe, locks, announcement="building its environment", notify=steps)
    expected = f"{release.jax} {release.jaxlib}"
    if environment.checked != expected:
        raise EnvironmentFailed(
            f"{environment.folder}: expected jax and jaxlib {expected}, found {environment.checked}. Delete the "
            "folder; it will be built again."
        )
    return environment

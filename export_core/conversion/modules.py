"""The rewriting of modules, in a process of its own in the environment of the newest release."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

from export_core.conversion.convert import ModuleJob, RewrittenModules
from export_core.conversion.errors import ConversionRefused
from export_core.environments.environment import Environment, ReaderEnvironments
from export_core.environments.errors import EnvironmentFailed
from export_core.environments.placement import Placement
from export_core.phrases import signal_name
from export_core.releases import Calendar
from export_core.scratch import scratch_folder
from export_core.untrusted import decode_json

PROGRAM = Path(__file__).parent / "rewriting" / "program.py"
SECONDS = 300.0
"""How long it may take: a module of 30,000 operations takes a second."""


class _Result(msgspec.Struct, frozen=True):
    """What the program says."""

    rewrites: tuple[str, ...] = ()
    by: str = ""
    refused: str = ""


class ModuleRewriter:
    """Rewrites modules where the newest jaxlib is: it reads what every release has written, and writes for all.

    Its environment is built when the first module has to be rewritten. `notify` is called with a line about that.
    """

    def __init__(self, calendar: Calendar, notify: Callable[[str], None]) -> None:
        self._calendar = calendar
        self._notify = notify
        self._environment: Environment | None = None

    def __call__(self, job: ModuleJob) -> RewrittenModules:
        """Do a job. Raises `ConversionRefused` where the modules cannot be rewritten, or nowhere is a jaxlib for it."""
        try:
            self._environment = self._environment or self._newest()
        except EnvironmentFailed as error:
            problem = f"its module has to be rewritten, and there is no jaxlib for that: {error}"
            raise ConversionRefused(problem) from None
        with scratch_folder() as folder:
            return _run(self._environment, job, folder)

    def _newest(self) -> Environment:
        release = self._calendar.release(self._calendar.newest())
        # Its lock is not released before the process ends: nobody may remove it meanwhile.
        return ReaderEnvironments(self._calendar, notify=self._notify).build(Placement(release))


def _run(environment: Environment, job: ModuleJob, folder: Path) -> RewrittenModules:
    for number, code in enumerate(job.modules):
        (folder / f"{number}.bc").write_bytes(code)
    words = {**msgspec.structs.asdict(job), "modules": len(job.modules)}
    (folder / "job.json").write_bytes(msgspec.json.encode(words))
    jaxlib = f"jaxlib {environment.release.jaxlib}"
    try:
        ended = subprocess.run(
            [str(environment.python), str(PROGRAM), str(folder)],
            env=dict(environment.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConversionRefused(f"{jaxlib} was still rewriting its module after {SECONDS:g} s") from None
    except OSError as error:
        raise ConversionRefused(f"{jaxlib} cannot be started: {error}") from None
    try:
        result = decode_json((folder / "result.json").read_bytes(), _Result)
        if result.refused:
            raise ConversionRefused(result.refused)
        modules = tuple((folder / f"{number}.out").read_bytes() for number in range(len(job.modules)))
    except OSError as error:
        stopped = f"died by {signal_name(-ended.returncode)}" if ended.returncode < 0 else _last_line(ended.stderr)
        raise ConversionRefused(f"{jaxlib} did not rewrite its module: {stopped or error}") from None
    except msgspec.MsgspecError as error:
        raise ConversionRefused(f"{jaxlib} says nothing that can be read of its module: {error}") from None
    return RewrittenModules(modules, result.rewrites, result.by)


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""

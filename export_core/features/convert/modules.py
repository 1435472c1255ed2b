"""The rewriting of modules, in a process of its own in the environment of the newest release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from export_core.base.scratch import scratch_folder
from export_core.features.convert.convert import ModuleJob, RewrittenModules
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.programs import JOB, run_program
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.placement import Placement
from export_core.releases import Calendar

PROGRAM = Path(__file__).parent / "rewriting" / "program.py"


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
    (folder / JOB).write_bytes(msgspec.json.encode(words))
    outputs = tuple(f"{number}.out" for number in range(len(job.modules)))
    result, modules = run_program(environment, PROGRAM, folder, outputs)
    return RewrittenModules(modules, result.rewrites, result.by)

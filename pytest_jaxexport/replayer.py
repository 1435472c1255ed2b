"""The replay of goldens in the jaxlib of the interpreter that runs pytest: a matrix with one reader."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from export_core.comparing.user_code import UserCode
from export_core.export import installed_writer
from export_core.goldens import Golden
from export_core.judge import Result
from export_core.matrix import Selection
from export_core.policy import policy_file
from export_core.releases import Release
from export_core.run_options import RunOptions
from export_core.session import Interpreter, run_matrix
from export_core.worker.warm_workers import WarmWorkers
from pytest_jaxexport.settings import Settings


class Replayer:
    """Replays goldens in this interpreter. Its worker serves the whole session."""

    def __init__(self, settings: Settings, user_code: UserCode) -> None:
        self.user_code = user_code
        self._policy = settings.policy
        self._workers = WarmWorkers()
        self._options = run_options(settings)
        self.calendar = settings.policy.calendar()

    def replay(self, goldens: Sequence[Golden]) -> list[Result]:
        """Judge every golden that was exported for cpu, each in a cold process."""
        writer = installed_writer(self.calendar)
        release = Release(jaxlib=writer.jaxlib, jax=writer.jax, built=writer.built)
        interpreter = Interpreter(release, self._workers.start, self.user_code)
        run = run_matrix(self._policy, Selection(), self._options, goldens=goldens, interpreter=interpreter)
        return run.results

    def close(self) -> None:
        """End the worker."""
        self._workers.close()


def run_options(settings: Settings) -> RunOptions:
    """How goldens are replayed in this process.

    Goldens and policy are named if `jaxexport matrix` would find others in the folder where pytest was called: a
    failure prints the command that reproduces its cell from there.
    """
    here = settings.directory
    goldens, policy = settings.goldens, settings.policy_file
    return RunOptions(
        results=None,
        goldens=None if goldens.resolve() == (here / settings.policy.goldens).resolve() else _relative(goldens, here),
        policy_file=None if policy is None or policy == policy_file(here) else str(_relative(policy, here)),
        cache=False,
        dump_ir=settings.dump_ir,
    )


def _relative(path: Path, folder: Path) -> Path:
    return Path(os.path.relpath(path, folder))

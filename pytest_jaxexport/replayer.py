"""The replay of goldens in the jaxlib of the interpreter that runs pytest: a matrix with one reader."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path

from export_core.comparing.user_code import UserCode
from export_core.environments.environment import this_interpreter
from export_core.export import installed_writer
from export_core.goldens import Golden
from export_core.judge import Result
from export_core.matrix import Limits, Selection
from export_core.matrix.noise_runs import MeasuredNoise, measure_noise
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

    @functools.cached_property
    def _release(self) -> Release:
        writer = installed_writer(self.calendar)
        return Release(jaxlib=writer.jaxlib, jax=writer.jax, built=writer.built)

    def noise(self, golden: Golden) -> MeasuredNoise | str:
        """The noise of a golden that this interpreter has just made, or why there is none."""
        environment = this_interpreter(self._release, self._policy.environment)
        limits = Limits()
        worker = self._workers.start(environment, limits.jobs, fork=limits.fork)
        return measure_noise(golden, environment, worker, limits)

    def replay(self, goldens: Sequence[Golden]) -> list[Result]:
        """Judge every golden that was exported for cpu, each in a cold process."""
        interpreter = Interpreter(self._release, self._workers.start, self.user_code)
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

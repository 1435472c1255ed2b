"""The replay of goldens in the jaxlib of the interpreter that runs pytest: a matrix with one reader."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from export_core.export import installed_writer
from export_core.goldens import Golden
from export_core.judge import Result
from export_core.matrix import Selection
from export_core.policy import policy_file
from export_core.releases import Release
from export_core.session import Interpreter, RunOptions, run_matrix
from export_core.worker.warm_workers import WarmWorkers
from pytest_jaxexport.settings import Settings


class Replayer:
    """Replays goldens in this interpreter. Its worker serves the whole session."""

    def __init__(self, settings: Settings) -> None:
        self._policy = settings.policy
        self._workers = WarmWorkers()
        self._options = RunOptions(
            results=None,
            goldens=_named_goldens(settings),
            policy_file=_named_policy(settings),
            cache=False,
            dump_ir=settings.dump_ir,
        )
        self.calendar = settings.policy.calendar()

    def replay(self, goldens: Sequence[Golden]) -> list[Result]:
        """Judge every golden that was exported for cpu, each in a cold process."""
        writer = installed_writer(self.calendar)
        release = Release(jaxlib=writer.jaxlib, jax=writer.jax, built=writer.built)
        interpreter = Interpreter(release, self._workers.start)
        run = run_matrix(self._policy, Selection(), self._options, goldens=goldens, interpreter=interpreter)
        return run.results

    def close(self) -> None:
        """End the worker."""
        self._workers.close()


def _named_goldens(settings: Settings) -> Path | None:
    """The folder of goldens as `--goldens` takes it; None where `jaxexport matrix` finds it where pytest was called."""
    if settings.goldens.resolve() == (settings.directory / settings.policy.goldens).resolve():
        return None
    # Relative: the command that reproduces a cell is run where pytest was called, on any machine.
    return Path(os.path.relpath(settings.goldens, settings.directory))


def _named_policy(settings: Settings) -> str | None:
    """The policy file as `--policy` takes it, likewise."""
    if settings.policy_file is None or settings.policy_file == policy_file(settings.directory):
        return None
    return os.path.relpath(settings.policy_file, settings.directory)

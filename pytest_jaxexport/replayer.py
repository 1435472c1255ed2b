"""How do goldens run in the jaxlib of this very interpreter?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from export_core.environments.environment import this_interpreter
from export_core.export import installed_writer
from export_core.goldens import Golden
from export_core.judge import Result, judge, reproduce_command
from export_core.matrix import Cell, Limits
from export_core.matrix.quirks import relaxed
from export_core.matrix.replay import replay
from export_core.policy import Policy
from export_core.releases import Release
from export_core.worker.warm_workers import WarmWorkers


class Replayer:
    """Replays goldens in the jaxlib of this very interpreter: a matrix with one reader. Keeps its worker for the session."""

    def __init__(self, policy: Policy, dump: Path | None = None) -> None:
        self._policy = policy
        self._dump = dump
        self._workers = WarmWorkers()
        self.calendar = policy.calendar()

    def replay(self, goldens: Sequence[Golden]) -> list[Result]:
        """Judge every golden that was exported for cpu, each in a cold process."""
        writer = installed_writer(self.calendar)
        here = Release(jaxlib=writer.jaxlib, jax=writer.jax, built=writer.built)
        cells = [
            Cell(golden, here, "cpu")
            for golden in relaxed(goldens, self._policy.quirks)
            if "cpu" in golden.manifest.replayed_on
        ]
        outcomes = replay(
            cells,
            this_interpreter,
            self.calendar,
            limits=Limits(),
            allow=self._policy.allow,
            tolerances=self._policy.tolerances,
            start=self._workers.start,
            dump=self._dump,
        )
        windows, known = self._policy.window_lengths(), self._policy.known_failures
        return [judge(outcome, windows, known, reproduce_command) for outcome in outcomes]

    def close(self) -> None:
        """End the worker."""
        self._workers.close()

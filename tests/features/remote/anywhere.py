"""A cluster of any executor, for tests: every platform, machines without names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from export_core.features.remote.job import Job, JobResult


@dataclass(frozen=True)
class Anywhere:
    """Runs every platform on a pool, such as a `concurrent.futures.ProcessPoolExecutor`. See `DaskCluster`."""

    pool: Any
    slots: int = 2

    def submit(
        self, run: Callable[[Job], JobResult], job: Job, platform: str, machines: Sequence[str] = ()
    ) -> Future[JobResult]:
        return self.pool.submit(run, job)

    def others(self, platform: str, machine: str) -> Sequence[str]:
        return ()

    def room(self, platform: str) -> int:
        return self.slots

    def trouble(self, platform: str) -> str:
        return ""

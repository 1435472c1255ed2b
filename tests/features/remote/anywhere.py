"""A cluster for tests, made of any executor, which has every platform."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from export_core.features.remote.job import Job, JobResult


@dataclass
class Anywhere:
    """A cluster like `DaskCluster` that runs each platform on a pool, such as a `ProcessPoolExecutor`."""

    pool: Any
    slots: int = 2
    trouble: Callable[[str], str] = lambda platform: ""
    is_connected: bool = True

    def submit(self, run: Callable[[Job], JobResult], job: Job, platform: str) -> Future[JobResult]:
        return self.pool.submit(run, job)

    def room(self, platform: str) -> int:
        return self.slots

    def news(self) -> tuple[str, ...]:
        return ()

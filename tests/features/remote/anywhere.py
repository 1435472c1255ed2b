"""A cluster of any executor, for tests: every platform, and machines that have names only where a test gives some."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from export_core.features.remote.job import Job, JobResult


@dataclass
class Anywhere:
    """Runs every platform on a pool, such as a `concurrent.futures.ProcessPoolExecutor`. See `DaskCluster`.

    A job that is sent to some of the machines goes to the second pool.
    """

    pool: Any
    slots: int = 2
    machines: Sequence[str] = ()
    second: Any = None
    trouble: Callable[[str], str] = lambda platform: ""

    def submit(
        self, run: Callable[[Job], JobResult], job: Job, platform: str, machines: Sequence[str] = ()
    ) -> Future[JobResult]:
        return (self.second if machines else self.pool).submit(run, job)

    def others(self, platform: str, machine: str) -> Sequence[str]:
        return [name for name in self.machines if name != machine]

    def room(self, platform: str) -> int:
        return self.slots

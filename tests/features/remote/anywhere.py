"""A cluster of any executor, for tests: every platform, machines without names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from export_core.features.remote.cluster import Executor


@dataclass(frozen=True)
class Anywhere:
    """Runs every platform on an executor, such as a `concurrent.futures.ProcessPoolExecutor`."""

    pool: Executor
    slots: int = 2

    def executor(self, platform: str, machines: Sequence[str] = ()) -> Executor:
        """See `Cluster`."""
        return self.pool

    def others(self, platform: str, machine: str) -> Sequence[str]:
        """See `Cluster`. Its machines have no names."""
        return ()

    def room(self, platform: str) -> int:
        """See `Cluster`."""
        return self.slots

    def trouble(self, platform: str) -> str:
        """See `Cluster`."""
        return ""

    def close(self) -> None:
        """Leave it to who made it."""

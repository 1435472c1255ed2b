"""What runs jobs on other machines: an executor, and a cluster that knows which machine can do what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol


class Executor(Protocol):
    """The part of `concurrent.futures.Executor` that is used."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Run `fn` somewhere; the future gives what it returns."""


class Cluster(Protocol):
    """Machines, and which of them can do what."""

    def executor(self, platform: str, machines: Sequence[str] = ()) -> Executor:
        """What runs jobs where this platform is; only on these machines where some are named."""

    def others(self, platform: str, machine: str) -> Sequence[str]:
        """The machines that have this platform, as `Done.where` names them, without this one."""

    def room(self, platform: str) -> int:
        """How many jobs of this platform to have out at once; at least 1."""

    def trouble(self, platform: str) -> str:
        """Why no job of this platform will end, as things stand; empty when nothing speaks against it."""

    def close(self) -> None:
        """Give up what is still out, and let the machines go."""


@dataclass(frozen=True)
class Anywhere:
    """A cluster of any executor that runs every platform, such as a `concurrent.futures.ProcessPoolExecutor`."""

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

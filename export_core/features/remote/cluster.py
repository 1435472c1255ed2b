"""The two things that run jobs on other machines: an executor, and a cluster that knows which machine can do what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from export_core.base.errors import ExportCompatError


class RemoteError(ExportCompatError):
    """A cluster that cannot be reached, or that is not known."""


class Executor(Protocol):
    """The part of `concurrent.futures.Executor` that is used."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Run `fn` somewhere; the future gives what it returns."""


class Cluster(Protocol):
    """Machines, and which of them can do what."""

    def executor(self, platform: str, machines: Sequence[str] = ()) -> Executor:
        """What runs jobs on machines with this platform; only on these machines if any are named."""

    def others(self, platform: str, machine: str) -> Sequence[str]:
        """The machines that have this platform, as `JobResult.machine` names them, without this one."""

    def room(self, platform: str) -> int:
        """How many jobs of this platform to have sent at once; at least 1."""

    def trouble(self, platform: str) -> str:
        """Why no job of this platform can end at present; empty if none is known."""

    def close(self) -> None:
        """Cancel the jobs that have not begun, and disconnect."""

"""How do jobs run on a Dask cluster? Platforms are resources of its workers; jax is never imported in one.

This side only connects: it listens to nothing. What the scheduler and its workers listen to is said where they are started, and
TLS in Dask's own configuration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from export_core.remote.cluster import Executor
from export_core.remote.errors import RemoteError
from export_core.remote.job import Done

PATIENCE_SECONDS = 60.0
"""How long to wait where no worker is left: clusters grow on demand, and a worker that died is started anew."""
ANSWER_SECONDS = 30.0
"""How long a scheduler may take to say which workers it has."""
FRESH_SECONDS = 0.5
EVERYWHERE = "cpu"
"""The platform that every worker has, declared or not."""


@dataclass(frozen=True)
class _Naming:
    """Runs jobs, and has each say which worker ran it."""

    inner: Executor

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """See `Executor`."""
        return self.inner.submit(_named, fn, *args)


def _named(run: Callable[..., Done], *args: Any) -> Done:
    from distributed import get_worker

    return replace(run(*args), where=get_worker().address)


class DaskCluster:
    """A `Cluster` of the Dask scheduler at an address, such as ``tcp://127.0.0.1:8786``.

    Raises `RemoteError` when Dask is not installed here, or no scheduler answers there.
    """

    def __init__(self, address: str) -> None:
        try:
            import dask.config
            from distributed import Client
        except ImportError:
            raise RemoteError(
                f"--executor dask:{address}: expected Dask here, found none: pip install 'pytest-jaxexport[dask]'."
            ) from None
        # A golden may be large, and is needed just where it is sent.
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"})
        try:
            self._client = Client(address, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise RemoteError(
                f"--executor dask:{address}: expected a Dask scheduler there, none answers: {error}. Start one with "
                "`dask scheduler`, and give its address, such as dask:tcp://127.0.0.1:8786."
            ) from error
        self._address = address
        self._executors: dict[tuple[str, ...], Executor] = {}
        self._workers: list[dict[str, Any]] = []
        self._asked = 0.0
        self._deaf = False
        self._alone_since: dict[str, float] = {}
        self._met: set[str] = set()

    def executor(self, platform: str, machines: Sequence[str] = ()) -> Executor:
        """See `Cluster`. Resources tie jobs to workers that have the platform."""
        key = (platform, *machines)
        if key not in self._executors:
            needs = {} if platform == EVERYWHERE else {platform: 1}
            workers = {"workers": list(machines)} if machines else {}
            self._executors[key] = _Naming(self._client.get_executor(pure=False, resources=needs, **workers))
        return self._executors[key]

    def others(self, platform: str, machine: str) -> Sequence[str]:
        """See `Cluster`. Workers are named by their address."""
        return [worker["address"] for worker in self._able(platform) if worker["address"] != machine]

    def room(self, platform: str) -> int:
        """See `Cluster`: for each thread of a worker one job that runs and one that waits there."""
        return max(2, 2 * sum(int(worker["nthreads"]) for worker in self._able(platform)))

    def trouble(self, platform: str) -> str:
        """See `Cluster`. A platform that no worker ever had is given up at once, workers that were there are waited for."""
        able = self._able(platform)
        if self._client.status == "closed" or self._deaf:
            return f"the Dask scheduler at {self._address} is lost"
        if able or self._client.status != "running":  # it is connecting anew, and closes when it cannot
            self._alone_since.pop(platform, None)
            return ""
        alone = time.monotonic() - self._alone_since.setdefault(platform, time.monotonic())
        if platform == EVERYWHERE or platform in self._met:
            if alone < PATIENCE_SECONDS:
                return ""
            return f"no worker of the Dask scheduler at {self._address} runs {platform}, for {alone:.0f} s now"
        return (
            f"no worker of the Dask scheduler at {self._address} has the resource {platform}: start one with "
            f"`dask worker {self._address} --resources {platform}=1`"
        )

    def close(self) -> None:
        """See `Cluster`. A scheduler drops what is waiting for a client that went away; what runs ends with its job."""
        self._client.close()

    def _able(self, platform: str) -> list[dict[str, Any]]:
        """The workers that have a platform, as the scheduler knows them."""
        if self._client.status == "running" and time.monotonic() - self._asked > FRESH_SECONDS:
            try:
                told = self._client.sync(self._client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_SECONDS)
                self._workers = [{**worker, "address": address} for address, worker in told["workers"].items()]
            except TimeoutError:
                self._deaf = True
            except OSError:  # the connection broke just now: the client notices by itself
                pass
            self._asked = time.monotonic()
        able = [
            worker
            for worker in self._workers
            if platform == EVERYWHERE or (worker.get("resources") or {}).get(platform, 0) >= 1
        ]
        if able:
            self._met.add(platform)
        return able

"""A Dask cluster. Platforms are resources of its workers, whose own processes never import jax.

This side only connects, and opens no port. Scheduler and workers listen where they are told to when they are started;
TLS is set in Dask's own configuration.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

from export_core.base.errors import ExportCompatError
from export_core.base.text import plural
from export_core.features.remote.job import Job, JobResult
from export_core.matrix.replay import ignore

NOTE_SECONDS = 3.0  # How long there may be no scheduler or no worker before a run says that it waits for one.
PATIENCE_SECONDS = 60.0
"""How long to wait if no worker is left: clusters grow on demand, and a worker that died is started anew."""
ANSWER_SECONDS = 30.0  # How long a scheduler may take to list its workers.
FRESH_SECONDS = 0.5
"""How long the scheduler's answer about its workers is reused, since each look at the jobs needs it several times."""
EVERYWHERE = "cpu"  # The platform that every worker has, declared or not.


class RemoteError(ExportCompatError):
    """An error for a cluster that cannot be reached, or whose name is not understood."""


class DaskCluster:
    """The workers of the Dask scheduler at an address, such as ``tcp://127.0.0.1:8786``.

    `notify` gets a line if the scheduler does not answer soon, from another thread. Raises `RemoteError` when Dask is
    not installed here, or no scheduler answers there.
    """

    def __init__(self, address: str, notify: Callable[[str], None] = ignore) -> None:
        try:
            import dask.config
            from distributed import Client
        except ImportError:
            raise RemoteError(
                f"--executor dask:{address}: expected Dask to be installed here, found none: pip install "
                "'pytest-jaxexport[dask]'."
            ) from None
        # A golden may be large, and is needed only where it is sent.
        dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"})
        late = threading.Timer(NOTE_SECONDS, notify, [f"waiting for the Dask scheduler at {address}"])
        late.start()
        try:
            # Not the default client: other code of this process that uses Dask must not send its work there.
            self._client = Client(address, set_as_default=False)
        except Exception as error:  # any server may listen there, and Dask raises whatever its answer leads to
            raise RemoteError(
                f"--executor dask:{address}: expected a Dask scheduler at this address, none answers: {error}. Start "
                "one with `dask scheduler`, and give its address, such as dask:tcp://127.0.0.1:8786."
            ) from error
        finally:
            late.cancel()
        self._address = address
        self._workers: dict[str, dict[str, Any]] = {}
        self._asked_at = 0.0
        self._scheduler_is_silent = False
        self._no_worker_since: dict[str, float] = {}
        self._platforms_seen: set[str] = set()
        self._lost: list[str] = []
        self._none_since: float | None = None
        self._said_none = False

    def submit(self, run: Callable[[Job], JobResult], job: Job, platform: str) -> Future[JobResult]:
        """Send a job to a worker that has this platform as a resource, and return its future."""
        needs = {} if platform == EVERYWHERE else {platform: 1}
        # pure=False: Dask would give two equal calls one result, and a job that is sent again is such a call.
        executor: Executor = self._client.get_executor(pure=False, resources=needs)
        return executor.submit(run, job)

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler answers.

        While it does not, Dask's client cancels what is sent, and connects again or closes.
        """
        return bool(self._client.status == "running")

    def room(self, platform: str) -> int:
        """Return how many jobs of a platform may be sent at once: for each thread, one that runs and one that waits."""
        if not self.is_connected:
            return 0
        return max(2, 2 * sum(int(worker["nthreads"]) for worker in self._able(platform)))

    def trouble(self, platform: str) -> str:
        """Return why no job of this platform can end at present; empty if no reason is known.

        A platform that no worker ever had is given up at once. Workers that left may come back, and are waited for.
        """
        able = self._able(platform)
        if self._client.status == "closed" or self._scheduler_is_silent:
            return f"the Dask scheduler at {self._address} is lost"
        if able or self._client.status != "running":  # it is connecting anew, and closes when it cannot
            self._no_worker_since.pop(platform, None)
            return ""
        seconds = time.monotonic() - self._no_worker_since.setdefault(platform, time.monotonic())
        if platform == EVERYWHERE or platform in self._platforms_seen:
            if seconds < PATIENCE_SECONDS:
                return ""
            return f"for {seconds:.0f} s, the Dask scheduler at {self._address} has had no worker for {platform}"
        return (
            f"no worker of the Dask scheduler at {self._address} has the resource {platform}: start one with "
            f"`dask worker {self._address} --resources {platform}=1`"
        )

    def news(self) -> Iterator[str]:
        """Yield a line for each worker lost since the last call, and a line if the scheduler has long had no worker.

        The scheduler is not asked again: the answers that `room` and `trouble` got are used.
        """
        for address in sorted(self._lost):
            left = plural(len(self._workers), "worker")
            yield f"the Dask worker at {address} is lost, {left} left: what it ran is run again"
        self._lost.clear()
        if self._workers or self._client.status != "running":
            self._none_since, self._said_none = None, False
            return
        self._none_since = self._none_since or time.monotonic()
        if not self._said_none and time.monotonic() - self._none_since >= NOTE_SECONDS:
            self._said_none = True
            yield (
                f"the Dask scheduler at {self._address} has no worker: waiting for one, for {PATIENCE_SECONDS:.0f} s. "
                f"`dask worker {self._address}` starts one"
            )

    def close(self) -> None:
        """Cancel the jobs that have not begun, and disconnect.

        A scheduler drops the waiting jobs of a client that disconnects; those that are running end normally.
        """
        self._client.close()

    def _able(self, platform: str) -> list[dict[str, Any]]:
        """Return the workers that have a platform, by the latest answer of the scheduler."""
        if self._client.status == "running" and time.monotonic() - self._asked_at > FRESH_SECONDS:
            try:
                identity = self._client.sync(
                    self._client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_SECONDS
                )
                self._lost += self._workers.keys() - identity["workers"].keys()
                self._workers = identity["workers"]
            except TimeoutError:
                self._scheduler_is_silent = True
            except OSError:  # the connection broke just now: the client notices by itself
                pass
            self._asked_at = time.monotonic()
        able = [
            worker
            for worker in self._workers.values()
            if platform == EVERYWHERE or (worker.get("resources") or {}).get(platform, 0) >= 1
        ]
        if able:
            self._platforms_seen.add(platform)
        return able

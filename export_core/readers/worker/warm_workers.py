"""A worker that outlives its replay, for many small replays in one reader, also from several threads."""

from __future__ import annotations

import threading

from export_core.readers.environment import Environment
from export_core.readers.worker.client import ForkingWorker, start_worker
from export_core.readers.worker.protocol import Worker


class WarmWorkers:
    """Starts a worker once and hands it out for each replay."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._environment: Environment | None = None
        self._lock = threading.RLock()

    def start(self, environment: Environment, slots: int, *, fork: bool) -> Worker:
        """A `WorkerStarter`. Its worker ignores `close`; a dead one, or one of another environment, is replaced."""
        with self._lock:
            ended = isinstance(self._worker, ForkingWorker) and self._worker.ended
            if self._worker is None or ended or self._environment != environment:
                self.close()
                self._worker, self._environment = start_worker(environment, slots, fork=fork), environment
            return _Borrowed(self._worker)

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()
            self._worker = None


class _Borrowed:
    """A worker that its owner closes, and not the replay that uses it."""

    def __init__(self, worker: Worker) -> None:
        self.submit = worker.submit

    def close(self) -> None:
        """Leave it open."""

"""Goldens of live calls: a server calls an artifact, and now and then a call is stored with what it returned."""

from __future__ import annotations

import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import filelock
import msgspec

from export_core.artifact import Artifact, read, read_bytes
from export_core.goldens import GoldenError, GoldenStore, Leaf, Origin, Writer
from export_core.goldens.adopt import StatedFacts, adopt_artifact, envelope_of, writer_of
from export_core.goldens.manifest_file import is_plain_name
from export_core.goldens.store import INPUTS, MANIFEST, WriteStatus, sha256
from export_core.readers.hardware import instruction_set
from export_core.releases import load_calendar

LOG = logging.getLogger("export_core.capture")
LOCK = ".capture.lock"
LOCK_SECONDS = 60.0  # How long a call that is being written waits for another process to finish its own.

DIGITS = 12  # Of the digest of artifact and inputs, in the name of a case: an equal call is stored once.


@dataclass(frozen=True)
class _CaseStore:
    """The goldens of one captured case in a folder that several processes may share, and the bounds of all of them."""

    root: Path
    case: str
    writer: Writer
    at_most: int
    max_bytes: int

    def add(
        self, artifact: Artifact, inputs: Sequence[Leaf], outputs: Sequence[Leaf], platform: str
    ) -> WriteStatus | None:
        """Store a call, unless an equal one is stored; None where the bounds would be exceeded.

        Raises `ExportCompatError`.
        """
        envelope = envelope_of(artifact)
        jaxlib, jax = version("jaxlib"), version("jax")
        outputs_by = jaxlib if jax == jaxlib else f"{jaxlib}-jax{jax}"
        given = StatedFacts(origin=Origin(inputs="captured", outputs="captured", outputs_by=outputs_by))
        writer = self.writer
        if platform in envelope.platforms:
            writer = msgspec.structs.replace(writer, platform=platform)
        manifest, files = adopt_artifact(artifact, inputs, outputs, self.case, writer, given)
        digest = sha256((artifact.sha256 + manifest.files[INPUTS]).encode())[:DIGITS]
        manifest = msgspec.structs.replace(
            manifest,
            case=f"{self.case}.{digest}",
            instruction_set=instruction_set() if platform == "cpu" else manifest.instruction_set,
        )
        self.root.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(self.root / LOCK, timeout=LOCK_SECONDS):
            # A process that was killed before its golden was complete may have left the folder of a case.
            pattern = rf"{re.escape(self.case)}\.[0-9a-f]{{{DIGITS}}}"
            folders = [path for path in self.root.iterdir() if re.fullmatch(pattern, path.name)]
            cases = [path for path in folders if any(path.glob(f"[!.]*/{MANIFEST}"))]
            if any(path.name == manifest.case for path in cases):
                return WriteStatus.UNCHANGED
            size = sum(file.stat().st_size for path in cases for file in path.rglob("*"))
            if len(cases) >= self.at_most or size + sum(map(len, files.values())) > self.max_bytes:
                return None
            return GoldenStore(self.root).write(manifest, files)


class CapturedCall:
    """The function of an artifact, some calls of which become goldens. `capture` makes it.

    It is called as the function is, from any thread, and returns what the function returns. Writing a golden never
    fails a call: the first problem is logged as a warning of ``export_core.capture``, and is in `problem`.
    """

    problem: str
    """Why the last capture failed; empty if none did."""
    captured: int
    """The goldens that this object has written."""

    def __init__(self, call: Callable[..., Any], artifact: Artifact, store: _CaseStore, every: float) -> None:
        self.problem = ""
        self.captured = 0
        self._call = call
        self._artifact = artifact
        self._store = store
        self._every = every
        self._next = 0.0  # the time of the next capture, by the clock that `time.monotonic` reads
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if time.monotonic() < self._next:
            return self._call(*args, **kwargs)
        inputs = self._begin(args, kwargs)
        result = self._call(*args, **kwargs)
        if inputs is not None:
            self._finish(inputs, result)
        return result

    def __enter__(self) -> CapturedCall:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Capture no more, and wait until the golden that is being written is complete."""
        self._next = math.inf
        if self._writer is not None:
            self._writer.join()

    def _begin(self, args: Any, kwargs: Any) -> list[Any] | None:
        """The inputs of a call that is to be captured; None for one that is not."""
        from export_core.export import arguments

        if not self._starting.acquire(blocking=False):
            return None
        try:
            if time.monotonic() < self._next or (self._writer is not None and self._writer.is_alive()):
                return None
            self._next = time.monotonic() + self._every
            nbytes = arguments.nbytes((args, kwargs))
            if nbytes is None:
                return None
            size, most = len(self._artifact.data) + nbytes, self._store.max_bytes
            if size > most:  # before anything is copied
                raise GoldenError(f"expected a golden of at most {most:,} bytes (max_bytes), found {size:,}.")
            return arguments.held((args, kwargs))
        except Exception as error:
            self._report(error)
            return None
        finally:
            self._starting.release()

    def _finish(self, inputs: list[Any], result: Any) -> None:
        from export_core.export import arguments

        try:
            outputs = arguments.held(result)  # now: the caller may change the containers
            # Not a daemon: an interpreter that ends waits for it, and jax is not torn down under it.
            writer = threading.Thread(target=self._write, args=(inputs, outputs), name="jaxexport-capture")
            writer.start()
            self._writer = writer
        except Exception as error:
            self._report(error)

    def _write(self, inputs: list[Any], outputs: list[Any]) -> None:
        from export_core.export import arguments

        try:
            envelope = envelope_of(self._artifact)
            leaves = arguments.stored(inputs, envelope.in_avals), arguments.stored(outputs, envelope.out_avals)
            added = self._store.add(self._artifact, *leaves, arguments.platform_of(outputs))
        except Exception as error:  # whatever it is, the server continues
            self._report(error)
            return
        self.captured += added is WriteStatus.NEW
        if added is None:
            self._next = math.inf
            LOG.info("%s: no more goldens of %s: at_most or max_bytes is reached", self._store.root, self._store.case)

    def _report(self, error: Exception) -> None:
        level = logging.DEBUG if self.problem else logging.WARNING
        self.problem = f"{type(error).__name__}: {error}"
        LOG.log(level, "no golden of this call of %s: %s", self._store.case, self.problem)


def _check(case: str, every: float, at_most: int, max_bytes: int) -> None:
    if not is_plain_name(case):
        raise GoldenError(f"expected a case whose name a folder can have, such as models.attention, found {case!r}.")
    if not (every >= 0 and at_most > 0 and max_bytes > 0):
        raise GoldenError(
            "expected `every` to be at least 0 seconds, and at_most and max_bytes above 0, "
            f"found {every}, {at_most} and {max_bytes}."
        )


def capture(
    path_or_bytes: str | os.PathLike[str] | bytes | bytearray | memoryview,
    folder: str | os.PathLike[str],
    case: str,
    *,
    call: Callable[..., Any] | None = None,
    every: float = 3600.0,
    at_most: int = 10,
    max_bytes: int = 100_000_000,
    writer: str | None = None,
) -> CapturedCall:
    """Wrap the function of an artifact: from time to time, a call of it is stored as a golden.

    The first call is captured, and then one each `every` seconds. The golden has the artifact, the inputs of the call
    and what it returned; it is written by a thread of its own, and its manifest says which jaxlib the server has. Each
    is a case of its own, ``CASE.DIGEST``, so equal calls are stored once. Several processes may share a folder.

    Args:
        path_or_bytes: the artifact, or its file.
        folder: the folder of goldens. It is made by the first capture.
        case: what the names of all goldens begin with.
        call: the function, where the server has loaded the artifact itself. It takes what the artifact takes. Without
            it, the artifact is deserialized here, and its function jitted.
        every: seconds between two captures of this process.
        at_most: goldens of this case in the folder.
        max_bytes: bytes of all of them together, artifacts included.
        writer: the jaxlib that wrote the artifact, where several can have: ``0.11.2-jax0.12.0``.

    Raises:
        ArtifactError: the artifact cannot be read.
        GoldenError: its writer is not known, the case cannot be the name of a folder, or a bound is not positive.
    """
    from export_core.export import arguments  # now, since it takes time to load, and not in the first call

    data = path_or_bytes
    artifact = read_bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else read(data)
    envelope_of(artifact)
    _check(case, every, at_most, max_bytes)
    store = _CaseStore(Path(folder), case, writer_of(artifact, load_calendar(), writer), at_most, max_bytes)
    return CapturedCall(call or arguments.jitted_call(bytes(artifact.data)), artifact, store, every)

"""The artifacts in folders of any size, read in parallel: never more of them in memory than are being read."""

import functools
import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Generic, NamedTuple, TypeVar

from export_core.artifact import Artifact, ArtifactError, read_bytes
from export_core.artifact.artifact import is_of_tensorflow_alone, saved_model_in, unreadable, what_else
from export_core.base.errors import ExportCompatError
from export_core.base.processes import starting_processes
from export_core.base.text import plural
from export_core.base.untrusted import open_regular

Result = TypeVar("Result")

CHUNK = 64  # files that a process is given at once: 100 ms of work
SUFFIX = ".jaxexport"
HEAD = 1 << 14  # bytes that show what a file is
FEW = 4  # chunks that take less time than processes to start
_LINK = "a link to a folder"
AHEAD = 4  # chunks for each process that wait


class UnreadFilesError(ExportCompatError):
    """Folders whose artifacts could not all be read."""

    exit_code = 3


class LeftOut(Counter[str]):
    """The files in folders that are no artifacts, counted by kind, and the names of links to folders."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def add(self, path: str, kind: str) -> None:
        """Count a file of a kind."""
        self[kind] += 1
        if kind == _LINK:
            self.links.append(path)

    def lines(self) -> list[str]:
        """Return a line for each link to a folder, which was not read."""
        return [f"warning: {path}: {_LINK}, which is not followed: name the folder too." for path in self.links]


class Found(NamedTuple):
    """What was found in a folder: a file, or an entry that is left out or cannot be listed, and why."""

    path: str
    named: bool = False
    left_out: str = ""
    error: str = ""


def is_archive(path: str) -> bool:
    """Return whether a path is a folder of artifacts: any but a SavedModel, which is an artifact itself."""
    return os.path.isdir(path) and saved_model_in(path) == path  # noqa: PTH112 - a path is text, as messages show it


def files_of(paths: Iterable[str], *, hidden: bool = True) -> Iterator[Found]:
    """Yield everything that is named, and everything in the named folders, in the order of the disk.

    Links to files are followed, and links to folders are not: they may lead back. With `hidden`, also what is in hidden
    folders and virtual environments, which are left out otherwise.
    """
    for path in paths:
        if not is_archive(path):
            yield Found(saved_model_in(path), named=True)
            continue
        folders = [path]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if not entry.is_dir(follow_symlinks=False):
                            yield _found(entry)
                        elif hidden or not (entry.name.startswith(".") or os.path.lexists(f"{entry.path}/pyvenv.cfg")):
                            folders.append(entry.path)
                        else:
                            yield Found(entry.path, left_out="a hidden folder or a virtual environment")
            except OSError as error:  # also of a disk that fails in the middle of a folder
                yield Found(folder, error=error.strerror or str(error))


def _found(entry: os.DirEntry[str]) -> Found:
    try:
        if entry.is_file():
            return Found(entry.path)
        if not entry.is_symlink():
            return Found(entry.path, left_out="no plain file")  # a pipe would be waited for
        return Found(entry.path, left_out=_LINK if entry.is_dir() else "a broken link")
    except OSError as error:
        return Found(entry.path, error=error.strerror or str(error))


def artifact_in(found: Found) -> Artifact | str:
    """Return the artifact in a file, or why it is left out.

    A file that was named itself counts as an artifact, and so does one whose name ends as artifacts' names do. Raises
    `ArtifactError` where it cannot be read.
    """
    if found.left_out:
        return found.left_out
    if found.error:
        raise ArtifactError("a folder or file to read", found.error, name=found.path, advice="Check its permissions.")
    try:
        with open_regular(found.path, follow=True) as file:
            other = what_else(file.read(HEAD))
            if other is not None and not found.named and not found.path.endswith(SUFFIX):
                return other
            file.seek(0)
            data = file.read()
            if not found.named and is_of_tensorflow_alone(data):
                return "a SavedModel of TensorFlow alone"
            return read_bytes(data, found.path)
    except OSError as error:
        raise unreadable(error, found.path) from None


class ReadFile(NamedTuple, Generic[Result]):
    """The outcome of reading a file: a result, an error where it cannot be read, or why it is left out."""

    path: str
    result: Result | None = None
    error: str = ""
    left_out: str = ""


def read_folders(
    read: Callable[[Artifact], Result],
    paths: Sequence[str],
    left_out: LeftOut,
    jobs: int | None = None,
    *,
    hidden: bool = True,
) -> Iterator[ReadFile[Result]]:
    """Yield what `read` returns for each artifact among these files and in these folders, in order; or its error.

    Args:
        read: a function that other processes can import by its name.
        paths: files and folders.
        left_out: where files that are no artifacts are counted.
        jobs: how many processes read; 0 for one on each core.
        hidden: as `files_of` takes it.

    Raises:
        ArtifactError: There is no artifact.
        UnreadFilesError: A process was killed.
    """
    is_empty = True
    files = files_of(paths, hidden=hidden)
    for file in in_parallel(functools.partial(_read_file, read), files, jobs or os.cpu_count() or 1):
        if file.left_out:
            left_out.add(file.path, file.left_out)
        else:
            is_empty = False
            yield file
    if is_empty:
        raise no_artifacts(paths, left_out)


def _read_file(read: Callable[[Artifact], Result], found: Found) -> ReadFile[Result]:
    try:
        artifact = artifact_in(found)
        if isinstance(artifact, str):
            return ReadFile(found.path, left_out=artifact)
        return ReadFile(found.path, read(artifact))
    except ArtifactError as error:
        return ReadFile(found.path, error=str(error).removeprefix(f"{found.path}: "))
    except MemoryError:
        return ReadFile(found.path, error="expected memory to read it, found too little.")


def no_artifacts(paths: Sequence[str], left_out: LeftOut) -> ArtifactError:
    """Return the error for folders without an artifact: most likely, another folder was meant."""
    known = f"An artifact is known by its first bytes, or by a name that ends in {SUFFIX}."
    advice = " ".join([known, *left_out.lines()])
    found = f"none in {plural(left_out.total(), 'file')}"
    return ArtifactError("artifacts", found, name=" ".join(paths), advice=advice)


def in_parallel(read: Callable[[Found], Result], found: Iterable[Found], jobs: int) -> Iterator[Result]:
    """Yield what `read`, which other processes import, returns for each file, in order.

    Raises `UnreadFilesError` where a process was killed.
    """
    files = iter(found)
    chunks = iter(lambda: list(islice(files, CHUNK)), [])
    first = list(islice(chunks, FEW))
    if jobs == 1 or len(first) < FEW:
        yield from map(read, chain.from_iterable(chain(first, chunks)))
        return
    pending: deque[Future[list[Result]]] = deque()
    # New interpreters, since a process that has imported jax must not be forked.
    context = multiprocessing.get_context("spawn")
    leave_ctrl_c = (signal.SIGINT, signal.SIG_IGN)  # the command ends these processes itself
    with starting_processes():
        pool = ProcessPoolExecutor(jobs, context, initializer=signal.signal, initargs=leave_ctrl_c)
    with pool:
        try:
            for chunk in chain(first, chunks):
                with starting_processes():
                    pending.append(pool.submit(_read_all, read, chunk))
                if len(pending) > AHEAD * jobs:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        except BrokenProcessPool:
            raise UnreadFilesError(
                "expected all files to be read, found that a reading process was killed, most likely for its memory. "
                "With --jobs 1 less memory is needed."
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C nobody wants the rest


def _read_all(read: Callable[[Found], Result], chunk: list[Found]) -> list[Result]:
    return [read(one) for one in chunk]

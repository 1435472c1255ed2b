"""The artifacts in folders of any size, read in parallel, with only those in memory that are being read."""

import functools
import multiprocessing
import os
import signal
import threading
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
    """An error for folders in which not all artifacts could be read."""

    exit_code = 3


class LeftOut(Counter[str]):
    """The numbers of files in folders that are not artifacts, by kind, and the paths of links to folders."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def add(self, path: str, kind: str) -> None:
        """Count a file by its kind, such as "a gzip file", and note its path if it is a link to a folder."""
        self[kind] += 1
        if kind == _LINK:
            self.links.append(path)

    def lines(self) -> list[str]:
        """Return a warning for each link to a folder, since links to folders are not followed."""
        return [f"warning: {path}: {_LINK}, which is not followed: name the folder too." for path in self.links]


class Found(NamedTuple):
    """A path that the user named, or that is in a folder that the user named, with the reason if it is not read."""

    path: str
    named: bool = False  # Whether the user named this file itself.
    left_out: str = ""  # Why the path is left out; empty if it is not.
    error: str = ""  # Why the path cannot be listed; empty if it can.


def is_archive(path: str) -> bool:
    """Return whether a path is a folder that may hold artifacts: not a SavedModel, which is an artifact itself."""
    return os.path.isdir(path) and saved_model_in(path) == path  # noqa: PTH112 - a path is text, as messages show it


def files_of(paths: Iterable[str], *, hidden: bool = True) -> Iterator[Found]:
    """Yield the files among `paths`, and everything in the folders among them, in the order of the system's listing.

    Links to files are followed. Links to folders are not followed, since they may lead back. Hidden folders and virtual
    environments are searched only if `hidden` is true.
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
    """Return the artifact in a file, or the reason why the file is left out.

    A file that the user named counts as an artifact, and so does a file whose name ends in `SUFFIX`. Raises
    `ArtifactError` if an artifact cannot be read.
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
    """The outcome of reading a file: a result, an error, or the reason why the file is left out."""

    path: str
    result: Result | None = None  # What the reading function returned; None if the file was not read.
    error: str = ""  # Why the file cannot be read; empty if it was.
    left_out: str = ""  # Why the file is left out; empty if it is not.


def read_folders(
    read: Callable[[Artifact], Result],
    paths: Sequence[str],
    left_out: LeftOut,
    jobs: int | None = None,
    *,
    hidden: bool = True,
) -> Iterator[ReadFile[Result]]:
    """Yield the result of `read`, or the error, for each artifact among files and in folders, in order.

    Args:
        read: a function that other processes can import by its name.
        paths: files and folders.
        left_out: the counter to which files that are not artifacts are added.
        jobs: the number of processes that read; 0 or None for the number of cores.
        hidden: whether hidden folders and virtual environments are searched too.

    Raises:
        ArtifactError: There is no artifact in `paths`.
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
    """Return the error for folders without an artifact, with the number of files and a warning for each link."""
    known = f"An artifact is known by its first bytes, or by a name that ends in {SUFFIX}."
    advice = " ".join([known, *left_out.lines()])
    found = f"none in {plural(left_out.total(), 'file')}"
    return ArtifactError("artifacts", found, name=" ".join(paths), advice=advice)


def in_parallel(read: Callable[[Found], Result], found: Iterable[Found], jobs: int) -> Iterator[Result]:
    """Yield the result of `read` for each file, in order. Many files are read in `jobs` processes.

    `read` is a function that other processes can import by its name. Raises `UnreadFilesError` if a process was killed.
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
    with starting_processes():
        pool = ProcessPoolExecutor(jobs, context, initializer=_follow_the_command)
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
                "a process that read files was killed, most likely because memory ran out, so that not all files were "
                "read. Try --jobs 1, which needs less memory."
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)  # after Ctrl-C nobody wants the rest


def _follow_the_command() -> None:
    """Leave Ctrl-C to the command that started this process of a pool, and end with that command.

    If the command was killed, this process would otherwise wait forever for the next files.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    command = multiprocessing.parent_process()
    assert command

    def follow() -> None:
        command.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _read_all(read: Callable[[Found], Result], chunk: list[Found]) -> list[Result]:
    return [read(one) for one in chunk]

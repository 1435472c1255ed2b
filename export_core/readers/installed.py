"""The packages in an environment: a hash of them, and which files are damaged or belong to no package.

For the interpreter that runs now, a hash of what a cell can depend on.
"""

import base64
import functools
import hashlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from export_core.base.json_text import decode_json
from export_core.base.untrusted import read_regular

READY = "ready.json"  # The file whose presence says that an environment is complete.
_OF_THE_ENVIRONMENT = ("_virtualenv.py", "_virtualenv.pth")
"""What some versions of the installer put beside the packages."""
_IMPORTED = (".py", ".pyc", ".pth", ".so", ".pyd")


class Ready(msgspec.Struct, frozen=True):
    """The content of the file `READY`, which a build writes into an environment once it is complete."""

    checked: str  # The output of the recipe's check.
    lock: str  # `hash_of_installed`, under the key that environments of earlier versions have too.
    requirements: tuple[str, ...] = ()
    size: int | None = None  # Bytes of all files.
    packages: tuple[str, ...] = ()


def read_ready(folder: Path) -> Ready | None:
    """Return the content of an environment's `READY`; None if the file is missing, or is not what a build writes."""
    try:
        ready: Ready = decode_json(read_regular(folder / READY), Ready)
    except (OSError, msgspec.MsgspecError):
        return None
    return ready


def interpreter_in(folder: Path) -> Path:
    """Return the path of the interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def hash_of_installed(folder: Path) -> str:
    """Return a hash of an environment's content: the interpreter's version and every file of its packages.

    It is made from the SHA-256 sums in the packages' RECORD files. Files that the installer adds are left out, since
    they contain the folder's path.
    """
    lines = [line for line in (folder / "pyvenv.cfg").read_text().splitlines() if line.startswith("version")]
    for record in _records(folder):
        lines += [*_lines_of_packages(record), record.parent.name]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def metadata_of(folder: Path, package: str) -> Path | None:
    """Return the folder with the metadata of a package in an environment; None if the package is not installed."""
    infos = (record.parent for record in _records(folder))
    return next((info for info in infos if info.name.partition("-")[0] == package), None)


def damage_in(folder: Path) -> str:
    """Return which file of an environment is missing or has the wrong size, as a message; "" if none.

    Only sizes are compared: the contents of all files are 350 MB, too much to read each time.
    """
    python, ready = interpreter_in(folder), folder / READY
    if not python.exists():
        return f"{python}: no such interpreter"
    if not _records(folder):
        return f"{folder}: no package is installed"
    try:
        for path, expected in _file_sizes(folder, ready.stat().st_mtime_ns if ready.exists() else 0):
            if (size := os.stat(path).st_size) not in expected:  # noqa: PTH116 - thousands of files, and pathlib is slow
                sizes = " or ".join(map(str, sorted(expected)))
                return f"{path}: expected {sizes} bytes, as its package says, found {size}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def other_release_in(folder: Path, requirements: Iterable[str]) -> str:
    """Return which required package an environment lacks, or has in a different release, as a message; "" if none.

    Only the names of the folders with packages' metadata are read.
    """
    names = (record.parent.name.removesuffix(".dist-info").partition("-") for record in _records(folder))
    installed = {canonicalize_name(name): release for name, _, release in names}
    for text in requirements:
        try:
            required = Requirement(text)
            release = installed.get(canonicalize_name(required.name))
            fits = release is not None and required.specifier.contains(release, prereleases=True)
        except (InvalidRequirement, InvalidVersion):  # uv understood it
            continue
        if not fits and (required.marker is None or required.marker.evaluate()):
            return f"{folder}: expected {required}, found {release or 'no such package'}"
    return ""


_PLUGIN = re.compile(r"jax[-_](?:cuda|rocm)\d+[-_](?:plugin|pjrt)")


def other_plugins_in(folder: Path, jaxlib: str) -> str:
    """Return the plugins of jax in an environment whose release is not that of its jaxlib, in words; "" if none."""
    names = (record.parent.name.removesuffix(".dist-info").partition("-") for record in _records(folder))
    plugins = ((canonicalize_name(name), release) for name, _, release in names if _PLUGIN.fullmatch(name))
    return ", ".join(f"{name} {release}" for name, release in plugins if release != jaxlib)


_SMALL = 1 << 20  # Files up to this many bytes are read whole: `hashlib.file_digest` makes a buffer for each file.


class HashedFiles:
    """A cache of the SHA-256 of files, so that a file that many environments share by hard links is read once.

    `changed_in` holds `lock`: two threads that look at two new environments at once would read the same files twice.
    """

    def __init__(self) -> None:
        self._digests: dict[tuple[int, ...], bytes] = {}
        self.lock = threading.Lock()

    def digest(self, path: str) -> bytes:
        """Return the SHA-256 of a file. Raises `OSError`."""
        known = self._digests.get(_identity(os.stat(path)))  # noqa: PTH116 - thousands of files, and pathlib is slow
        if known is not None:
            return known
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            status = os.fstat(file.fileno())
            is_small = status.st_size <= _SMALL
            hashed = hashlib.sha256(file.read()) if is_small else hashlib.file_digest(file, "sha256")
            self._digests[_identity(status)] = digest = hashed.digest()
        return digest


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def changed_in(folder: Path, hashed: HashedFiles | None = None, *, is_new: bool = False) -> str:
    """Return which file of an environment does not have its package's content, or belongs to no package; "" if none.

    Every file that is not in `hashed` is read, which takes about half a second. Compiled bytecode is not examined: it
    belongs to no package.

    Args:
        folder: The environment.
        hashed: The hashes of files that were read before, in this environment or in others.
        is_new: Whether the environment was built a moment ago. Then large files that are still as unpacked are not
            read: hashing jaxlib's library of 330 MB takes a quarter of a second. They are read after a cell has
            crashed there (`give_up_damaged`).
    """
    hashed = hashed or HashedFiles()
    try:
        with hashed.lock:
            by_site: dict[Path, list[Path]] = {}
            for record in _records(folder):
                by_site.setdefault(record.parent.parent, []).append(record)
            for site, records in by_site.items():
                listed = {str(site / name) for name in _OF_THE_ENVIRONMENT}
                listed |= {f"{site}/{_name(line)}" for record in records for line in _lines(record)}
                recorded = _recorded(records)
                for path in _large_as_unpacked(records) if is_new else ():
                    recorded.pop(path, None)  # Two packages may list the same file.
                for path, expected in recorded.items():
                    digest = base64.urlsafe_b64encode(hashed.digest(path)).rstrip(b"=").decode()
                    if digest not in {content for content, _ in expected}:
                        return f"{path}: expected the content that its package lists, found other content"
                # Such as sitecustomize.py or a .pth file, which Python runs in each process, or a plugin of jax.
                imported = (path for path in _files_in(str(site)) if path.endswith(_IMPORTED))
                if other := next((path for path in imported if path not in listed), ""):
                    return f"{other}: expected only files of packages, found a file of no package"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


_LARGE = 64 << 20  # bytes
_UNPACKING_SECONDS = 60.0


def _large_as_unpacked(records: list[Path]) -> Iterator[str]:
    """Yield the large files that have not been changed since their packages were unpacked.

    An unchanged file has the size that its package lists, and nearly the same modification time as the package's
    METADATA. Editing a file in place, in any environment that shares it, changes that time.
    """
    for record in records:
        large = [(path, one) for path, one in _recorded([record]).items() if min(size for _, size in one) >= _LARGE]
        unpacked = os.stat(record.with_name("METADATA")).st_mtime if large else 0.0  # noqa: PTH116
        for path, expected in large:
            status = os.stat(path)  # noqa: PTH116
            sizes = {size for _, size in expected}
            if status.st_size in sizes and abs(status.st_mtime - unpacked) <= _UNPACKING_SECONDS:
                yield path


def _files_in(folder: str) -> Iterator[str]:
    """Yield the path of every file in a folder, without ``__pycache__`` folders, which Python fills on this machine."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (f"{parent}/{name}" for name in names)


def _records(folder: Path) -> list[Path]:
    """Return the path of each package's RECORD, whether or not the file exists."""
    # lib/python3.12/site-packages, and Lib/site-packages on Windows.
    patterns = ("[Ll]ib/python*/site-packages/*.dist-info", "Lib/site-packages/*.dist-info")
    return sorted({info / "RECORD" for pattern in patterns for info in folder.glob(pattern)})


def _lines(record: Path) -> list[str]:
    return record.read_text(encoding="utf-8").splitlines()


def _name(line: str) -> str:
    return line.rsplit(",", 2)[0].strip('"')


def _lines_with_hash(record: Path) -> list[str]:
    """Return the lines of a RECORD for files that a package came with, each "path,hash,size"."""
    return [line for line in _lines(record) if ",sha256=" in line and not line.startswith("..")]


def _lines_of_packages(record: Path) -> list[str]:
    """Return the lines of a RECORD for files that a package came with, without the package's metadata."""
    return [line for line in _lines_with_hash(record) if ".dist-info/" not in line]


def _recorded(records: list[Path]) -> dict[str, set[tuple[str, int]]]:
    """Return the (SHA-256, size) pairs that RECORD files list for each path.

    A path has several pairs if several packages install a file there, such as `docs/conf.py`.
    """
    files: dict[str, set[tuple[str, int]]] = {}
    for record in records:
        site = str(record.parent.parent)
        for line in _lines_with_hash(record):
            _, content, size = line.rsplit(",", 2)
            path = f"{site}/{_name(line)}"
            files.setdefault(path, set()).add((content.removeprefix("sha256="), int(size)))
    return files


@functools.lru_cache(maxsize=64)
def _file_sizes(folder: Path, built_at: int) -> tuple[tuple[str, set[int]], ...]:
    """Return every file of an environment's packages with its possible sizes in bytes, as RECORD files list them.

    `built_at` is the time of the build. The answer is cached until it differs.
    """
    return tuple((path, {size for _, size in expected}) for path, expected in _recorded(_records(folder)).items())


_DECIDING = ("jax", "jaxlib", "numpy", "ml_dtypes", "scipy", "opt_einsum", "flatbuffers")
"""Packages that a cell imports. The size and time of each of their files count, since a user may edit them in place."""
_RUN_AT_START = ("*.pth", "sitecustomize.py", "usercustomize.py")


@functools.cache
def hash_of_this_interpreter() -> str:
    """Return a hash that changes with this interpreter, its packages, and any file of a package that cells import.

    Of these files only size and time are read, which takes 10 ms instead of a second. Paths of folders are left out, so
    that another clone of a project with the same packages has the same hash. It is "" if a file or a
    package cannot be read.
    """
    lines = [sys.version, os.environ.get("PYTHONPATH", "")]
    try:
        for path in {Path(folder) for folder in sys.path if folder}:
            for record in path.glob("*.dist-info/RECORD"):
                lines += [record.parent.name, *(line for line in _lines_of_packages(record) if ".pth," not in line)]
            for file in (file for pattern in _RUN_AT_START for file in path.glob(pattern)):
                # Other lines of a .pth file name a folder, such as that of a package that is being developed.
                text = file.read_text(encoding="utf-8", errors="replace").splitlines()
                lines += [line for line in text if file.suffix != ".pth" or line.startswith("import")]
        for name in _DECIDING:
            spec = importlib.util.find_spec(name)
            for folder in (spec.submodule_search_locations if spec else None) or ():
                for path_text in _files_in(folder):
                    status = os.stat(path_text)  # noqa: PTH116 - thousands of files, and pathlib is slow
                    where = path_text.removeprefix(str(Path(folder).parent))
                    lines.append(f"{where} {status.st_size} {status.st_mtime_ns}")
    except (OSError, ValueError):  # ValueError: a module without an origin
        return ""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()

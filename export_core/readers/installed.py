"""What is installed in an environment: its hash, and what of it is damaged or does not belong to any package."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

READY = "ready.json"
"""The file that says that an environment is complete."""
_OF_THE_ENVIRONMENT = ("_virtualenv.py", "_virtualenv.pth")
"""What some versions of the installer put beside the packages."""
_IMPORTED = (".py", ".pyc", ".pth", ".so", ".pyd")


def interpreter_in(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def hash_of_installed(folder: Path) -> str:
    """A hash of an environment: of its interpreter's version and of every file of its packages.

    The packages' own RECORD files have the SHA-256 of each. Scripts and notes of the installer are left out: they name
    the folder.
    """
    lines = [line for line in (folder / "pyvenv.cfg").read_text().splitlines() if line.startswith("version")]
    for record in _records(folder):
        lines += lines_of_packages(record)
        lines.append(record.parent.name)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def metadata_of(folder: Path, package: str) -> Path | None:
    """The folder with the metadata of a package that is installed in an environment; None where it is not."""
    infos = (record.parent for record in _records(folder))
    return next((info for info in infos if info.name.partition("-")[0] == package), None)


def lines_of_packages(record: Path) -> list[str]:
    """The lines of a RECORD for the files that a package came with, without its metadata: path, hash, size."""
    return [line for line in _recorded_files(record) if ".dist-info/" not in line]


def damage_in(folder: Path) -> str:
    """Which file of an environment is gone or has the wrong size; empty for none. Contents are not read: 350 MB."""
    python, ready = interpreter_in(folder), folder / READY
    if not python.exists():
        return f"{python}: no such interpreter"
    try:
        for path, expected in _file_sizes(folder, ready.stat().st_mtime_ns if ready.exists() else 0):
            if (size := os.stat(path).st_size) not in expected:  # noqa: PTH116 - thousands of files, and pathlib is slow
                sizes = " or ".join(map(str, sorted(expected)))
                return f"{path}: expected {sizes} bytes, as its package says, found {size}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def changed_in(folder: Path) -> str:
    """Which file of an environment has another content than its package says, or is of none and would be imported.

    Empty for none. Every file is read, in about a second. Compiled bytecode is of no package and not looked at.
    """
    try:
        for site in sorted({record.parent.parent for record in _records(folder)}):
            records = [record for record in _records(folder) if record.parent.parent == site]
            listed = {str(site / name) for name in _OF_THE_ENVIRONMENT}
            listed |= {f"{site}/{_name(line)}" for record in records for line in _lines(record)}
            for path, expected in _recorded(records).items():
                if _content_hash(Path(path)) not in {content for content, _ in expected}:
                    return f"{path}: expected the content that its package says, found another"
            # Such as sitecustomize.py or a .pth file, which Python runs in every process, or a plugin, which jax loads.
            if other := next((path for path in _imported(site) if path not in listed), ""):
                return f"{other}: expected files of packages only, found one of none"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _imported(site: Path) -> Iterator[str]:
    """Every file that Python may run, but for compiled bytecode, which is made here."""
    for folder, folders, names in os.walk(site):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (f"{folder}/{name}" for name in names if name.endswith(_IMPORTED))


def _records(folder: Path) -> list[Path]:
    """The RECORD of each package, whether or not it exists."""
    # lib/python3.12/site-packages, and Lib/site-packages on Windows.
    patterns = ("[Ll]ib/python*/site-packages/*.dist-info", "Lib/site-packages/*.dist-info")
    return sorted({info / "RECORD" for pattern in patterns for info in folder.glob(pattern)})


def _lines(record: Path) -> list[str]:
    return record.read_text(encoding="utf-8").splitlines()


def _recorded_files(record: Path) -> list[str]:
    """The lines for files that a package came with: path, hash, size."""
    return [line for line in _lines(record) if ",sha256=" in line and not line.startswith("..")]


def _recorded(records: list[Path]) -> dict[str, set[tuple[str, int]]]:
    """The SHA-256 and size of each file of these packages.

    Some files have several: blackjax, dm-haiku and jraph all install `docs/conf.py`, and the last one wins.
    """
    files: dict[str, set[tuple[str, int]]] = {}
    for record in records:
        for line in _recorded_files(record):
            _, content, size = line.rsplit(",", 2)
            path = f"{record.parent.parent}/{_name(line)}"
            files.setdefault(path, set()).add((content.removeprefix("sha256="), int(size)))
    return files


def _name(line: str) -> str:
    return line.rsplit(",", 2)[0].strip('"')


def _content_hash(path: Path) -> str:
    """The SHA-256 of a file as a RECORD has it."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@functools.lru_cache(maxsize=64)
def _file_sizes(folder: Path, built_at: int) -> tuple[tuple[str, set[int]], ...]:
    """Every file of an environment's packages with its size, by their RECORDs; read again once it is built anew."""
    return tuple((path, {size for _, size in expected}) for path, expected in _recorded(_records(folder)).items())

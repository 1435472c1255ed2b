"""Where a test is: its file in the repository and the line of its function, for formats that point at lines."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from export_core.base.untrusted import read_regular


@dataclass(frozen=True)
class SourceLine:
    """A line of a file. `file` is relative to the root of the repository, with ``/`` between its parts."""

    file: str
    line: int

    @property
    def uri(self) -> str:
        """The file as a reference for formats that want one."""
        return quote(self.file)


def source_line(test: str, folder: Path = Path()) -> SourceLine | None:
    """The line of a test, named as pytest does (``tests/test_a.py::TestA::test_f[x]``), of a project in `folder`.

    None where the folder has no such file: results may come from elsewhere, and their text is not trusted. Where the
    function is not found, such as one that a base class has, the line is that of its class, else the first.
    """
    path, _, names = test.partition("::")
    name = PurePosixPath(path)
    if name.is_absolute() or ".." in name.parts or name.suffix != ".py" or "\\" in path:
        return None
    folder = folder.resolve()
    lines = _lines(folder / name)
    if lines is None:
        return None
    # Not the parameters, which may hold anything.
    parts = names.partition("[")[0].split("::")
    while parts and "::".join(parts) not in lines:
        parts.pop()
    inside = folder.relative_to(_repository(folder)) / name
    return SourceLine(inside.as_posix(), lines.get("::".join(parts), 1))


@functools.cache
def _lines(path: Path) -> dict[str, int] | None:
    """The line of each class and function in a file, by the names that lead to it; None if it cannot be read."""
    try:
        data = read_regular(path)
    except (OSError, ValueError):
        return None
    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return dict(_definitions(module, ""))


def _definitions(node: ast.Module | ast.ClassDef, within: str) -> list[tuple[str, int]]:
    found = []
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}{child.name}"
            found.append((name, child.lineno))
        if isinstance(child, ast.ClassDef):
            found += _definitions(child, f"{name}::")
    return found


def _repository(folder: Path) -> Path:
    """The root of the repository that a folder is in, else the folder: files are named from there by CI systems."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)

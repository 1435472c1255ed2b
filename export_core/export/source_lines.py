"""The lines of a user's source that equations of a function, and errors of jax, come from."""

from __future__ import annotations

import linecache
import os
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax

import export_core
from export_core.export.jaxprs import inner_jaxprs

_JAX = str(Path(jax.__file__).parent) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_OWN = str(Path(export_core.__file__).parent) + os.sep


class Frame(NamedTuple):
    """A line of source, outside jax."""

    file: str
    line: int
    function: str


def equations(jaxpr: Any, is_wanted: Callable[[Any], bool]) -> Iterator[tuple[str, tuple[Frame, ...]]]:
    """The primitive of each wanted equation, inner ones too, with its frames outside jax, the innermost first.

    `jaxpr` is open or closed, of any release since 0.4.24.
    """
    yield from _equations(getattr(jaxpr, "jaxpr", jaxpr), is_wanted, (), set())


def _equations(
    jaxpr: Any, is_wanted: Callable[[Any], bool], outer: tuple[Any, ...], seen: set[int]
) -> Iterator[tuple[str, tuple[Frame, ...]]]:
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    for equation in jaxpr.eqns:
        whole = (equation, *outer)
        if is_wanted(equation):
            # Since 0.9, a traceback ends where an inner jaxpr begins, and the outer equation has the rest.
            yield equation.primitive.name, tuple(frame for part in whole for frame in _frames(part))
        for inner in inner_jaxprs(equation.params):
            yield from _equations(inner, is_wanted, whole, seen)


def frames_of_error(error: BaseException) -> tuple[Frame, ...]:
    """The frames of the equation that jax could not lower, the innermost first; empty where it does not say them."""
    # jax raises its error from one that has the traceback of the equation.
    found = traceback.extract_tb(getattr(error.__cause__, "__traceback__", None))
    return tuple(
        Frame(frame.filename, frame.lineno or 0, frame.name) for frame in reversed(found) if not _is_jax(frame.filename)
    )


def _frames(equation: Any) -> tuple[Frame, ...]:
    # jax has no public name for this. `frames` exists in all releases from 0.4.24 to 0.12; without it, no line is told.
    frames = getattr(getattr(equation.source_info, "traceback", None), "frames", ())
    return tuple(
        Frame(frame.file_name, frame.line_num, frame.function_name) for frame in frames if not _is_jax(frame.file_name)
    )


def _is_jax(file: str) -> bool:
    return file.startswith(_JAX) or f"{os.sep}jax{os.sep}_src{os.sep}" in file


def call_text(primitive: str, frames: tuple[Frame, ...]) -> str:
    """``debug_print at model.py:4 in step: jax.debug.print("{}", x)``; names the library's file that makes the call."""
    if not frames:
        return primitive
    # A file `<string>` is an `__init__` that dataclasses made.
    written = (frame for frame in frames if _library(frame.file) is None and frame.file != "<string>")
    user = next(written, frames[0])
    by = "" if user == frames[0] else f" ({_path(frames[0])})"
    function = user.function.rpartition(".<locals>.")[2]
    source = linecache.getline(user.file, user.line).strip()
    return f"{primitive}{by} at {_path(user)}:{user.line} in {function}" + (f": {source}" if source else "")


def _path(frame: Frame) -> Path:
    """The file, from the folder of libraries or the working folder if it is inside one."""
    path, root = Path(frame.file), Path(_library(frame.file) or Path.cwd())
    return path.relative_to(root) if path.is_relative_to(root) else path


def _library(file: str) -> str | None:
    """The folder of packages, or of the standard library, that a file is in; None for the user's own."""
    # By name, since the folder in a compiled file is the one where it was compiled, which uv may have copied it from.
    installed = re.match(r".*[/\\](site|dist)-packages(?=[/\\])", file)
    if installed:
        return installed[0]
    return next((folder for folder in (_STANDARD, _OWN) if file.startswith(folder)), None)

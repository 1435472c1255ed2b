"""The calls in a function that call back into Python, which no artifact can hold, and the source lines they are on."""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax

import export_core
from export_core.export.jaxprs import inner_jaxprs

_SHOWN = 5
"""Calls that a message lists."""

_FUNCTIONALIZE = (
    "Export jax.jit(lambda *args: checkify.checkify(f)(*args)[1]): the error beside the result has other codes in each "
    "process."
)
_EQUINOX = "EQX_ON_ERROR=off leaves equinox's checks out, and throw=False those of the solvers that use it."
_HIDDEN = "No equation of the function makes the call: a primitive does where it is lowered, or a derivative."

_JAX = str(Path(jax.__file__).parent) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_OWN = str(Path(export_core.__file__).parent) + os.sep


class _Frame(NamedTuple):
    file: str
    line: int
    function: str


def describe_callbacks(jaxpr: Any) -> str:
    """A line for each call of a function that calls back into Python, and what to do.

    Args:
        jaxpr: of the function, closed, in any release since 0.4.24.
    """
    calls = list(_calls(getattr(jaxpr, "jaxpr", jaxpr), (), set()))
    if not calls:  # such as the linear_solve of lineax
        return "\n".join([_HIDDEN, *([_EQUINOX] if "equinox" in sys.modules else [])])
    lines = list(dict.fromkeys(_call_text(primitive, frames) for primitive, frames in calls))  # no duplicates, in order
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    files = {frame.file for _, frames in calls for frame in frames}
    if any(name == "check" for name, _ in calls):
        more.append(_FUNCTIONALIZE)
    if any(f"{os.sep}equinox{os.sep}" in file for file in files):
        more.append(_EQUINOX)
    return "\n".join([*lines[:_SHOWN], *more])


def _calls(jaxpr: Any, outer: tuple[_Frame, ...], seen: set[int]) -> Iterator[tuple[str, tuple[_Frame, ...]]]:
    """Each primitive that calls back, with its frames outside jax, the innermost first."""
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    for equation in jaxpr.eqns:
        # Since 0.9, a traceback ends where an inner jaxpr begins, and the outer equation has the rest.
        frames = (*_frames(equation), *outer)
        name = equation.primitive.name
        if "callback" in name or name in ("debug_print", "outside_call", "check"):
            yield name, frames
        for inner in inner_jaxprs(equation.params):
            yield from _calls(inner, frames, seen)


def _frames(equation: Any) -> tuple[_Frame, ...]:
    # jax has no public name for this. `frames` exists in all releases from 0.4.24 to 0.12; without it, no line is told.
    frames = getattr(getattr(equation.source_info, "traceback", None), "frames", ())
    return tuple(
        _Frame(frame.file_name, frame.line_num, frame.function_name)
        for frame in frames
        if not frame.file_name.startswith(_JAX) and f"{os.sep}jax{os.sep}_src{os.sep}" not in frame.file_name
    )


def _call_text(primitive: str, frames: tuple[_Frame, ...]) -> str:
    """``debug_print at model.py:4 in step: jax.debug.print("{}", x)``; names the library's file that makes the call."""
    if not frames:
        return primitive
    user = next((frame for frame in frames if _library(frame.file) is None), frames[0])
    by = "" if user == frames[0] else f" ({_path(frames[0])})"
    function = user.function.rpartition(".<locals>.")[2]
    source = linecache.getline(user.file, user.line).strip()
    return f"{primitive}{by} at {_path(user)}:{user.line} in {function}" + (f": {source}" if source else "")


def _path(frame: _Frame) -> Path:
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

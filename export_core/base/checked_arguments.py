"""Checks of arguments that other people's programs pass: one of a wrong type is one clear error, and no traceback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from export_core.base.text import shortened

if TYPE_CHECKING:
    from export_core.base.errors import ExportCompatError


def path_of(value: object, where: str, what: str, error: type[ExportCompatError]) -> Path:
    """Return the path that an argument gives as text or as a path object.

    Args:
        value: the argument.
        where: the function and the argument, as messages name them, such as ``read_run``.
        what: what must be at the path, such as ``a folder of results``.
        error: the type of the error to raise.

    Raises `error` for a value of another type.
    """
    require_type(value, (str, os.PathLike), where, f"the path of {what}", error)
    return Path(value)  # type: ignore[arg-type]  # a path, as was just checked


def require_type(
    value: object, kind: type | tuple[type, ...], where: str, expected: str, error: type[ExportCompatError]
) -> None:
    """Raise `error` unless a value is of the type `kind`.

    `where` is the name of the argument in the message, and `expected` says what the argument must be.
    """
    if not isinstance(value, kind):
        found = shortened(repr(value), 60)
        raise error(f"{where}: expected {expected}, found {found} of type {type(value).__name__}.")

"""The names of callables of other people, which may be missing or no text: some libraries answer with an object."""

from collections.abc import Callable
from typing import Any

_WRAPPED = ("__module__", "__name__", "__qualname__", "__doc__")


def text_attributes(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a callable's attributes that are text, for `assigned` of `functools.wraps`.

    Python accepts only text as the name of a function, but a wrapper of equinox has an object as its name.
    """
    return tuple(name for name in _WRAPPED if isinstance(getattr(function, name, None), str))


def name_of(function: object, default: str) -> str:
    """Return the `__name__` of a callable, or `default` if the callable has no `__name__` that is text."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else default

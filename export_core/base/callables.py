"""The names of callables of other people, which may be missing or no text: some libraries answer with an object."""

from collections.abc import Callable
from typing import Any

_WRAPPED = ("__module__", "__name__", "__qualname__", "__doc__")


def text_attributes(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the attributes of a callable that are text, as the `assigned` of `functools.wraps`.

    Python accepts only text as the name of a function, and a wrapper of equinox has an object there.
    """
    return tuple(name for name in _WRAPPED if isinstance(getattr(function, name, None), str))


def name_of(function: object, default: str) -> str:
    """Return the `__name__` of a callable; `default` if it has none, or one that is no text."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else default

"""What do the fields of a type mean: the comments behind them, or docstrings below. Both cost nothing at run time."""

from __future__ import annotations

import enum
import functools
import operator
import types
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import msgspec


def types_in(kind: object) -> Iterator[type]:
    """A type of data and all that its fields have, each once: structs, data classes, named tuples, enumerations."""
    seen: set[type] = set()
    left = [kind]
    while left:
        found = left.pop()
        left += typing.get_args(found)
        if isinstance(found, type) and not isinstance(found, types.GenericAlias) and found not in seen:
            has_fields = issubclass(found, msgspec.Struct) or is_dataclass(found) or _is_named_tuple(found)
            if has_fields or issubclass(found, enum.Enum):
                seen.add(found)
                yield found
            if has_fields:
                left += typing.get_type_hints(found, include_extras=True).values()


def as_written(kind: Any) -> Any:
    """A type as its JSON is: a named tuple, which `as_dict` writes, is an object with all its fields."""
    if _is_named_tuple(kind):
        names = kind.shown(kind) if hasattr(kind, "shown") else kind._fields  # type: ignore[attr-defined]
        fields = {name: _type_of(kind, name) for name in names}
        made = typing.TypedDict(kind.__name__, fields)  # type: ignore[operator, misc]
        made.__doc__ = kind.__doc__
        return made
    parts = tuple(map(as_written, typing.get_args(kind)))
    if not parts or typing.get_origin(kind) is None:
        return kind
    return functools.reduce(operator.or_, parts) if isinstance(kind, types.UnionType) else kind.__origin__[parts]


def _type_of(kind: type, name: str) -> Any:
    """The type of a field as its JSON is, or that of a property with what its docstring says."""
    if of := typing.get_type_hints(kind).get(name):
        return as_written(of)
    getter = getattr(kind, name).fget
    returned = typing.get_type_hints(getter)["return"]
    return typing.Annotated[returned, msgspec.Meta(description=getter.__doc__)]


def _is_named_tuple(kind: object) -> typing.TypeGuard[type[tuple[Any, ...]]]:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")

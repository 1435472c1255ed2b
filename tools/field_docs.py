"""The meaning of a type's fields, read from its source code: the comment behind a field, or the docstring below it."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import io
import itertools
import operator
import sys
import tokenize
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

import msgspec


def types_in(kind: object) -> Iterator[type]:
    """Yield all types of data in `kind`: itself, the types of its fields, the types of their fields, and so on.

    Types of data are structs, data classes, named tuples and enumerations. Each is yielded once.
    """
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
                left += _hints(found, include_extras=True).values()


def as_written(kind: Any) -> Any:
    """Return a type in which each named tuple of `kind` is replaced by an object, since output in JSON shows it so.

    The object has the fields that the tuple's method `shown` lists, or all fields if the tuple has no such method.
    """
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
    """Return the type that a field or property of a named tuple has in JSON, by its name.

    The type of a property has the property's docstring as its description.
    """
    if of := _hints(kind).get(name):
        return as_written(of)
    getter = getattr(kind, name).fget
    returned = _hints(getter)["return"]
    return typing.Annotated[returned, msgspec.Meta(description=getter.__doc__)]


def _hints(of: Any, *, include_extras: bool = False) -> dict[str, Any]:
    """Return the types of a class's fields, or of a function, some of whose modules do without `typing`."""
    return typing.get_type_hints(of, localns={"Any": Any}, include_extras=include_extras)


def _is_named_tuple(kind: object) -> typing.TypeGuard[type[tuple[Any, ...]]]:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


@functools.cache
def field_docs(kind: type) -> dict[str, str]:
    """Return the meaning of each field of a class, own or inherited, or of each member of an enumeration, by name.

    A meaning is the comment behind the field, or the docstring below it. The dict is empty without source code.
    """
    package = kind.__module__.partition(".")[0]
    own_bases = [base for base in kind.__bases__ if base.__module__.partition(".")[0] == package]
    inherited = {name: text for base in own_bases for name, text in field_docs(base).items()}
    # The source of the module, not of the class: `with_feature_keys` makes classes that have no source of their own.
    try:
        source = inspect.getsource(sys.modules[kind.__module__])
    except OSError:  # an installation without source code
        return {}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    classes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    body = next(node.body for node in classes if node.name == kind.__name__)
    docs: dict[str, str] = {}
    for statement, below in itertools.zip_longest(body, body[1:]):
        text = comments.get(statement.end_lineno or 0, "").removeprefix("# ")
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            text = " ".join(below.value.value.split())
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        names = (target.id for target in targets if isinstance(target, ast.Name))
        docs |= {name: text for name in names if text and not text.startswith(("fmt:", "noqa", "type:"))}
    return inherited | docs


def add_field_docs(schema: Mapping[str, Any], kinds: Iterable[type]) -> None:
    """Add the meaning of the fields of these types to a JSON Schema, as the description of fields that have none."""
    for kind in (kind for kind in kinds if kind.__name__ in schema["$defs"]):
        fields, docs = schema["$defs"][kind.__name__].get("properties", {}), field_docs(kind)
        fields |= {name: {"description": docs[name], **fields[name]} for name in docs.keys() & fields.keys()}

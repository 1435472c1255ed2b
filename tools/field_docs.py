"""What do the fields of a type mean: the docstrings below them, which cost nothing when the type is used."""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import itertools
import textwrap
import types
import typing
from collections.abc import Iterator

import msgspec


@functools.cache
def field_docs(kind: type) -> dict[str, str]:
    """The text below each field of a class, and below each member of an enumeration, in one line."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    return _docs_below(typing.cast(ast.ClassDef, definition).body)


def _docs_below(body: list[ast.stmt]) -> dict[str, str]:
    return {
        name: " ".join(below.value.value.split())
        for statement, below in itertools.pairwise(body)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
        for name in _assigned(statement)
    }


def _assigned(statement: ast.stmt) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def types_in(kind: object) -> Iterator[type]:
    """A type of data and all that its fields have, each once: structs, typed dictionaries, enumerations."""
    seen: set[type] = set()
    left = [kind]
    while left:
        found = left.pop()
        left += typing.get_args(found)
        if isinstance(found, type) and not isinstance(found, types.GenericAlias) and found not in seen:
            if issubclass(found, (msgspec.Struct, enum.Enum)) or typing.is_typeddict(found):
                seen.add(found)
                yield found
            if not issubclass(found, enum.Enum) and (issubclass(found, msgspec.Struct) or typing.is_typeddict(found)):
                left += typing.get_type_hints(found, include_extras=True).values()

"""The files that a run and a golden have, and what `--json` prints: the fields of each, and the types inside.

Types of which no page needs the fields are in the JSON Schema alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tools.reference.schema_fields import OF_FILES, fields, section
from tools.schemas import schema

FILES = ("manifest", "artifacts", "result", "summary")
OUTPUT = (
    "inspect",
    "inventory",
    "audit",
    "diff",
    "converted",
    "plan",
    "comparison",
    "bisection",
    "explanation",
    "deploy",
    "forecast",
    "releases",
    "trend",
)


def fields_of(name: str) -> Callable[[], str]:
    """The fields of one file."""
    return lambda: fields(schema(name))


def types_of_the_files() -> str:
    """A section for each type in `OF_FILES`."""
    homes = {kind: found for found in map(schema, FILES) for kind in found["$defs"]}
    return "\n".join(section(homes[name], name) for name in OF_FILES)


def _parts() -> Iterator[tuple[str, Callable[[], str]]]:
    for name in (*FILES, *OUTPUT):
        yield f"fields of {name}", fields_of(name)
    yield "types of the files", types_of_the_files


PARTS = dict(_parts())

"""The parts about files and JSON: fields of the files of runs and goldens, and field names of what `--json` prints.

A type that no page describes is described in its JSON Schema alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tools.reference.markdown import code
from tools.reference.schema_fields import OF_FILES, fields, section, whole
from tools.schemas import KINDS, schema

FILES = ("manifest", "artifacts", "result", "summary")
POLICY = "policy"
"""The document that is left out here, since docs/reference/policy.md describes it."""


def fields_of(name: str) -> Callable[[], str]:
    """Return a function that returns the list of the fields of a file."""
    return lambda: fields(schema(name))


def names_of(name: str) -> str:
    """Return the names of the fields of a document, separated by commas."""
    return ", ".join(map(code, whole(schema(name))["properties"]))


def types_of_the_files() -> str:
    """Return a section for each type in `OF_FILES`, with its fields."""
    homes = {kind: found for found in map(schema, FILES) for kind in found["$defs"]}
    return "\n".join(section(homes[name], name) for name in OF_FILES)


def output() -> str:
    """Return a list of the documents that commands print, each with its schema and the names of its fields."""
    return "\n".join(_document(name) for name in KINDS if name not in (*FILES, POLICY))


def _document(name: str) -> str:
    about = KINDS[name][1]
    return f"- [{name}.schema.json](../../schema/{name}.schema.json): {about}.\n  Fields: {names_of(name)}.\n"


def _parts() -> Iterator[tuple[str, Callable[[], str]]]:
    for name in FILES[1:]:
        yield f"fields of {name}", fields_of(name)
    yield "names of manifest", lambda: f"Fields: {names_of('manifest')}."
    yield "types of the files", types_of_the_files
    yield "output", output


PARTS = dict(_parts())

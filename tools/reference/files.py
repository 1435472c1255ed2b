"""The fields of the files of runs and goldens, and the names of the fields that `--json` prints.

A type whose fields no page needs is in the JSON Schema alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tools.reference.markdown import code
from tools.reference.schema_fields import OF_FILES, fields, section, whole
from tools.schemas import KINDS, schema

FILES = ("manifest", "artifacts", "result", "summary")
POLICY = "policy"
"""The policy has a page of its own."""


def fields_of(name: str) -> Callable[[], str]:
    """Return a function that lists the fields of one file."""
    return lambda: fields(schema(name))


def names_of(name: str) -> str:
    """Return the names of the fields of a document."""
    return ", ".join(map(code, whole(schema(name))["properties"]))


def types_of_the_files() -> str:
    """Return a section for each type in `OF_FILES`."""
    homes = {kind: found for found in map(schema, FILES) for kind in found["$defs"]}
    return "\n".join(section(homes[name], name) for name in OF_FILES)


def output() -> str:
    """Return the documents that commands print, each with its schema and the names of its fields."""
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

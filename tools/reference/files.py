"""The files that a run and a golden have, and what `--json` prints: a table for each, and the types inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from export_core.base.field_docs import add_field_docs
from export_core.releases.calendar import CalendarFile
from export_core.run.plan_record import PlanRecord
from tools.field_docs import types_in
from tools.reference.schema_tables import fields, nested, whole
from tools.schemas import KINDS, schema

FILES = ("manifest", "artifacts", "result", "summary", "plan.json", "export_releases.yaml")
OUTPUT = (
    "inspect",
    "inventory",
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
WITHOUT_SCHEMA: dict[str, type] = {"plan.json": PlanRecord, "export_releases.yaml": CalendarFile}
"""Files that only this tool reads, or that a policy's schema describes."""


def schema_of(name: str) -> dict[str, Any]:
    """The published schema, or for `WITHOUT_SCHEMA` one in the same form."""
    if name not in WITHOUT_SCHEMA:
        return schema(name)
    kind = WITHOUT_SCHEMA[name]
    made = msgspec.json.schema(kind)
    add_field_docs(made, types_in(kind))
    return made


def fields_of(name: str) -> Callable[[], str]:
    """The table of one file."""
    return lambda: fields(whole(schema_of(name)))


def types_of(names: tuple[str, ...]) -> Callable[[], str]:
    """The types inside of several files."""
    return lambda: nested([(schema_of(name), _kind(name)) for name in names])


def _kind(name: str) -> type:
    return WITHOUT_SCHEMA[name] if name in WITHOUT_SCHEMA else KINDS[name][0]


def _parts() -> Iterator[tuple[str, Callable[[], str]]]:
    for name in (*FILES, *OUTPUT):
        yield f"fields of {name.partition('.')[0] if name in KINDS else name.replace('.', ' ')}", fields_of(name)
    yield "types of the files", types_of(FILES)
    yield "types of the output", types_of(OUTPUT)


PARTS = dict(_parts())

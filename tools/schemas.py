"""JSON Schemas of the files that people and other programs read and write: manifest, policy, results, inspections.

``python -m tools.schemas [FOLDER]`` writes them. A test checks that the files in schema/ agree with the types.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
import sys
from pathlib import Path
from typing import Any

import msgspec

from export_core.base.facts import known_facts
from export_core.base.feature import FOLDER, features
from export_core.goldens import Manifest
from export_core.goldens.conversion_record import ConversionRecord
from export_core.judge import Result, Summary
from export_core.policy import Policy
from export_core.policy.known_issues import WrittenIssue
from export_core.policy.model import SCHEMA_FILE, policy_schema
from export_core.releases.release_list import DatedCalendar
from export_core.report.plan_report import PlanReport
from export_core.run.plan_record import PlanRecord
from tools import renew
from tools.field_docs import add_field_docs, as_written, types_in

DIALECT = "https://json-schema.org/draft/2020-12/schema"
IDENTIFIER = "urn:jaxexport:schema:{}"
"""The `$id` of a schema. It is a name, not an address, so it is the same in every fork and mirror."""

KERNEL: dict[str, tuple[type, str]] = {
    "converted": (
        ConversionRecord,
        "OUT.converted.json, beside what `jaxexport convert` made: its original, each rewrite, what was verified",
    ),
    "knowledge": (WrittenIssue, "an entry of a table of known issues, such as those of export_core/knowledge/data"),
    "manifest": (Manifest, "golden.yaml: what a golden is, who wrote it, and the SHA-256 of its files"),
    "plan": (PlanReport, "what `jaxexport matrix --dry-run --json` prints: the cells of a matrix before it runs"),
    "policy": (Policy, "export_compat.yaml: what a project asks for"),
    "recorded_plan": (PlanRecord, "plan.json: what decides the results of a run, part by part, and which cells it has"),
    "releases": (
        DatedCalendar,
        "what `jaxexport releases list --json` prints: the calendar with its windows as of a day",
    ),
    "result": (Result, "one line of results.jsonl: a judged cell"),
    "summary": (Summary, "summary.json: what was planned, what happened, the exit code"),
}


OF_FEATURES = {
    schema: (pkgutil.resolve_name(f"{FOLDER}.{name}.{where}"), title)
    for name, feature in features().items()
    for schema, (where, title) in feature.schemas.items()
}
KINDS = dict(sorted((KERNEL | OF_FEATURES).items()))


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one of `KINDS`. Callers must not change the dict, since it is cached."""
    kind, title = KINDS[name]
    of_type = policy_schema() if kind is Policy else msgspec.json.schema(as_written(kind))
    for part in of_type["$defs"].values():
        if "description" in part:  # a docstring, indented as in its source
            part["description"] = inspect.cleandoc(part["description"])
    made = {"$schema": DIALECT, "$id": IDENTIFIER.format(name), "title": title, **of_type}
    add_field_docs(made, types_in(kind))
    if kind is Result:
        _add_facts(made)
    return made


def _add_facts(made: dict[str, Any]) -> None:
    """Add the facts that features define to the schema of a result. Other keys of `facts` may hold anything."""
    facts = known_facts().values()
    schemas, definitions = msgspec.json.schema_components([fact.kind for fact in facts], ref_template="#/$defs/{name}")
    for fact in facts:
        add_field_docs({"$defs": definitions}, types_in(fact.kind))
    made["$defs"] |= definitions
    made["$defs"]["Result"]["properties"]["facts"]["properties"] = {
        fact.name: {"description": fact.meaning, **own} for fact, own in zip(facts, schemas, strict=True)
    }


def written(name: str) -> bytes:
    """Return the bytes of a schema's file in schema/."""
    return msgspec.json.format(msgspec.json.encode(schema(name)), indent=2) + b"\n"


def main(folder: Path) -> None:
    """Write each schema to ``NAME.schema.json`` in a folder, and the policy's schema also into the package."""
    for name in KINDS:
        renew(folder / f"{name}.schema.json", written(name))
    renew(SCHEMA_FILE, written("policy"))


if __name__ == "__main__":
    main(Path(*sys.argv[1:] or ["schema"]))

"""What do the files that people and other programs read and write look like?

JSON Schemas of manifest, policy, results, inspections.

``python -m tools.schemas [FOLDER]`` writes them; a test keeps those in schema/ equal to what the types say.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from export_core.features.adopt.archive import ArtifactList
from export_core.features.compare_runs.comparison import BaselineReport
from export_core.features.compare_runs.trend import Trend
from export_core.features.deploy.answers import Deployability
from export_core.features.forecast.forecast import Forecast
from export_core.features.inspect.facts import Inspection
from export_core.features.inspect.inventory import InventoryRow
from export_core.features.why.bisect.report import Bisection
from export_core.features.why.explain.explanation import Explanation
from export_core.goldens import Manifest
from export_core.goldens.conversion_record import ConversionRecord
from export_core.judge import Result, Summary
from export_core.policy import Policy
from export_core.policy.model import TITLE, policy_schema, titled
from export_core.releases.release_list import DatedCalendar
from export_core.report.plan_report import PlanReport
from tools.field_docs import as_written, field_docs, types_in

KINDS: dict[str, tuple[type, str]] = {
    "artifacts": (ArtifactList, "artifacts.yaml: what belongs to each artifact of an archive"),
    "bisection": (
        Bisection,
        "what `jaxexport bisect --json` prints: since which release a cell fails, and what brought that",
    ),
    "comparison": (
        BaselineReport,
        "what `jaxexport judge NEW --baseline OLD --json` prints: what is different from an earlier run",
    ),
    "converted": (
        ConversionRecord,
        "OUT.converted.json, beside what `jaxexport convert` made: its original, each rewrite, what was verified",
    ),
    "deploy": (
        Deployability,
        "what `jaxexport can-i-deploy --json` prints: whether artifacts run in the places of the policy",
    ),
    "explanation": (
        Explanation,
        "what `jaxexport explain --json` prints, and explanation.json in a bundle: why a cell fails, and what to do",
    ),
    "forecast": (
        Forecast,
        "what `jaxexport forecast --json` prints: the days ahead on which something happens to the goldens",
    ),
    "inspect": (Inspection, "what `jaxexport inspect --json` prints: everything that is told of one artifact"),
    "inventory": (InventoryRow, "a line of what `jaxexport inspect DIR --json` prints: a file of an archive"),
    "manifest": (Manifest, "golden.yaml: what a golden is, who wrote it, and the SHA-256 of its files"),
    "plan": (PlanReport, "what `jaxexport plan --json` prints: the cells of a matrix before it runs"),
    "policy": (Policy, TITLE),
    "releases": (
        DatedCalendar,
        "what `jaxexport releases list --json` prints: the calendar with its windows as of a day",
    ),
    "result": (Result, "one line of results.jsonl: a judged cell"),
    "summary": (Summary, "summary.json: what was planned, what happened, the exit code"),
    "trend": (Trend, "what `jaxexport trend --json` prints: in which release which outputs changed"),
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one of `KINDS`."""
    kind, title = KINDS[name]
    if kind is Policy:
        return policy_schema()
    made = titled(name, title, msgspec.json.schema(as_written(kind)))
    for part in types_in(kind):
        for field, text in field_docs(part).items():
            if field in (properties := made["$defs"].get(part.__name__, {}).get("properties", {})):
                properties[field] = {"description": text, **properties[field]}
    return made


def written(name: str) -> bytes:
    """The bytes of its file in schema/."""
    return msgspec.json.format(msgspec.json.encode(schema(name)), indent=2) + b"\n"


def main(folder: Path) -> None:
    """Write each schema to ``<name>.schema.json``."""
    for name in KINDS:
        (folder / f"{name}.schema.json").write_bytes(written(name))


if __name__ == "__main__":
    main(Path(*sys.argv[1:] or ["schema"]))

"""docs/evidence/coverage.md and coverage.csv, from the goldens alone: `python -m tools.coverage_page`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import yaml

from export_core.artifact.audit import PLATFORMS
from export_core.features.inspect.coverage import SECTIONS, Coverage, Row, coverage
from export_core.goldens import GoldenStore

ROOT = Path(__file__).parents[1]
NOT_COVERED = ROOT / "tests" / "compat" / "not_covered.yaml"
PAGE = ROOT / "docs" / "evidence" / "coverage.md"
DATA = PAGE.with_suffix(".csv")
WHAT = {
    "targets": "custom-call targets",
    "primitives": "primitives, of the jaxprs",
    "dtypes": "dtypes",
    "effects": "effects",
    "features": "options, trees, kinds of shapes and shardings",
    "formats": "formats and versions",
}

TEXT = """# What the goldens of this project cover

What an artifact can hold, and how much of it is in a golden of this project. The last column counts what the newest jax
can put into an artifact, and no case here does.

| | covered | {platforms} | by two writers | without a case |
|---|---|{lines}---|---|
{sections}

[`coverage.csv`](coverage.csv) has a line for each name: how many cases have it, on each platform, and by which jaxlib
releases they were written. A target counts only for the platforms that it belongs to.

## Without a case

All names are in [`not_covered.yaml`](../../tests/compat/not_covered.yaml). `nox -s tests_newest` fails when the
installed jax has a stable target, a primitive with a lowering, a dtype, an effect or a format that is neither there nor
in a golden.

| names | why no case has them |
|---|---|
{reasons}

Made by `python -m tools.coverage_page`. `jaxexport goldens list --coverage --goldens DIR` prints what a folder of your
own covers.
"""


def groups(section: str) -> list[tuple[list[str], str]]:
    """Names that have no case, and the reason."""
    listed = yaml.safe_load(NOT_COVERED.read_text(encoding="utf-8")).get(section, [])
    return [(group["names"], group["reason"]) for group in listed]


def exemptions(section: str) -> set[str]:
    """All names of a section that have no case."""
    return {name for names, _ in groups(section) for name in names}


def page(covered: Coverage) -> str:
    """The page."""
    return TEXT.format(
        platforms=" | ".join(PLATFORMS),
        lines="---|" * len(PLATFORMS),
        sections="\n".join(_counts(section, list(covered[section].values())) for section in SECTIONS),
        reasons="\n".join(
            f"| `{names[0]}`{f' and {len(names) - 1} more' if names[1:] else ''} | {reason} |"
            for section in SECTIONS
            for names, reason in groups(section)
        ),
    )


def _counts(section: str, rows: list[Row]) -> str:
    numbers = [len(rows), *(sum(bool(row.platforms[platform]) for row in rows) for platform in PLATFORMS)]
    numbers += [sum(len(row.writers) > 1 for row in rows), len(exemptions(section))]
    return f"| {WHAT[section]} | {' | '.join(map(str, numbers))} |"


def data(covered: Coverage) -> str:
    """coverage.csv: a line for each name."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("section", "name", "cases", *PLATFORMS, "writers"))
    for section in SECTIONS:
        for name, row in sorted(covered[section].items()):
            counts = [len(row.platforms[platform]) for platform in PLATFORMS]
            lines.writerow(
                (section, name, len(row.cases), *counts, " ".join(jaxlib for _, jaxlib in sorted(row.writers)))
            )
    return text.getvalue()


if __name__ == "__main__":
    found = coverage(GoldenStore(ROOT / "golden").goldens())
    PAGE.write_text(page(found), encoding="utf-8")
    DATA.write_text(data(found), encoding="utf-8")

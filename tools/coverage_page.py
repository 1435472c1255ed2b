"""The writer of docs/evidence/coverage.md and coverage.csv: `python -m tools.coverage_page`.

What is covered is read from the files of this project's goldens; nothing is run.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from export_core.base.platforms import PLATFORMS
from export_core.features.inspect.coverage import SECTIONS, Coverage, Row, coverage
from export_core.goldens import GoldenStore
from tools import renew
from tools.marked import csv_text, filled, table

ROOT = Path(__file__).parents[1]
NOT_COVERED = ROOT / "tests" / "compat" / "not_covered.yaml"
PAGE = ROOT / "docs" / "evidence" / "coverage.md"
DATA = PAGE.with_suffix(".csv")
TITLES = {
    "targets": "custom-call targets",
    "primitives": "primitives, of the jaxprs",
    "dtypes": "dtypes",
    "effects": "effects",
    "features": "options, trees, kinds of shapes and shardings",
    "formats": "formats and versions",
}


def groups(section: str) -> list[tuple[list[str], str]]:
    """Return the groups of names in a section of not_covered.yaml, each with the reason why no case covers it."""
    listed = yaml.safe_load(NOT_COVERED.read_text(encoding="utf-8")).get(section, [])
    return [(group["names"], group["reason"]) for group in listed]


def exemptions(section: str) -> set[str]:
    """Return all names in a section of not_covered.yaml, which lists what no case covers."""
    return {name for names, _ in groups(section) for name in names}


def page(covered: Coverage, text: str) -> str:
    """Return `text`, the page, with its tables replaced by tables of what is covered."""
    sections = ((TITLES[section], *_counts(section, list(covered[section].values()))) for section in SECTIONS)
    reasons = (
        (f"`{names[0]}`{f' and {len(names) - 1} more' if names[1:] else ''}", reason)
        for section in SECTIONS
        for names, reason in groups(section)
    )
    tables = {
        "sections": table(("", "covered", *PLATFORMS, "by two writers", "without a case"), sections),
        "reasons": table(("names", "why no case has them"), reasons),
    }
    return filled(text, tables)


def _counts(section: str, rows: list[Row]) -> list[int]:
    on = (sum(bool(row.platforms[platform]) for row in rows) for platform in PLATFORMS)
    return [len(rows), *on, sum(len(row.writers) > 1 for row in rows), len(exemptions(section))]


def data(covered: Coverage) -> str:
    """Return the text of coverage.csv, which has a line for each covered name, such as a primitive or a dtype."""
    rows = (
        {
            "section": section,
            "name": name,
            "cases": len(row.cases),
            **{platform: len(row.platforms[platform]) for platform in PLATFORMS},
            "writers": " ".join(jaxlib for _, jaxlib in sorted(row.writers)),
        }
        for section in SECTIONS
        for name, row in sorted(covered[section].items())
    )
    return csv_text(list(rows))


if __name__ == "__main__":
    found = coverage(GoldenStore(ROOT / "golden").goldens())
    renew(PAGE, page(found, PAGE.read_text(encoding="utf-8")))
    renew(DATA, data(found))

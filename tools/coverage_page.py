"""The page docs/evidence/coverage.md: ``python -m tools.coverage_page``."""

from __future__ import annotations

from pathlib import Path

import yaml

from export_core.artifact.audit import PLATFORMS
from export_core.features.inspect.coverage import SECTIONS, Coverage, Row, coverage
from export_core.goldens import GoldenStore

ROOT = Path(__file__).parents[1]
NOT_COVERED = ROOT / "tests" / "compat" / "not_covered.yaml"

HEAD = """# What the goldens of this project cover

Made by `python -m tools.coverage_page` from the goldens alone; `jaxexport goldens coverage --goldens DIR` prints the
same of any folder. A number counts cases: all of them, then those exported for each platform. Of a custom call, only
the platforms count that its target belongs to. Writers are jaxlib releases. Primitives are those of the jaxprs; all
else is in the artifacts.

`nox -s tests_newest` fails when the installed jax has a stable target, a primitive with a lowering, a dtype, an effect,
a serialization format or a calling convention that is neither here nor in
[`not_covered.yaml`](../../tests/compat/not_covered.yaml), whose reasons are in the last section.
"""


def exemptions(section: str) -> dict[str, str]:
    """What has no case, with the reason."""
    groups = yaml.safe_load(NOT_COVERED.read_text(encoding="utf-8")).get(section, [])
    return {name: group["reason"] for group in groups for name in group["names"]}


def page(covered: Coverage) -> str:
    """The page."""
    parts = [HEAD]
    for section in SECTIONS:
        rows = covered[section]
        parts.append(f"## {section.capitalize()}\n")
        parts.append(
            "\n".join([*header("name", "cases", *PLATFORMS, "writers"), *map(line, sorted(rows.items()))]) + "\n"
        )
    parts.append("## Without a case\n")
    parts.append("\n".join([*header("what", "reason"), *map(without, ("targets", "primitives", "effects"))]) + "\n")
    return "\n".join(parts)


def header(*cells: str) -> tuple[str, str]:
    """The first two lines of a table."""
    return f"| {' | '.join(cells)} |", "|---" * len(cells) + "|"


def line(item: tuple[str, Row]) -> str:
    """One line of a section's table."""
    name, row = item
    counts = (str(len(row.platforms[platform]) or "") for platform in PLATFORMS)
    writers = ", ".join(jaxlib for _, jaxlib in sorted(row.writers))
    return f"| `{name}` | {len(row.cases)} | {' | '.join(counts)} | {writers} |"


def without(section: str) -> str:
    """The lines of what has no case, a reason each."""
    groups: dict[str, list[str]] = {}
    for name, reason in exemptions(section).items():
        groups.setdefault(reason, []).append(f"`{name}`")
    return "\n".join(f"| {', '.join(names)} | {reason} |" for reason, names in groups.items())


if __name__ == "__main__":
    text = page(coverage(GoldenStore(ROOT / "golden").goldens()))
    (ROOT / "docs" / "evidence" / "coverage.md").write_text(text, encoding="utf-8")

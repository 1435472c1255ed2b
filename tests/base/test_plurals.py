"""Counts in messages: a count that may be one has its noun from `plural`, in every file of the package."""

import ast
import re

import pytest

from tools.docstrings import ROOT

COUNTED = (
    "arguments arrays artifacts cases causes cells checks constants days devices environments events findings "
    "functions goldens inputs issues jobs operations outputs platforms readers releases requirements results runs "
    "shards targets tests types values workers writers"
)
"""What people count in messages. Bytes and other parts of damaged files are not among them: they are rarely one."""
_NOUN = re.compile(rf"^ (?:more |selected |planned |promised )?({'|'.join(COUNTED.split())})\b")
_WRITTEN = re.compile(r"""\}(?:["']\s*f?["'])?""" + _NOUN.pattern.removeprefix("^"))
"""The source of a value and its noun, which may begin in another literal. Parsing all files takes three seconds."""
_FILES = sorted(path for folder in ("export_core", "pytest_jaxexport") for path in (ROOT / folder).rglob("*.py"))
MORE_THAN_ONE = {
    "export_core/artifact/bytecode/sections.py": ["self.most operations"],
    "export_core/artifact/main_check.py": ["len(envelope.platforms) platforms"],
    "export_core/artifact/saved_model.py": ["most operations"],
    "export_core/features/compare_runs/comparison.py": ["len(group) cells"],
    "export_core/features/convert/convert.py": ["artifact.devices devices"],
    "export_core/features/convert/envelope.py": ["envelope.nr_devices devices", "envelope.nr_devices devices"],
    "export_core/features/deploy/answer_lines.py": ["title_of(upgrade.partly) runs"],  # a verb
    "export_core/features/forecast/forecast.py": ["day.in_days days"],
    "export_core/knowledge/forecasting.py": ["devices devices", "devices devices"],
    "export_core/matrix/plan.py": ["shard.count shards"],
    "export_core/readers/cell.py": ["devices devices"],
    "export_core/readers/placement.py": ["devices devices"],
    "export_core/report/wording.py": ["sum(summary.promised.values()) cells"],  # behind "1 of", which is said elsewhere
}
"""Counts that are never one where they are printed, by file."""


def fixed_plurals(source: str) -> list[str]:
    """Return the texts in which a count that may be one is followed by a noun that is always plural.

    ``1 of 3 cells`` and a limit in capitals, such as ``{MOST} cells``, are no such counts; nor is what stands behind
    ``else`` or `and` in an expression, where another branch has the singular.
    """
    if not _WRITTEN.search(source):
        return []
    tree = ast.parse(source)
    chosen = {
        id(text)
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp | ast.BoolOp)
        for branch in ([node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values)
        for text in ast.walk(branch)
    }
    found = []
    for text in ast.walk(tree):
        if not isinstance(text, ast.JoinedStr) or id(text) in chosen:
            continue
        before = ""
        for part, after in zip(text.values, text.values[1:], strict=False):
            if isinstance(part, ast.Constant):
                before = str(part.value)
            elif isinstance(after, ast.Constant) and (noun := _NOUN.match(str(after.value))):
                count = ast.unparse(part.value)
                if not count.isupper() and not before.endswith((" of ", " of the ")):
                    found.append(f"{count} {noun[1]}")
    return found


def test_only_counts_above_one_are_printed_before_a_fixed_plural():
    found = {path.relative_to(ROOT).as_posix(): fixed_plurals(path.read_text(encoding="utf-8")) for path in _FILES}
    assert {name: texts for name, texts in found.items() if texts} == MORE_THAN_ONE


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('f"{count} goldens left"', ["count goldens"]),
        ('f"and {more} more cells"', ["more cells"]),
        ('(f"{count:,}"\n f" goldens left")', ["count goldens"]),
        ('f"{count}" " goldens left"', ["count goldens"]),
        ("f\"{plural(count, 'golden')} left\"", []),
        ('f"{MOST} goldens"', []),
        ('f"{count} of {total} cells"', []),
        ('"1 golden" if count == 1 else f"{count} goldens"', []),
    ],
)
def test_an_f_string_with_a_count_and_a_fixed_plural_is_found(source, found):
    assert fixed_plurals(source) == found

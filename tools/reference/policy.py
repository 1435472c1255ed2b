"""Every key of a policy: type, default, meaning and an example that the tests load."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from export_core.policy import Policy
from export_core.policy.model import policy_schema
from tools.reference.schema_tables import default, nested, whole, words

TESTS = Path(__file__).parents[2] / "tests"
EXAMPLES = (TESTS / "policy" / "everything.yaml", *sorted(TESTS.glob("features/*/policy.yaml")))
"""The kernel's keys, and those that features add."""


def keys() -> str:
    """A section for each key."""
    schema, examples = policy_schema(), _examples()
    return "\n".join(_key(name, field, examples[name]) for name, field in whole(schema)["properties"].items())


def tables() -> str:
    """The tables and entries inside of keys."""
    return nested([(policy_schema(), Policy)])


def _key(name: str, field: dict[str, Any], example: str) -> str:
    value = default(field)
    about = f"{words(field).removesuffix(' or null')}{f', default {value}' if value else ''}"
    return f"### {name}\n\n{field['description']}\n\nValue: {about}.\n\n```yaml\n{example.strip()}\n```\n"


def _examples() -> dict[str, str]:
    """The text of each key with what is indented below it."""
    text = "".join(path.read_text(encoding="utf-8") for path in EXAMPLES)
    found = re.findall(r"^(\w+):.*(?:\n[ -].*)*", text, re.MULTILINE)
    parts = re.findall(r"^\w+:.*(?:\n[ -].*)*", text, re.MULTILINE)
    return dict(zip(found, parts, strict=True))


PARTS = {"policy keys": keys, "policy tables": tables}

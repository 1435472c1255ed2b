"""A policy as people read it: what the project sets and where, then what every other key is without that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from export_core.base.layout import wrapped
from export_core.base.phrases import plural
from export_core.policy import Policy
from export_core.policy.known_issues import KnownIssue
from export_core.report.policy_yaml import yaml_text

Key = tuple[str, ...]
_NESTED = ("windows", "required", "retention")
"""Tables whose keys are fixed: each is shown on its own."""
_ENTRY_LINES = 3
"""Of one entry of a table: the file has the rest, and the line is given."""


def policy_lines(policy: Policy, origins: Mapping[Key, str], where: str, width: int) -> list[str]:
    """The lines of `jaxexport policy show`.

    `origins` say of each key that is set in which line of which file; `where` names the file, or says that there is
    none. `width` is that of the terminal.
    """
    values = dict(_values(policy))
    indent = max(len(".".join(key)) for key in values) + 4
    lines = [f"{where}: {len(origins)} of {plural(len(values), 'key')} set, the others have their default"]
    for title, is_set in (("set", True), ("default", False)):
        shown = {key: value for key, value in values.items() if (key in origins) is is_set}
        lines += ["", title] if shown else []
        for key, value in shown.items():
            origin = f"  ({origins[key]})" if is_set else ""
            first = f"  {'.'.join(key)}".ljust(indent)
            lines += wrapped(f"{_in_words(key, value)}{origin}", width, first, indent)
            for number, entry in enumerate(value if _is_table(value) else (), 1):
                lines += wrapped(_entry(entry), width, f"{' ' * indent}{number}  ", indent + 3, _ENTRY_LINES)
    return lines


def issue_lines(issues: Iterable[KnownIssue], width: int) -> Iterator[str]:
    """The lines of `jaxexport policy known`."""
    for issue in issues:
        yield from wrapped(f"{issue.id}: {issue.title}", width, indent=2)
        platforms = f"on {'/'.join(issue.platforms)}" if issue.platforms else ""
        cells = ", ".join(filter(None, ("/".join(issue.verdicts), platforms)))
        texts = {"cells": cells, "readers": issue.readers, "issue": issue.issue, "to do": issue.todo}
        for label, text in texts.items():
            if text:
                yield from wrapped(text, width, f"  {label:<8} ", 11)


def policy_keys(policy: Policy) -> list[Key]:
    """Every key that is shown."""
    return [key for key, _ in _values(policy)]


def _values(policy: Policy) -> Iterator[tuple[Key, Any]]:
    for name, value in msgspec.to_builtins(policy.without_locations()).items():
        if name in _NESTED:
            yield from (((name, inner), part) for inner, part in value.items())
        else:
            yield (name,), value


def _in_words(key: Key, value: Any) -> str:
    if _is_empty(value):
        return "cpu: auto" if key == ("platforms",) else "none"
    if _is_table(value):
        return f"{len(value)} {'entry' if len(value) == 1 else 'entries'}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return yaml_text(value, default_flow_style=True, width=100_000).strip().removeprefix("{").removesuffix("}")
    return f"{value} days" if key[0] == "windows" else str(value)


def _is_empty(value: Any) -> bool:
    """Whether nothing is in it, also where it is a table of tables."""
    return value in (None, "", [], ()) or (isinstance(value, dict) and all(map(_is_empty, value.values())))


def _is_table(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], dict)


def _entry(entry: Mapping[str, Any]) -> str:
    """An entry of a table in a paragraph: its reason first, then what else it says."""
    parts = [f"{name} {_in_words((name,), value)}" for name, value in entry.items() if name != "reason" and value]
    return ". ".join(filter(None, (str(entry.get("reason", "")).rstrip("."), "; ".join(parts))))

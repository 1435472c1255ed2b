"""What the end of a pytest run says about goldens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any


def summary_lines(events: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Few lines: what was written, what was replayed and how it is judged, what is missing."""
    written = [event for event in events if "written" in event]
    for what in ("new", "replaced", "unchanged"):
        group = [f"{event['case']}/{event['writer']}" for event in written if event["written"] == what]
        if group:
            yield f"{_count(len(group), 'golden')} {what}: {_few(group)}"
    checked = [event for event in events if "judgements" in event]
    if checked:
        judgements: Counter[str] = sum((Counter(event["judgements"]) for event in checked), Counter())
        counts = ", ".join(f"{count} {name}" for name, count in sorted(judgements.items())) or "none of them for cpu"
        yield f"{_count(len(checked), 'case')} held against {_count(sum(judgements.values()), 'golden')}: {counts}"
    alike: dict[str, list[str]] = {}
    for golden, text in (shown for event in checked for shown in event["shown"]):
        alike.setdefault(text, []).append(golden)
    for text, goldens in alike.items():
        yield f"  {_few(goldens)}: {text}"
    elsewhere = sum(event["elsewhere"] for event in checked)
    if elsewhere:
        yield f"{_count(elsewhere, 'golden')} not replayed: exported for other platforms than cpu"
    missing = [event for event in checked if not event["own"]]
    if missing:
        names = [event["case"] for event in missing]
        yield f"no golden by {missing[0]['writer']} yet of {_few(names)}: pytest --update-goldens adds it"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"

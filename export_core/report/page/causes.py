"""Causes and other findings as the page of a run shows them: a card for what is broken, the rest folded by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from export_core.base.phrases import few, plural
from export_core.judge import Judgement, Summary
from export_core.judge.causes import Cause
from export_core.judge.verdicts import VERDICTS, Kind
from export_core.policy.known_issues import KnownIssue
from export_core.report.finding import Finding
from export_core.report.links import cause_link, cell_link, filter_link, web_address
from export_core.report.wording import first_sentence, ranges, writer_and_reader

_ON_CARD = ("known as", "stage", "to do", "reproduce")


def is_urgent(finding: Finding) -> bool:
    """Whether a finding is a cause of broken, owed or missing cells."""
    return finding.cause is not None and finding.cause.judgement.is_urgent


def cause_card(finding: Finding, summary: Summary, writers: Sequence[str], readers: Sequence[str]) -> dict[str, Any]:
    """A cause as the page shows it."""
    cause = finding.cause
    assert cause is not None
    issue = next((issue for issue in summary.known_issues if issue.id == cause.upstream), None)
    texts, message = dict(finding.details), ("message", cause.message)
    alone = [("cell", writer_and_reader(finding.results[0]))] if cause.cells == 1 else []
    where = [
        plural(len(cause.cases), "case") if len(cause.cases) > 1 else cause.cases[0].rpartition(".")[2],
        f"written by {ranges(cause.writers, writers)}",
        f"read by {ranges(cause.readers, readers)}",
        *(f"{label} {jaxlib}" for label, jaxlib in _when(cause, issue)),
    ]
    return {
        "id": cause.id,
        "address": cause_link(cause.id, cause.judgement),
        "judgement": str(cause.judgement),
        "kind": finding.title.lower(),
        "count": f"{cause.cells:,}",
        "cells": plural(cause.cells, "cell"),
        "title": issue.title if issue else VERDICTS[cause.verdict].short.capitalize(),
        "verdict": str(cause.verdict),
        "stage": str(cause.stage),
        "message": cause.message,
        "writers": ranges(cause.writers, writers),
        "readers": ranges(cause.readers, readers),
        "when": _when(cause, issue),
        "where": " · ".join(where),
        "cases": f"{len(cause.cases):,}",
        "case_names": few([case.rpartition(".")[2] for case in cause.cases]),
        "change": cause.change,
        "todo": texts.get("to do", ""),
        "next_step": first_sentence(texts.get("to do", "")),
        "issue": web_address(issue.issue) if issue else "",
        "reproduce": cause.reproduce,
        "filter": filter_link(cause=cause.id, judgement=cause.judgement),
        "example": cell_link(cause.example),
        "details": alone + [pair for pair in finding.details if pair[0] not in _ON_CARD and pair != message],
    }


def _when(cause: Cause, issue: KnownIssue | None) -> list[tuple[str, str]]:
    """Since which jaxlib they fail, and in which they work again; where no run shows it, the oldest that fails.

    The table of known issues knows the release that fixed it; the run only the next of its own readers.
    """
    ended = ("fixed in", issue.mended_in) if issue and issue.mended_in else ("works in", cause.mended_in)
    began = ("between", f"{cause.before} and {cause.since}") if cause.before else ("since", cause.since)
    known = [(label, jaxlib) for label, jaxlib in (began, ended) if jaxlib]
    return known or [("oldest reader affected", cause.first_reader.jaxlib)]


def _address(finding: Finding) -> str:
    """The filter that lets only the cells of a finding through; empty where there is none."""
    if finding.cause:
        return filter_link(cause=finding.cause.id, judgement=finding.cause.judgement)
    costly = any(result.judgement is Judgement.COSTLY for result in finding.results)
    return filter_link(judgement=Judgement.COSTLY) if costly else ""


@dataclass(frozen=True)
class FindingsOfKind:
    """Findings of one kind, folded unless the exit code comes from them."""

    title: str
    is_open: bool
    findings: list[dict[str, Any]]
    more: int


def by_kind(collected: Sequence[Finding], more: Mapping[Kind, int]) -> list[FindingsOfKind]:
    """Findings by kind, and how many more there are of it."""
    kinds: dict[Kind, FindingsOfKind] = {}
    for finding in collected:
        cause = finding.cause
        kind = kinds.setdefault(
            finding.kind,
            FindingsOfKind(finding.title, bool(finding.kind.exit_code), [], more.get(finding.kind, 0)),
        )
        kind.findings.append(
            {
                "id": cause.id if cause else "",
                "judgement": str(cause.judgement) if cause else "",
                "sentence": finding.sentence,
                "address": _address(finding),
                "details": finding.details,
            }
        )
    return list(kinds.values())

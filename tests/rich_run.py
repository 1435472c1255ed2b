"""One run, made without jax, whose report has every kind of finding, a table, pictures, and an earlier run.

The content of its report is tested in report/test_document.py. Each medium has a test that it shows all of the content.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from example_runs import AS_OF, IDENTITY
from making import day, result, summarize, with_causes

from export_core.features.compare_runs.comparison import (
    BaselineDifference,
    CellDifference,
    Change,
    as_run_difference,
    change_of,
)
from export_core.features.convert.fix import FIX, FixByConversion, Level
from export_core.features.costs.over_budget import with_budgets
from export_core.features.costs.policy_key import Budget
from export_core.judge import Judgement, Result, Summary
from export_core.judge.accepted import Accepted
from export_core.judge.custom_call_changes import JudgedChange, Phase
from export_core.matrix import Verdict
from export_core.matrix.result import Control
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget, KnownFailure
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Cost, Stage
from export_core.report.document import Document, Finding
from export_core.report.view import view
from export_core.run.run import Run

LISTED = KnownFailure(
    *(("t.known",), ("*",), ("*",), "crash", "run", "signal 11", "LAPACK is not there", "ann", "issue 7"),
    day("2026-10-01"),
    expires=day("2026-12-01"),
)
POLICY = Policy(
    known_failures=(LISTED,),
    budgets=(Budget(max_growth=1.2, location="export_compat.yaml:3"),),
    deployed=(DeploymentTarget(name="serving", jaxlib="0.8.1"),),
)
PROCESSORS = "written on x86_64 SSE4_2, read on x86_64 AMX"
_CRASH = {"verdict": Verdict.CRASH, "stage": Stage.RUN, "message": "signal 11", "signal": 11}
_WRONG = {
    "verdict": Verdict.NUMERICS,
    "message": "output 0 (result['b1']): far",
    "outputs": "a",
    "max_abs_error": 0.5,
    "max_rel_error": 0.2,
    "max_noise_error": 40.0,
}
_OUTSIDE = {"judgement": Judgement.OUTSIDE, "promised": False, "reader": "0.8.1"}


def _cell(name: str, judgement: Judgement = Judgement.BROKEN, **changes: Any) -> Result:
    return result(judgement=judgement, case=f"t.{name}", test=f"test_t.py::{name}", **changes)


def _works() -> Iterator[Result]:
    for reader, size in (("0.9.2", 84_000_000), ("0.10.2", 168_000_000)):
        yield _cell("heavy", Judgement.KEPT, reader=reader, cost=Cost(temp_bytes=size))
    yield _cell("kept", Judgement.KEPT)
    yield _cell("bonus", Judgement.BONUS, promised=False, reader="0.12.0.1")
    yield _cell("compiled", Judgement.KEPT, verdict=Verdict.COMPILED, mode=Mode.COMPILE, platform="tpu")
    yield _cell("flaky", Judgement.KEPT, flaky="was crash on 2026-11-20")
    yield _cell("better", Judgement.KEPT, forecast="no: it needs StableHLO 1.14")


def _fails() -> Iterator[Result]:
    lapack = {**_CRASH, "custom_calls": ("lapack_spotrf_ffi",), "upstream": "lapack-cold-process"}
    yield from (_cell(name, reader="0.9.1", **lapack) for name in ("cholesky", "qr"))
    yield from (_cell("wrong", reader=reader, **_WRONG) for reader in ("0.10.2", "0.11.0"))
    yield _cell("moved", **_WRONG, looks_like="rounding: errors of both signs")
    yield _cell("own", reader="0.9.2", **_CRASH | {"message": "signal 6"})
    yield _cell("processor", reader="0.9.2", **_WRONG, processors=PROCESSORS)
    audit = "custom call x has no promise"
    yield _cell("audit", verdict=Verdict.REFUSED, stage=Stage.AUDIT, message=audit)
    settings = _cell("settings", promised=False, **_WRONG)
    yield msgspec.structs.replace(
        settings, reader=msgspec.structs.replace(settings.reader, with_settings="[JAX_ENABLE_X64=true]")
    )
    yield _cell(
        "device",
        **_OUTSIDE,
        verdict=Verdict.ERROR,
        stage=Stage.COMPILE,
        message="unsupported",
        platform="tpu",
        device="TPU v4",
        driver="libtpu 0.0.30",
        foreseen="it may not fit",
        control=Control.ALIKE,
    )
    yield _cell("gone", Judgement.INCOMPLETE, verdict=Verdict.NOT_RUN, stage=Stage.ENVIRONMENT, message="no wheel")
    owed = {"judgement": Judgement.OWED, "deployed": ("serving",)}
    yield _cell(
        "owed",
        **_OUTSIDE | owed,
        verdict=Verdict.ERROR,
        stage=Stage.LOWER,
        message="KeyError",
        stderr="E error: no such op",
    )
    yield _cell("known", Judgement.KNOWN, **_CRASH)
    converted = FIX.put({}, FixByConversion(Level.ENVELOPE, Verdict.CONVERTED, "its platforms"))
    yield _cell("outside", **_OUTSIDE, verdict=Verdict.ERROR, stage=Stage.LOWER, message="no", facts=converted)
    yield _cell("refused", **_OUTSIDE, verdict=Verdict.REFUSED, stage=Stage.DESERIALIZE, message="too new")


def _summary(results: list[Result]) -> Summary:
    change = JudgedChange(
        *("old_call", "new_call", "it is faster", Phase.FORWARD, ("Exports still call old_call.",)),
        *((), ("t.kept/0.9.2-cpu",), ("t.kept/0.9.2-cpu",), 1, 1, day("2027-05-01")),
    )
    made = summarize(
        results,
        policy=POLICY,
        as_of=AS_OF,
        seconds=428,
        identity=IDENTITY,
        accepted=[Accepted("A tolerance of 0.1", "bfloat16", ("t.kept",))],
        without_cells="2 goldens have no cell.",
        undecided=["t.wrong/0.9.2-cpu: output 0: 12 of 400 elements jump"],
        unmeasured=["t.kept/0.9.2-cpu"],
        inputs_only=["t.bonus/0.9.2-cpu"],
        other_generations=["t.kept: the goldens by 0.9.2-cpu and 0.12.0-cpu have other inputs"],
    )
    return msgspec.structs.replace(
        made,
        custom_call_changes=[change],
        stale=["known_failures[1]: it matches nothing"],
        uncovered=["The policy requires tpu, and no cell is for it."],
        unpromised="No cell is promised.",
        partial="only cases t.*",
        failed_on=["1 cell outside the window, and `fail_on` names outside"],
    )


@functools.cache
def rich_document() -> Document:
    """Build the report of the run, with its difference from an earlier run.

    It also has the finding that no baseline was given, which a report with a difference does not have.
    """
    results = with_causes(with_budgets([*_works(), *_fails()], POLICY))
    changed = "another version of pytest-jaxexport"
    other = "export_compat.yaml is not the policy by which this run was judged: `jaxexport report` judges by it."
    run = Run(
        *(results, _summary(results)),
        folder=Path("out"),
        changed=changed,
        unread_policy="The policy of this project cannot be read.",
        judged_otherwise=other,
    )
    policy = msgspec.structs.replace(POLICY, fail_on=("bonus-lost",))
    unchecked = view(replace(run, summary=msgspec.structs.replace(run.summary, policy=msgspec.to_builtins(policy))))
    return Document(run, unchecked.findings, as_run_difference(_difference(run)))


def _difference(run: Run) -> BaselineDifference:
    """Return a difference with every kind of change: regressed, fixed, changed, new and gone cells."""
    earlier = {one.case: one for one in run.results}  # of a case with two readers, the second alone is not new
    earlier["t.kept"] = _cell("kept", **_CRASH)
    earlier["t.moved"] = _cell("moved", Judgement.KEPT)
    earlier["t.heavy"] = msgspec.structs.replace(earlier["t.heavy"], cost=Cost(temp_bytes=42_000_000))
    earlier["t.gone"] = msgspec.structs.replace(earlier["t.gone"], message="no disk", stage=Stage.READ)
    earlier["t.removed"] = _cell("removed", Judgement.KEPT)
    del earlier["t.bonus"]
    before = Run([*earlier.values()], summarize([*earlier.values()], policy=POLICY, as_of=day("2026-11-01")))
    old, new = before.by_cell, run.by_cell
    cells = [CellDifference(change_of(old.get(key), now), old.get(key), now) for key, now in new.items()]
    cells += [CellDifference(Change.GONE, then, None) for key, then in old.items() if key not in new]
    return BaselineDifference(before, run, cells, ["The baseline is of another plan"])


class Element(NamedTuple):
    """One thing that a report says: its sort, its text, the finding that it belongs to, and the label of a detail."""

    sort: str
    text: str
    finding: Finding | None = None
    label: str = ""


def elements(reported: Document) -> Iterator[Element]:
    """Yield everything that a report says. `test_document.py` checks that no part of a report is left out here."""
    headline, counts = reported.headline
    for part in headline.removesuffix(".").split("; "):
        yield Element("headline", part.rpartition(": ")[2])
    yield Element("counts", counts)
    for finding in reported.findings:
        yield from _of_finding(finding, "title", "sentence", "detail")
        if finding.results and finding.results[0].looks_like:
            yield Element("looks like", finding.results[0].looks_like, finding)
    yield from (Element("table", line) for lines in reported.tables for line in lines)
    yield from (Element("picture", picture.title) for picture in reported.pictures)
    row_lines = map(reported.row_line, reported.run.by_golden.values())
    yield from (Element("row line", line[0]) for line in row_lines if line)
    if comparison := reported.comparison:
        yield Element("comparison", comparison.line)
        yield from (Element("caveat", caveat.sentence.removesuffix(".")) for caveat in comparison.caveats)
        for change in (*comparison.changes, *comparison.others):
            yield from _of_finding(change, *["change"] * 3)


def _of_finding(finding: Finding, title: str, sentence: str, detail: str) -> Iterator[Element]:
    yield Element(title, finding.title, finding)
    yield Element(sentence, finding.sentence, finding)
    yield from (Element(detail, text, finding, label) for label, text in finding.details if text)


def assert_shown(text: str, is_shown: Callable[[Element], bool], *, labels: bool = True) -> None:
    """Check that a text has each element of the report that its medium shows.

    Line breaks, capital letters and the colon behind a label may differ. Without `labels`, labels may be missing.
    """
    plain = _plain(text)
    expected = [element for element in elements(rich_document()) if is_shown(element)]
    missing = [one for one in expected if _plain(f"{one.label if labels else ''} {one.text}") not in plain]
    assert not missing, [(one.sort, one.finding and one.finding.title, one.label, one.text) for one in missing]


def _plain(text: str) -> str:
    return " ".join(text.replace(":", "").split()).casefold()


def texts_in(value: Any) -> Iterator[str]:
    """Yield each text in the values of JSON."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_in(part)

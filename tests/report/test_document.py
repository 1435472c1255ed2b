"""What the report of a run says: each fact once, of one run that has every kind of finding.

How a finding is decided and worded in other runs is in test_findings.py; how each medium shows it, in the test of each.
"""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from rich_run import PROCESSORS, rich_document

import export_core
from export_core.judge import Judgement
from export_core.readers.worker.protocol import Stage
from export_core.report.document import Document, Finding, Picture, RunDifference

BUDGET = "temp_bytes 168,000,000, more than 100,800,000, which is 1.2 times the 84,000,000 of its writer"
SENTENCES = [
    (
        "BROKEN PROMISE",
        "2 cells crashed in stage run: written by 0.9.2, read by 0.9.1. Ran when it was exported by jaxlib 0.9.2 "
        "(built 2026-03-18).",
    ),
    ("AUDIT FAILED", " on cpu, was refused."),
    ("NOT REPLAYABLE", " crashed. This is not a broken promise: the golden's own writer cannot replay it."),
    (
        "BROKEN PROMISE",
        "2 cells ran with different numbers in stage compare: written by 0.9.2, read by 0.10.2, 0.11.0. Numbers "
        "changed between jaxlib 0.9.2 (built 2026-03-18) and jaxlib 0.10.2 (built 2026-06-17).",
    ),
    (
        "NUMBERS MOVED",
        "ran with different numbers. Numbers changed between jaxlib 0.9.2 (built 2026-03-18) and jaxlib 0.10.2 (built "
        "2026-06-17).",
    ),
    (
        "OTHER PROCESSOR",
        "This is not a broken promise: the golden's own writer gives other numbers too. The reason may be the "
        f"processor or its settings ({PROCESSORS}), a test that is not deterministic, or stored outputs that were "
        "changed.",
    ),
    (
        "OTHER NUMBERS",
        "; with such settings, JAX promises nothing. Of jaxlib with such settings, only jaxlib "
        "0.10.2[JAX_ENABLE_X64=true] (built 2026-06-17) ran it: whether another release agrees is not known.",
    ),
    ("OWED", " on cpu, failed, and deployment target serving must run it."),
    ("OVER BUDGET", f"1 cell over max_growth (export_compat.yaml:3): t.heavy/0.9.2-cpu in jaxlib 0.10.2: {BUDGET}."),
    ("FAIL ON", "1 cell outside the window, and `fail_on` names outside."),
    ("INCOMPLETE", " on cpu, was not run."),
    ("INCOMPLETE", "The policy requires tpu, and no cell is for it."),
    ("NOTHING PROMISED", "No cell is promised."),
    (
        "OUTDATED",
        "What decides verdicts has changed since the run in out: it was made by another version of pytest-jaxexport. "
        "`jaxexport judge` and `can-i-deploy` do not count it. Run it again: `jaxexport matrix`.",
    ),
    ("UNREADABLE POLICY", "The policy of this project cannot be read."),
    (
        "OTHER POLICY",
        "export_compat.yaml is not the policy by which this run was judged: `jaxexport report` judges by it.",
    ),
    ("STALE LIST", "known_failures[1]: it matches nothing"),
    (
        "FLAKY",
        "1 cell had another verdict last time, with the same content. The judgement uses the verdict of this run.",
    ),
    (
        "DEVICE LIMIT",
        " on tpu, failed. The compiler for TPU v4 does not do this, in jaxlib 0.9.2 (built 2026-03-18) either, which "
        "wrote it. So no release breaks a promise.",
    ),
    ("known failure", " on cpu, crashed. Began to fail between jaxlib 0.9.2 (built 2026-03-18) and jaxlib 0.10.2 "
     "(built 2026-06-17)."),
    ("outside the window", " on cpu, failed."),
    ("custom call", "old_call → new_call: forward window (it is faster)."),
    *(
        ("NOT MEASURED", f"export_compat.yaml:3: max_growth: {count} promised cells not measured: the compiler reports "
         f"no {figure} of them.")
        for count, figure in ((6, "flops"), (6, "bytes_accessed"), (4, "temp_bytes"))
    ),
    ("deployment targets", "serving (jaxlib 0.8.1, cpu): 0 of 1 cell works; 1 owed."),
    ("NOT COVERED", "2 goldens have no cell."),
    ("GOLDENS DIFFER", "t.kept: the goldens by 0.9.2-cpu and 0.12.0-cpu have other inputs."),
    (
        "NOT CHECKED",
        "fail_on: bonus-lost: no baseline was given, so a lost bonus is not found. Name one: `jaxexport judge "
        "--baseline OLD`.",
    ),
    ("CONVERSION", "It fixes 1 of 1 failing cell: 1 by its envelope only."),
    (
        "NOT DECIDED",
        "1 golden with outputs that would not show a wrong number, since rounding alone moves them as far: "
        "t.wrong/0.9.2-cpu.",
    ),
    ("FORECAST", "1 cell forecast to fail, and worked."),
    ("NO NOISE", "1 golden without noise: t.kept/0.9.2-cpu. `jaxexport goldens verify --noise` measures it."),
    (
        "LITTLE NOISE",
        "1 golden with noise of inputs only: t.bonus/0.9.2-cpu. A correct reader may look broken where numbers come "
        "from constants inside. `jaxexport goldens verify --noise --again` measures it again; golden.yaml says why it "
        "knows inputs only.",
    ),
    ("accepted", "A tolerance of 0.1: t.kept."),
]  # fmt: skip


def test_a_report_has_each_finding_once_the_worst_first():
    found = [(finding.title, finding.sentence) for finding in rich_document().findings]
    assert [title for title, _ in found] == [title for title, _ in SENTENCES]
    assert [sentence[-len(end) :] for (_, sentence), (_, end) in zip(found, SENTENCES, strict=True)] == [
        end for _, end in SENTENCES
    ]


@pytest.mark.parametrize(
    ("title", "label", "text"),
    [
        ("AUDIT FAILED", "stage", "audit"),
        ("AUDIT FAILED", "to do", "No release is to blame, and no date excuses it: "),
        ("NOT REPLAYABLE", "to do", "Check the test before you blame a release: "),
        ("NUMBERS MOVED", "to do", "Find the operation that rounds in another way: "),
        ("OTHER PROCESSOR", "processor", PROCESSORS),
        ("OTHER PROCESSOR", "to do", "Ask first whether the stored outputs are right: `jaxexport explain "),
        ("OTHER NUMBERS", "promise", "JAX promises nothing about settings: "),
        ("OTHER NUMBERS", "to do", "This runtime promises nothing, and a silently wrong number is never fine: "),
        ("OWED", "window", "forward: reader built 120 days before the writer; outside the window: promised to"),
        ("OWED", "deployed", "serving"),
        ("OWED", "stderr", "E error: no such op"),
        (
            "OWED",
            "to do",
            "Do not deploy it there: export it with a release that this one reads (`jaxexport inspect FILE`), "
            "convert it, or upgrade the deployment target: `jaxexport can-i-deploy --to serving --results out` says",
        ),
        ("OVER BUDGET", "to do", "`jaxexport report out --trend cost` shows in which release it began."),
        ("INCOMPLETE", "message", "no wheel"),
        ("INCOMPLETE", "to do", "Fix what the message names, "),
        ("FLAKY", "cells", "t.flaky/0.9.2-cpu in jaxlib 0.10.2 on cpu: pass, was crash on 2026-11-20"),
        ("DEVICE LIMIT", "device", "TPU v4, libtpu 0.0.30"),
        ("DEVICE LIMIT", "foreseen", "it may not fit"),
        ("DEVICE LIMIT", "to do", "Change the program or the platform, "),
        ("known failure", "listed", "LAPACK is not there (owner ann, issue 7, until 2026-12-01)"),
        ("known failure", "reproduce", "jaxexport matrix --cases t.known --writers 0.9.2 --readers 0.10.2 --platforms"),
        ("outside the window", "conversion", "fixes it, by its envelope only: its platforms"),
        ("custom call", "must hold", "Exports still call old_call."),
        ("custom call", "measured", "t.kept/0.9.2-cpu: 1 of 1 promised cells passes in readers that have the change"),
        ("custom call", "delete", "old_call from 2027-05-01 on, and the goldens that call it: t.kept/0.9.2-cpu"),
        ("CONVERSION", "to do", "jaxexport convert golden/t.outside/0.9.2-cpu --for 0.8.1 -o converted"),
        ("NOT DECIDED", "outputs", "t.wrong/0.9.2-cpu: output 0: 12 of 400 elements jump"),
        ("FORECAST", "cells", "t.better/0.9.2-cpu in jaxlib 0.10.2 on cpu: it needs StableHLO 1.14"),
        ("accepted", "reason", "bfloat16"),
    ],
)
def test_a_finding_has_its_evidence_and_what_to_do(title, label, text):
    finding = next(finding for finding in rich_document().findings if finding.title == title)
    assert dict(finding.details)[label][: len(text)] == text


def test_findings_of_several_cells_name_what_they_share():
    crashed, wrong = (one for one in rich_document().findings if one.title == "BROKEN PROMISE")
    details = dict(crashed.details)
    issue = "https://github.com/jax-ml/jax/issues/29610, fixed in 0.10.0"
    assert details["known as"] == f"LAPACK calls crash in a fresh process, {issue}"
    assert details["cases"] == "2: t.cholesky, t.qr"
    assert details["to do"].startswith("Upgrade the reader to jaxlib 0.10.0 or later")
    details = dict(wrong.details)
    assert details["goldens"] == "t.wrong/0.9.2-cpu: 40 x noise"
    assert details["bits"] == "the same in all these readers of a golden"
    assert details["outputs"] == "t.wrong/0.9.2-cpu: output 0: 12 of 400 elements jump"
    assert details["to do"].startswith("`jaxexport report out --trend numbers` shows in which release")


def test_the_headline_counts_all_that_decides_the_exit_code():
    line, counts = rich_document().headline
    affected = "lapack-cold-process in 0.9.1, refused in 0.10.2, crash in 0.9.2"
    assert line == (
        "OUTDATED, was BROKEN: 11 cells, 8 causes; incomplete: 1 of 22 planned cells has no result that counts."
    )
    ways, _, counted = counts.partition(". ")
    assert ways.split("; ") == [
        "7 of 16 promised cells and 1 cell with an artifact that fails the audit and 1 cell with other numbers "
        "in runtimes that promise nothing, 7 causes, 1 of which looks like rounding",
        "owed: 1 cell that deployment target serving must run",
        "over-budget: 1 of 16 promised cells over a budget",
        "1 compiled only, 1 known failure until 2026-12-01, 1 flaky",
        "1 defect in the list of known failures",
        f"readers affected, by cause: {affected} and 2 more",
        "partial: only cases t.*",
    ]
    assert counted == (
        "22 of 22 planned cells: 1 bonus, 9 broken, 1 incomplete, 5 kept, 1 known, 3 outside, 1 over-budget, 1 owed. "
        "As of 2026-11-22, 428 s, exit code 3."
    )


def test_a_report_has_costs_pictures_and_the_baseline():
    reported = rich_document()
    ((_, costs),) = reported.tables
    assert costs.split() == ["t.heavy/0.9.2-cpu", "0.10.2", "168.0", "MB", *"-----"]
    assert [picture.title for picture in reported.pictures] == [
        *("What calls cost, from release to release", "When goldens leave the promise")
    ]
    heavy = [one for one in reported.run.results if one.case == "t.heavy"]
    assert reported.row_line(heavy) == ("temp_bytes 84.0 MB -> 168.0 MB (x2.00) in 0.10.2", (84e6, 168e6))
    assert reported.comparison.line.startswith("Since the baseline (as of 2026-11-01, 20 cells): 1 regressed, 1 fixed,")
    found = [(one.title, len(one.results)) for one in reported.comparison.findings]
    assert found == [
        *(("CAVEAT", 0), ("REGRESSED", 1), ("fixed", 1), ("changed", 1), ("new", 1), ("new", 1), ("new", 1)),
        *(("gone", 1), ("cost", 1)),
    ]


# --- the run has everything that a report can say ---------------------------------------------------------------------


def test_the_example_report_has_each_kind_of_finding():
    """A new kind belongs into the example: then each medium has to show it."""
    package = Path(export_core.__file__).parent
    made = re.compile(r'\b(?:FindingKind|failing|missing)\(\s*"([^"]+)"')
    kinds = {title for path in package.rglob("*.py") for title in made.findall(path.read_text(encoding="utf-8"))}
    reported = rich_document()
    findings = [*reported.findings, *reported.comparison.findings]
    assert {finding.title for finding in findings} == kinds
    assert {one.judgement for one in reported.run.results} == set(Judgement)
    assert {one.stage for one in reported.run.results} >= {Stage.AUDIT, Stage.ENVIRONMENT, Stage.COMPARE}


def test_every_part_of_a_document_is_listed_in_this_test():
    """A new part of a report belongs into `elements` of rich_run.py: then each medium has to show it."""
    made = {name for name in vars(Document) if not name.startswith("_")} | {one.name for one in fields(Document)}
    # `headline_parts` is the headline, `doubt` its first words, `look` a colour, and `folder` where a file is written.
    assert made == {
        "run",
        "findings",
        "comparison",
        "folder",
        "headline",
        "headline_parts",
        "doubt",
        "look",
        "row_line",
        "tables",
        "pictures",
    }
    # `brief` is a shorter sentence, `fault` the end of the sentence; `number` and `kind` are the order.
    names = {one.name for one in fields(Finding)}
    assert names == {"kind", "number", "sentence", "details", "results", "cause", "brief", "fault"}
    assert {one.name for one in fields(Picture)} == {"title", "hint", "svg"}
    assert {one.name for one in fields(RunDifference)} == {
        *("line", "caveats", "changes", "others"),
        *("run", "before", "runs", "cells", "measured", "section", "as_json"),
    }

"""The difference from a baseline: both verdicts, both dates, and the command to reproduce."""

from __future__ import annotations

import json

import jsonschema
import msgspec
from making import result, summarize

from export_core.features.compare_runs.baseline import BaselineDifference, CellDifference, Change
from export_core.features.compare_runs.comparison import as_comparison, baseline_report
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.run.run import Run
from tools.schemas import schema


def difference(*cells: CellDifference, caveats=()) -> BaselineDifference:
    now = [cell.now for cell in cells if cell.now]
    run = Run(now, summarize(now, seconds=1))
    return BaselineDifference(run, run, list(cells), list(caveats))


def crash(case: str = "t.f", **changed):
    return result(
        Verdict.CRASH, Judgement.BROKEN, case=case, stage=Stage.RUN, message="signal 11\nstack", signal=11, **changed
    )


def test_a_regression_has_verdicts_dates_arithmetic_and_command():
    (finding,) = as_comparison(difference(CellDifference(Change.REGRESSED, result(case="t.f"), crash()))).findings
    assert finding.title == "REGRESSED"
    assert finding.text.splitlines() == [
        "t.f, written by jax 0.9.2 with jaxlib 0.9.2 (built 2026-03-18) and read by jax 0.10.2 with jaxlib 0.10.2 "
        "(built 2026-06-17) on cpu.",
        "  then       kept: pass",
        "  now        broken: crash in stage run: signal 11",
        "  window     backward: reader built 91 days after the writer; promised: 180 days, until 2026-09-14",
        "  reproduce  jaxexport matrix --cases t.f --writers 0.9.2 --readers 0.10.2 --platforms cpu",
    ]


def test_similar_changes_are_one_finding():
    found = as_comparison(
        difference(
            *(CellDifference(Change.REGRESSED, result(case=f"t.{n}"), crash(f"t.{n}")) for n in range(5)),
            CellDifference(Change.REGRESSED, crash("t.k", promised=False), crash("t.k")),
        )
    ).findings
    assert [len(each.results) for each in found] == [5, 1]
    assert found[0].text.startswith("5 cells: t.0/0.9.2-cpu, t.1/0.9.2-cpu, t.2/0.9.2-cpu and 2 more in jaxlib 0.10.2.")


def test_worst_changes_are_first_and_unchanged_cells_left_out():
    found = as_comparison(
        difference(
            CellDifference(Change.UNCHANGED, result(case="t.a"), result(case="t.a")),
            CellDifference(Change.GONE, result(case="t.b"), None),
            CellDifference(Change.NEW, None, result(case="t.c")),
            CellDifference(Change.FIXED, crash("t.d"), result(case="t.d")),
            CellDifference(Change.REGRESSED, result(case="t.e"), crash("t.e")),
            caveats=["the baseline is incomplete"],
        )
    ).findings
    assert [each.title for each in found] == ["CAVEAT", "REGRESSED", "fixed", "new", "gone"]
    assert "not in the baseline" in found[3].text
    assert "not in this run" in found[4].text


def test_a_cell_of_another_golden_says_so():
    (finding,) = as_comparison(
        difference(CellDifference(Change.REGRESSED, result(case="t.f"), crash(), other_golden=True))
    ).findings
    assert "  golden     not the same as in the baseline" in finding.text.splitlines()


def test_the_last_line_has_every_count_and_whose_exit_code_it_is():
    line = as_comparison(difference(CellDifference(Change.REGRESSED, result(case="t.f"), crash()))).line
    assert line == (
        "Since the baseline (as of 2026-11-21, 1 cells): 1 regressed, 0 fixed, 0 new, 0 gone, 0 changed, 0 unchanged. "
        "Exit code 1 is that of the new run alone."
    )


def test_json_follows_its_schema_without_unchanged_cells():
    made = baseline_report(
        difference(
            CellDifference(Change.UNCHANGED, result(case="t.a"), result(case="t.a")),
            CellDifference(Change.REGRESSED, result(case="t.f"), crash()),
            CellDifference(Change.GONE, result(case="t.b"), None),
        )
    )
    plain = json.loads(msgspec.json.encode(made))
    jsonschema.Draft202012Validator(schema("comparison")).validate(plain)
    assert [(each["change"], each["case"]) for each in plain["cells"]] == [("regressed", "t.f"), ("gone", "t.b")]
    regressed, gone = plain["cells"]
    assert (regressed["then"]["judgement"], regressed["now"]["verdict"], gone["now"]) == ("kept", "crash", None)
    assert plain["counts"]["unchanged"] == 1

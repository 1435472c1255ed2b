"""The difference from a baseline: both verdicts, both dates, and the command to reproduce."""

import json
from dataclasses import replace

import jsonschema
import msgspec
from comparing import difference
from making import result

from export_core.features.compare_runs.comparison import as_comparison, baseline_report
from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.report.document import Finding
from tools.schemas import schema


def crash(case: str = "t.f", **changed):
    plain = {"judgement": Judgement.BROKEN, "stage": Stage.RUN, "message": "signal 11\nstack", "signal": 11}
    return result(Verdict.CRASH, case=case, **{**plain, **changed})


def findings(then: list[Result], now: list[Result], caveats=()) -> list[Finding]:
    return as_comparison(difference(then, now, caveats)).findings


def test_a_regression_has_verdicts_dates_arithmetic_and_command():
    (finding,) = findings([result(case="t.f")], [crash()])
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
    names = [f"t.{number}" for number in range(5)]
    outside = crash("t.k", promised=False, judgement=Judgement.OUTSIDE)
    told = findings([*(result(case=name) for name in names), outside], [*map(crash, names), crash("t.k")])
    assert [len(each.results) for each in told] == [5, 1]
    assert told[0].text.startswith("5 cells: t.0/0.9.2-cpu, t.1/0.9.2-cpu, t.2/0.9.2-cpu and 2 more in jaxlib 0.10.2.")


def test_worst_changes_are_first_and_unchanged_cells_left_out():
    same, gone, new, works, worked = (result(case=f"t.{name}") for name in "abcde")
    told = findings(
        [same, gone, crash("t.d"), worked], [same, new, works, crash("t.e")], ["the baseline is incomplete"]
    )
    assert [each.title for each in told] == ["CAVEAT", "REGRESSED", "fixed", "new", "gone"]
    assert "not in the baseline" in told[3].text
    assert "not in this run" in told[4].text


def test_a_cell_of_another_golden_says_so():
    plain = difference([result(case="t.f")], [crash()])
    changed = replace(plain, cells=[replace(plain.cells[0], other_golden=True)])
    (finding,) = as_comparison(changed).findings
    assert "  golden     not the same as in the baseline" in finding.text.splitlines()


def test_the_last_line_has_every_count_and_whose_exit_code_it_is():
    assert as_comparison(difference([result(case="t.f")], [crash()])).line == (
        "Since the baseline (as of 2026-11-21, 1 cells): 1 regressed, 0 fixed, 0 new, 0 gone, 0 changed, 0 unchanged. "
        "Exit code 1 is that of the new run alone."
    )


def test_json_follows_its_schema_without_unchanged_cells():
    same, gone, worked = (result(case=f"t.{name}") for name in "abf")
    plain = json.loads(msgspec.json.encode(baseline_report(difference([same, gone, worked], [same, crash()]))))
    jsonschema.Draft202012Validator(schema("comparison")).validate(plain)
    assert [(each["change"], each["case"]) for each in plain["cells"]] == [("regressed", "t.f"), ("gone", "t.b")]
    regressed, gone = plain["cells"]
    assert (regressed["then"]["judgement"], regressed["now"]["verdict"], gone["now"]) == ("kept", "crash", None)
    assert plain["counts"]["unchanged"] == 1

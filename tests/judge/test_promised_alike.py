"""The promise of a cell: plan, report, judgement and the plan of another day agree on it."""

import ast
from pathlib import Path

import pytest
from making import NEWEST, day, golden

import export_core
from export_core.goldens import Options
from export_core.goldens.manifest import ConvertedFrom
from export_core.judge.judgement import judge
from export_core.judge.promised_plan import missing_promised
from export_core.matrix import Plan, Selection, Verdict, make_plan
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows, load_calendar
from export_core.report.plan_report import plan_report

CALENDAR = load_calendar()
TENSORFLOW = "tensorflow==2.21.0"
READERS = f"0.8.1,0.9.1,0.9.2,{NEWEST},{TENSORFLOW},iree==3.13.0,stablehlo=={NEWEST}"
CONVERTED = ConvertedFrom("0" * 64, NEWEST, "rewritten", (), "jaxexport")
AS_OF = day("2026-11-21")

kinds = pytest.mark.parametrize(
    "fields",
    [
        {},
        {"converted_from": CONVERTED},
        {"options": Options(platforms=("cpu",), mesh={"x": 2})},
        {"converted_from": CONVERTED, "options": Options(platforms=("cpu",), mesh={"x": 2})},
    ],
    ids=["plain", "converted", "two-devices", "converted-two-devices"],
)


def plan_of(fields: dict[str, object]) -> Plan:
    selection = Selection(readers=READERS)
    return make_plan([golden(jaxlib="0.9.2", **fields)], CALENDAR, Windows(), selection, AS_OF)


@kinds
@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.CRASH, Verdict.NUMERICS, Verdict.NOT_RUN])
def test_judgement_and_plan_promise_the_same_cells(fields, verdict):
    plan = plan_of(fields)
    results = [judge(new_result(cell, Stage.RUN, verdict), cell.golden, Policy(), as_of=AS_OF) for cell in plan.cells]
    promised = {cell.key: cell.promised for cell in plan.cells}
    assert {result.key: result.promised for result in results} == promised
    assert {row.reader.name: row.promised for row in plan_report(plan, Windows()).cells} == {
        key.reader: is_promised for key, is_promised in promised.items()
    }


@kinds
def test_cells_that_cannot_be_promised_are_not_reported_missing(fields):
    (own,) = [cell for cell in plan_of(fields).cells if cell.reader.name == "0.9.2"]
    result = judge(new_result(own, Stage.RUN, Verdict.PASS), own.golden, Policy(), as_of=AS_OF)
    missing = missing_promised([result], Policy(), {"readers": "window,tensorflow"}, AS_OF)
    assert TENSORFLOW not in missing
    assert ("0.9.1" in missing) == (not result.converted)


def test_the_example_plans_have_promised_and_unpromised_cells():
    assert {cell.promised for cell in plan_of({}).cells} == {True, False}
    assert TENSORFLOW in {cell.reader.name for cell in plan_of({}).cells if cell.promised}


def test_only_one_function_computes_a_promise():
    package = Path(export_core.__file__).parent
    calls = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "promise_to(" in path.read_text()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "promise_to"
    }
    assert calls == {"readers/cell.py"}

"""`jaxexport matrix --convert`: whether a conversion fixes a cell that fails, and what reports say of it."""

import json
from pathlib import Path

import msgspec
import pytest
from making import day, document, result, summarize

from export_core.features.convert.fix import FIX, FixByConversion, Level
from export_core.features.convert.fixed_by_conversion import (
    can_be_tried,
    converted_cell,
    remedy,
    try_conversions,
    with_conversions,
)
from export_core.goldens import Comparison, Golden
from export_core.judge import Judgement, judge
from export_core.matrix import Cell, CellLimits, Verdict
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.report.wording import evidence


def no_modules(job):
    raise AssertionError("these modules need no rewriting")


@pytest.fixture
def fixed(convert):
    """The function that tries to convert cells, and replays them in this interpreter or in a misbehaving one."""

    def run(*cells: Cell) -> dict[str, FixByConversion]:
        options = ReplayOptions(load_calendar(), limits=CellLimits(jobs=1))
        return {cell.golden.id: fix for cell, fix in try_conversions(cells, no_modules, options, print)}

    return run


def test_converting_a_refused_envelope_fixes_its_cell(fixed, refused_golden, here):
    fix = fixed(Cell(refused_golden, here, "cpu"))[refused_golden.id]
    assert (fix.level, fix.verdict, fix.fixes) == (Level.ENVELOPE, Verdict.CONVERTED, True)
    assert "shape_assertions" in fix.message


def test_a_cell_that_the_reader_loads_is_not_converted(fixed, goldens, here):
    golden = goldens["waves"]
    fix = fixed(Cell(golden, here, "cpu"))[golden.id]
    assert (fix.level, fix.verdict, fix.fixes) == (None, None, False)
    assert f"jaxlib {here.jaxlib} takes the original" in fix.message


def test_a_conversion_compared_by_shape_alone_fixes_no_cell(fixed, refused_golden, here):
    shapes = msgspec.structs.replace(refused_golden.manifest, comparison=Comparison("shape"))
    fix = fixed(Cell(Golden(shapes, refused_golden.folder), here, "cpu"))[refused_golden.id]
    assert (fix.level, fix.verdict, fix.fixes) == (None, None, False)
    assert "nothing was compared: its comparison looks at shapes and dtypes alone" in fix.message


def test_no_conversion_is_tried_for_a_cell_compiled_for_tpu(fixed, refused_golden, here):
    fix = fixed(Cell(refused_golden, here, "tpu", Mode.COMPILE))[refused_golden.id]
    assert fix.verdict is None
    assert "not on tpu" in fix.message


def test_a_conversion_that_crashes_fixes_no_cell(fixed, in_a_bad_reader, refused, here):
    golden = refused("dies_by_segv")
    fix = fixed(Cell(golden, here, "cpu"))[golden.id]
    assert (fix.level, fix.verdict, fix.fixes) == (Level.ENVELOPE, Verdict.CRASH, False)
    assert "signal 11" in fix.message


def test_only_failing_cells_are_converted_and_no_judgement_changes(convert, refused_golden, goldens, here):
    cells = [Cell(refused_golden, here, "cpu"), Cell(goldens["both"], here, "cpu")]
    outcomes = [
        new_result(cells[0], Stage.DESERIALIZE, Verdict.REFUSED, "Unknown disabled check"),
        new_result(cells[1], Stage.COMPARE, Verdict.PASS),
    ]
    before = [judge(outcome, cell.golden, Policy()) for cell, outcome in zip(cells, outcomes, strict=True)]
    options = ReplayOptions(load_calendar(), limits=CellLimits(jobs=1))
    refused, kept = with_conversions(before, cells, options, print)
    assert (fix := FIX.of(refused.facts))
    assert fix.fixes
    assert refused.judgement is before[0].judgement
    assert kept == before[1]


def test_only_a_cell_that_needs_conversion_gets_a_new_artifact(refused_golden, goldens, here, tmp_path):
    options = ReplayOptions(load_calendar(), limits=CellLimits(jobs=1))
    cell = Cell(refused_golden, here, "cpu")
    made = converted_cell(cell, options, tmp_path / "made", print)
    assert (made.reader, made.golden.manifest.case) == (here, refused_golden.manifest.case)
    assert not made.golden.read_artifact().envelope.disabled_checks
    assert converted_cell(Cell(goldens["waves"], here, "cpu"), options, tmp_path / "not made", print) is None


def test_conversion_is_advised_only_if_the_artifact_needs_it(refused_golden, goldens, here):
    options = ReplayOptions(load_calendar())
    command = f"`jaxexport convert {refused_golden.artifact} --for {here.jaxlib} -o OUT`"
    assert remedy(Cell(refused_golden, here, "cpu"), options) == (
        f"Convert it, and verify it there: {command} (only its envelope is rewritten)."
    )
    assert remedy(Cell(goldens["waves"], here, "cpu"), options) == (
        "Conversion does not help: the reader takes the artifact as it is, and fails later."
    )


@pytest.mark.parametrize(
    ("verdict", "changes", "tried"),
    [
        *((verdict, {}, verdict.fails) for verdict in Verdict),
        (Verdict.REFUSED, {"platform": "tpu"}, False),
        (Verdict.REFUSED, {"mode": Mode.COMPILE}, False),
        (Verdict.REFUSED, {"converted": True}, False),
    ],
)
def test_conversion_is_tried_only_for_failures_on_cpu(verdict, changes, tried):
    assert can_be_tried(result(verdict, Judgement.OUTSIDE, **changes)) is tried


@pytest.mark.matrix
def test_a_matrix_says_which_cells_a_conversion_fixes(jaxexport, tmp_path):
    words = ["matrix", "--cases", "*.test_top_k", "--writers", "0.12.0.1", "--readers", "0.8.1,0.9.2", "--quiet"]
    words += ["--goldens", str(Path(__file__).parents[3] / "golden")]
    ended = jaxexport(*words, "--convert", "--unpromised", "a test", "--results", str(tmp_path / "results"))
    assert "CONVERSION  It fixes 1 of 1 failing cell" in ended.out, ended.out
    lines = [json.loads(line) for line in (tmp_path / "results" / "results.jsonl").read_text().splitlines()]
    assert {
        line["reader"]["jaxlib"]: line["facts"] and line["facts"]["fixed_by_conversion"]["verdict"] for line in lines
    } == {"0.8.1": "converted", "0.9.2": {}}


# --- reports ----------------------------------------------------------------------------------------------------------


def tried(case: str, fix: FixByConversion | None, reader: str = "0.8.1"):
    changes = {"case": case, "reader": reader, "stage": Stage.DESERIALIZE, "message": "unsupported version 12"}
    return msgspec.structs.replace(result(Verdict.REFUSED, Judgement.OUTSIDE, **changes), facts=FIX.put({}, fix))


CELLS = [
    tried("t.test_a", FixByConversion(Level.ENVELOPE, Verdict.CONVERTED, "format 2")),
    tried("t.test_b", FixByConversion(Level.CUSTOM_CALLS, Verdict.CONVERTED, "lapack_spotrf_ffi")),
    tried("t.test_c", FixByConversion(None, None, "t.test_c: not converted for jaxlib 0.8.1: its dtype is newer.")),
    tried("t.test_d", FixByConversion(Level.MODULE, Verdict.CRASH, "stage run: died by signal 11 (SIGSEGV)")),
    tried("t.test_e", None),
]


def summary_of(cells):
    chosen = {"readers": "0.8.1", "whole": True}
    return summarize(cells, planned=len(cells), policy=Policy(), as_of=day("2026-11-21"), selection=chosen)


def test_one_finding_counts_fixed_cells_and_says_why_others_fail():
    (found,) = [x for x in document(CELLS, summary_of(CELLS)).findings if x.title == "CONVERSION"]
    assert found.sentence == ("It fixes 2 of 4 failing cells: 1 by its envelope only, 1 by its custom calls, replaced.")
    details = dict(found.details)
    assert details["not fixed"].splitlines() == [
        "1: not converted for jaxlib 0.8.1: its dtype is newer.",
        "1: the converted artifact crashed in stage run: died by signal 11 (SIGSEGV)",
    ]
    assert details["to do"] == (
        "jaxexport convert golden/t.test_b/0.9.2-cpu --for 0.8.1 --replace-custom-calls -o converted"
    )


def test_no_finding_if_no_conversion_was_tried():
    cells = CELLS[-1:]
    assert "CONVERSION" not in {found.title for found in document(cells, summary_of(cells)).findings}


def test_each_cell_shows_the_result_of_its_conversion():
    texts = [dict(evidence(cell)).get("conversion", "") for cell in CELLS]
    assert texts == [
        "fixes it, by its envelope only: format 2",
        "fixes it, by its custom calls, replaced: lapack_spotrf_ffi",
        "does not fix it: t.test_c: not converted for jaxlib 0.8.1: its dtype is newer.",
        "does not fix it: the converted artifact crashed in stage run: died by signal 11 (SIGSEGV)",
        "",
    ]

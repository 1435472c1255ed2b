"""What reports say of conversions that were tried."""

import msgspec
from making import day, document, result, summarize

from export_core.judge import Judgement
from export_core.judge.result import FixByConversion, Level
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.readers.worker.protocol import Stage
from export_core.report.wording import evidence


def tried(case: str, fix: FixByConversion | None, reader: str = "0.8.1"):
    changes = {"case": case, "reader": reader, "stage": Stage.DESERIALIZE, "message": "unsupported version 12"}
    return msgspec.structs.replace(result(Verdict.REFUSED, Judgement.OUTSIDE, **changes), fixed_by_conversion=fix)


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


def test_one_finding_says_how_many_by_what_and_why_not_the_others():
    (found,) = [x for x in document(CELLS, summary_of(CELLS)).findings if x.title == "CONVERSION"]
    assert found.sentence == (
        "It fixes 2 of 4 failing cells: 1 by its envelope alone, 1 by its custom calls, replaced."
    )
    details = dict(found.details)
    assert details["not fixed"].splitlines() == [
        "1: not converted for jaxlib 0.8.1: its dtype is newer.",
        "1: the converted artifact crashed in stage run: died by signal 11 (SIGSEGV)",
    ]
    assert details["to do"] == (
        "jaxexport convert golden/t.test_b/0.9.2-cpu --for 0.8.1 --replace-custom-calls -o converted"
    )


def test_a_run_that_tried_none_has_no_such_finding():
    cells = CELLS[-1:]
    assert "CONVERSION" not in {found.title for found in document(cells, summary_of(cells)).findings}


def test_each_cell_says_what_came_of_it():
    texts = [dict(evidence(cell))["conversion"] for cell in CELLS]
    assert texts == [
        "fixes it, by its envelope alone: format 2",
        "fixes it, by its custom calls, replaced: lapack_spotrf_ffi",
        "does not fix it: t.test_c: not converted for jaxlib 0.8.1: its dtype is newer.",
        "does not fix it: the converted artifact crashed in stage run: died by signal 11 (SIGSEGV)",
        "",
    ]

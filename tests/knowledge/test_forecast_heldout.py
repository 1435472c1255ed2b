"""The comparison of forecasts with what happened, for programs that shaped no entry, and what is recorded of it."""

import pytest
from making import day

from export_core.artifact.readers import LoadResult
from export_core.goldens import GoldenStore
from export_core.knowledge import NO, UNKNOWN, YES, YES_BUT
from export_core.knowledge.forecasting import Answer, Forecast
from export_core.matrix import Cell, Verdict
from export_core.matrix.result import new_result
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.readers.worker.protocol import Stage
from export_core.releases.calendar import Release
from export_core.releases.calendar_entries import shipped_entries
from studies.corpus.choosing import ROOT
from studies.forecast_heldout.session import SETS, Outcome, compared, consumer_of, figures, is_good

READER = find_reader("0.12.0.1", Terms(shipped_entries()))
GOLDEN = GoldenStore(ROOT / "golden").find("tests.compat.test_models.test_convolution/0.12.0.1-cpu")[1]
CELL = Cell(GOLDEN, Release(jax=READER.release.jax, jaxlib="0.12.0.1", built=day(READER.release.built)), "cpu")


def known(*answers):
    """Return a forecast with these answers: whether it loads, compiles, runs, and has the same numbers."""
    forecast = Forecast(LoadResult(READER, True, ()))
    forecast.answers = tuple(map(Answer, answers))
    return forecast


def outcome(reader, answers, worked):
    """Return an outcome with the forecast's four answers; the first `worked` of the four really were a yes."""
    return Outcome("case/writer", reader, known(*answers), worked, "what happened")


@pytest.mark.parametrize(
    ("answers", "worked", "false_yes", "false_no"),
    [
        ((YES, YES, YES, YES), 4, False, False),
        ((YES, YES, YES, YES), 0, True, False),
        ((YES, YES, YES, UNKNOWN), 2, True, False),  # it was said to run
        ((YES, YES, YES, UNKNOWN), 3, False, False),
        ((YES, YES_BUT, YES_BUT, YES_BUT), 1, False, False),
        ((YES, YES, NO, NO), 4, False, True),
        ((YES, YES, NO, NO), 2, False, False),
        ((YES, YES, NO, NO), 1, True, False),  # it was said to compile
        ((NO, NO, NO, NO), 1, False, True),  # it does not run, and loads
    ],
)
def test_a_forecast_is_false_if_the_cell_did_otherwise(answers, worked, false_yes, false_no):
    one = outcome("0.12.0.1", answers, worked)
    assert (one.is_false_yes, one.is_false_no) == (false_yes, false_no)


@pytest.mark.parametrize(
    ("stage", "verdict", "worked"),
    [
        (Stage.COMPARE, Verdict.PASS, 4),
        (Stage.COMPARE, Verdict.NUMERICS, 3),
        (Stage.RUN, Verdict.CRASH, 2),
        (Stage.COMPILE, Verdict.REFUSED, 1),
        (Stage.AUDIT, Verdict.ERROR, 1),
        (Stage.MODULE, Verdict.ERROR, 0),
    ],
)
def test_the_stage_of_a_cell_decides_which_answers_should_be_yes(stage, verdict, worked):
    result = new_result(CELL, stage, verdict)
    (one,) = compared({(GOLDEN.id, "0.12.0.1"): known(YES, YES, YES, YES)}, [result])
    assert one.worked == worked


def test_a_cell_that_was_not_run_is_not_compared_with_forecasts():
    result = new_result(CELL, Stage.ENVIRONMENT, Verdict.NOT_RUN)
    assert compared({}, [result]) == []


def test_too_many_unknown_answers_or_one_false_yes_fail_the_check():
    right, unknown = ("0.12.0.1", (YES,) * 4, 4), ("0.12.0.1", (UNKNOWN,) * 4, 4)
    few = [outcome(*right)] * 19 + [outcome(*unknown)]
    assert figures(few)["unknown"] == 1
    assert is_good(few)
    assert not is_good([*few, outcome(*unknown)])
    assert not is_good([*few, outcome("0.12.0.1", (YES,) * 4, 3)])
    assert not is_good([])


def test_forecasts_are_counted_for_each_runtime_separately():
    assert [consumer_of(name) for name in ("0.9.2", "iree==3.13.0")] == ["jaxlib", "iree"]


@pytest.mark.parametrize(("name", "least"), [("first", 40), ("second", 20), ("third", 40)])
def test_each_heldout_set_has_enough_programs(name, least):
    assert len(SETS[name].tests) >= least


@pytest.mark.parametrize(("answers", "false_yes"), [((YES, YES, NO, NO), False), ((YES, YES, YES, YES), True)])
def test_if_reading_is_refused_only_a_forecast_of_all_yes_is_wrong(answers, false_yes):
    result = new_result(CELL, Stage.READ, Verdict.REFUSED)
    (one,) = compared({(GOLDEN.id, "0.12.0.1"): known(*answers)}, [result])
    assert one.is_false_yes is false_yes

"""Findings about cells that ended otherwise than forecast, which change no exit code."""

import pytest
from making import result, run_of

from export_core.base.tolerances import WITHIN_NOISE
from export_core.features.forecast.wrong import wrong_forecasts
from export_core.matrix import Verdict

NO = "no: LAPACK calls crash in a fresh process (lapack-cold-process)"


def sentences(*results):
    return [(finding.sentence, len(finding.results)) for finding in wrong_forecasts(run_of(results))]


def test_a_forecast_that_came_true_gives_no_finding():
    crash = result(Verdict.CRASH, forecast=NO)
    assert sentences(result(forecast="yes"), crash, result(forecast="yes, but: it needs 4 devices")) == []


def test_a_cell_without_a_forecast_gives_no_finding():
    assert sentences(result(), result(Verdict.CRASH), result(Verdict.CRASH, forecast="unknown: parts")) == []


def test_unforeseen_failures_and_passes_are_two_findings():
    failed, worked = result(Verdict.CRASH, forecast="yes", message="died"), result(forecast=NO)
    assert sentences(failed, worked) == [
        ("1 cell forecast to work, and failed.", 1),
        ("1 cell forecast to fail, and worked.", 1),
    ]
    first, second = wrong_forecasts(run_of([failed, worked]))
    assert "died" in first.text
    assert "lapack-cold-process" in second.text


def test_a_converted_artifact_has_no_wrong_forecast():
    assert sentences(result(forecast=NO, converted=True)) == []


def test_wrong_numbers_that_the_writer_also_gives_are_no_finding():
    readers = ("0.9.2", "0.10.2")
    changed = [result(Verdict.NUMERICS, reader=reader, forecast="yes") for reader in readers]
    assert sentences(*changed) == []
    works = result(forecast="yes", reader="0.9.2")
    assert sentences(works, changed[1]) == [("1 cell forecast to work, and failed.", 1)]


def test_a_timeout_is_no_wrong_forecast():
    assert sentences(result(Verdict.TIMEOUT, forecast="yes")) == []


def test_numbers_within_the_noise_are_no_wrong_forecast():
    """They fail only where somebody asks for more, such as by `exact`."""
    works = result(forecast="yes", reader="0.9.2")
    rounded = result(Verdict.NUMERICS, forecast="yes", looks_like=f"{WITHIN_NOISE}2 times the noise")
    assert sentences(works, rounded) == []


@pytest.mark.parametrize(("verdict", "is_asked"), [(Verdict.NUMERICS, True), (Verdict.CRASH, False)])
def test_a_wrong_forecast_of_numbers_mentions_the_tolerances(verdict, is_asked):
    works, failed = result(forecast="yes", reader="0.9.2"), result(verdict, forecast="yes")
    (finding,) = wrong_forecasts(run_of([works, failed]))
    assert ("the tolerances that you ask for" in finding.text) is is_asked

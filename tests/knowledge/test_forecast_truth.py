"""The forecast against cells that were run: a sample here, and all of them in `python -m tools.forecast_truth`."""

import pytest

from export_core.knowledge import NO, UNKNOWN, YES
from tools import forecast_truth
from tools.forecast_truth import MOST_UNKNOWN, MOST_UNKNOWN_ELSEWHERE, RunCell, runtime_cells, surface_cells

STRIDE = 37  # a prime: the cells of a golden are in one row, of 18 releases at most


@pytest.mark.parametrize("cells", [surface_cells, runtime_cells], ids=["jaxlib", "other runtimes"])
def test_no_answer_of_the_forecast_was_wrong(cells):
    most_unknown = MOST_UNKNOWN if cells is surface_cells else MOST_UNKNOWN_ELSEWHERE
    cells = [*cells()][::STRIDE]
    answers = [(cell, known.numbers.answer) for cell in cells if (known := forecast_truth.forecast_of(cell))]
    assert len(answers) > 200
    assert [cell for cell, answer in answers if answer == YES and not cell.worked] == []
    assert [cell for cell, answer in answers if answer == NO and cell.worked] == []
    assert sum(answer == UNKNOWN for _, answer in answers) <= most_unknown * len(answers)


CONVOLUTION = "tests.compat.test_models.test_convolution/0.9.2-cpu"


@pytest.mark.parametrize(("worked", "code"), [(True, 0), (False, 1)])
def test_a_wrong_forecast_of_yes_gives_exit_code_1(worked, code, monkeypatch, capsys):
    monkeypatch.setattr(forecast_truth, "runtime_cells", list)
    cell = RunCell(CONVOLUTION, "0.9.2", "0.9.2", "cpu", worked, "outside pass" if worked else "outside error: m")
    monkeypatch.setattr(forecast_truth, "surface_cells", lambda: [cell])
    assert forecast_truth.main([]) == code
    assert (CONVOLUTION in capsys.readouterr().out) is not worked

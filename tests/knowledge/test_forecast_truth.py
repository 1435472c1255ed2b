"""The forecast is true of cells that were run: a sample here, and all of them in `python -m tools.forecast_truth`."""

import pytest

from export_core.knowledge import NO, UNKNOWN, YES
from tools import forecast_truth
from tools.forecast_truth import RunCell, surface_cells

EACH = 37  # a prime: the cells of a golden are in one row, of 18 releases at most


def test_no_cell_was_forecast_to_run_and_failed():
    cells = [*surface_cells()][::EACH]
    known = [(cell, known.numbers.answer) for cell in cells if (known := forecast_truth.forecast_of(cell))]
    assert len(known) > 200
    assert [cell for cell, answer in known if answer == YES and not cell.worked] == []
    assert [cell for cell, answer in known if answer == NO and cell.worked] == []
    assert sum(answer == UNKNOWN for _, answer in known) <= forecast_truth.MOST_UNKNOWN * len(known)


MLP = "tests.compat.test_models.test_convolution/0.9.2-cpu"


@pytest.mark.parametrize(("worked", "code"), [(True, 0), (False, 1)])
def test_a_false_yes_ends_with_1(worked, code, monkeypatch, capsys):
    cell = RunCell(MLP, "0.9.2", "0.9.2", "cpu", worked, "outside pass" if worked else "outside error: m")
    monkeypatch.setattr(forecast_truth, "surface_cells", lambda: [cell])
    assert forecast_truth.main([]) == code
    assert (MLP in capsys.readouterr().out) is not worked

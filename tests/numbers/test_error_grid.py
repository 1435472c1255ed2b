"""The grid that shows where errors are in an array: each part has its worst element and the allowed error."""

import msgspec
import numpy as np
import pytest

from export_core.base.error_grid import LONGEST_LINE, MOST_COLUMNS, MOST_ROWS, ErrorGrid
from export_core.goldens import Comparison
from export_core.goldens.arrays import leaf_of
from export_core.numbers.compare import Difference, Rules, compare_leaves
from export_core.numbers.diagnosis import error_grid


def compared(expected: np.ndarray, actual: np.ndarray, **how: object) -> Difference:
    return compare_leaves([leaf_of(expected)], [leaf_of(actual)], Rules(Comparison(**how)))


def test_the_grid_of_a_short_array_has_a_part_for_each_element():
    limit = np.array([0.1, 0.1, 0.1])
    assert error_grid(np.array([0.0, 0.5, 0.1]), limit) == ErrorGrid(1, 3, 1, 3, (0.0, 0.5, 0.1), (0.1, 0.1, 0.1))


def test_each_grid_part_shows_the_element_farthest_beyond_its_limit():
    errors, limit = np.ones(LONGEST_LINE * 2), np.full(LONGEST_LINE * 2, 10.0)
    errors[6], limit[6] = 0.5, 0.1  # smaller than its neighbour, and not allowed
    grid = error_grid(errors, limit)
    assert (grid.columns, grid.width) == (LONGEST_LINE, LONGEST_LINE * 2)
    assert (grid.errors[3], grid.allowed[3]) == (0.5, 0.1)
    assert {*grid.errors[:3], *grid.errors[4:]} == {1.0}


def test_all_axes_before_the_last_are_merged_into_rows():
    errors = np.zeros((2, 5, 40, 70))
    errors[1, 4, 39, 69] = 1.0
    grid = error_grid(errors, None)
    assert (grid.rows, grid.columns, grid.height, grid.width) == (MOST_ROWS, MOST_COLUMNS, 400, 70)
    assert [number for number, error in enumerate(grid.errors) if error] == [MOST_ROWS * MOST_COLUMNS - 1]


def test_the_grid_of_a_column_or_a_scalar_is_one_row():
    assert error_grid(np.ones((3, 1)), None).rows == 1
    assert error_grid(np.ones(()), None) == ErrorGrid(1, 1, 1, 1, (1.0,), (0.0,))


def test_infinite_errors_and_limits_are_left_out():
    grid = error_grid(np.array([np.inf, 0.25]), np.array([np.nan, np.inf]))
    assert (grid.errors, grid.allowed) == ((None, 0.25), (0.0, 0.0))


def test_zeros_differing_in_sign_get_no_error_grid():
    difference = compared(np.array([0.0, 1.0]), np.array([-0.0, 1.0]), compare="exact")
    assert not difference.ok
    assert difference.grid is None


def test_rounding_moves_no_error_of_the_grid_across_its_limit():
    grid = error_grid(np.array([1.00002, 1.00001]), np.array([1.00001, 1.00002]))
    assert grid.errors[0] > grid.allowed[0]
    assert grid.errors[1] <= grid.allowed[1]


def test_a_comparison_has_an_error_grid_only_if_it_fails():
    values = np.linspace(1, 2, 50, dtype=np.float32)
    assert compared(values, values).grid is None
    wrong = values.copy()
    wrong[20] += 0.5
    grid = compared(values, wrong).grid
    assert [number for number, error in enumerate(grid.errors) if error > grid.allowed[number]] == [20]


def test_the_grid_of_a_large_array_is_small():
    values = np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32)
    wrong = values + np.float32(1)
    encoded = msgspec.json.encode(compared(values, wrong).grid)
    assert len(encoded) < 12_000
    assert msgspec.json.decode(encoded, type=ErrorGrid) == compared(values, wrong).grid


@pytest.mark.parametrize("size", [(0, 0), (-1, -1), (1, 2), (17, 1), (1, 97)])
def test_a_stored_grid_with_missing_parts_is_refused(size):
    rows, columns = size
    parts = [1.0] * (1 if size[0] < 0 or size == (1, 2) else rows * columns)
    text = {"rows": rows, "columns": columns, "height": 1, "width": 1, "errors": parts, "allowed": parts}
    with pytest.raises(msgspec.ValidationError, match="parts, found"):
        msgspec.convert(text, ErrorGrid)

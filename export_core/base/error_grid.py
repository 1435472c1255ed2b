"""The places in an array where numbers differ: the worst error of each part of the array, and the allowed error there.

Also whether an error is garbage, or larger than rounding explains.
"""

import math

import msgspec

from export_core.base.tolerances import GARBAGE, NEAR, NOISE_FACTOR

MOST_ROWS, MOST_COLUMNS, LONGEST_LINE = 16, 32, 96
"""The most rows and columns of parts for an array with several axes, and the most parts for an array with one axis."""


class ErrorGrid(msgspec.Struct, frozen=True, gc=False):
    """The error in each part of an array, row by row: the error that exceeds the allowed error the most.

    The last axis of the array is cut into columns, all other axes together are cut into rows. An array with one axis
    has one row.
    """

    rows: int  # The number of parts from top to bottom.
    columns: int  # The number of parts from left to right.
    height: int  # The number of elements of the array from top to bottom.
    width: int  # The number of elements of the array from left to right.
    errors: tuple[float | None, ...]  # The absolute error in each part, null if a side is NaN or infinite there.
    allowed: tuple[float, ...]  # The error that the element may have, 0 if it must be equal.

    def __post_init__(self) -> None:
        """Raise `ValueError` if the number of errors does not fit the rows and columns, as in a damaged file."""
        fits = 0 < self.rows <= MOST_ROWS and 0 < self.columns <= LONGEST_LINE
        if not (fits and len(self.errors) == len(self.allowed) == self.rows * self.columns):
            raise ValueError(
                f"expected 1 to {MOST_ROWS} rows and 1 to {LONGEST_LINE} columns, an error and an allowed error for "
                f"each of their parts, found {self.rows} rows, {self.columns} columns, {len(self.errors)} errors and "
                f"{len(self.allowed)} allowed errors"
            )


def times_allowed(max_noise_error: float | None, grid: ErrorGrid | None) -> float | None:
    """Return the largest error as a multiple of the allowed error; None if no error is allowed, or none is known.

    Without noise, the result is the largest multiple in `grid`.

    Args:
        max_noise_error: the largest error in units of the noise; None without noise.
        grid: the errors in the parts of one output.
    """
    if max_noise_error is not None:
        return max_noise_error / NOISE_FACTOR
    pairs = zip(grid.errors, grid.allowed, strict=True) if grid else ()
    return max((error / allowed for error, allowed in pairs if error is not None and allowed), default=None)


def is_garbage(max_abs_error: float | None, looks_like: str) -> bool:
    """Return whether outputs are beyond any tolerance: not finite, zero, or far beyond the expected range."""
    return max_abs_error is None or not math.isfinite(max_abs_error) or looks_like.startswith(GARBAGE)


def is_far_off(times: float | None) -> bool:
    """Return whether an error, as the multiple `times` of the allowed error, is larger than rounding explains."""
    return times is not None and times > NEAR

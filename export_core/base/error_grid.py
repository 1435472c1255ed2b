"""The places in an array where numbers differ, by parts of it: each has its worst error and the allowed error."""

import msgspec

MOST_ROWS, MOST_COLUMNS, LONGEST_LINE = 16, 32, 96
"""The most rows and columns of parts for an array with several axes, and the most parts for an array with one axis."""


class ErrorGrid(msgspec.Struct, frozen=True, gc=False):
    """The errors of an array in parts, row by row: for each part, its element that is farthest beyond what is allowed.

    The last axis of the array is cut into columns, all other axes together into rows. An array with one axis has one
    row.
    """

    rows: int  # The number of parts from top to bottom.
    columns: int  # The number of parts from left to right.
    height: int  # The number of elements of the array from top to bottom.
    width: int  # The number of elements of the array from left to right.
    errors: tuple[float | None, ...]  # The absolute error in each part, null if a side is NaN or infinite there.
    allowed: tuple[float, ...]  # The error that the element may have, 0 if it must be equal.

    def __post_init__(self) -> None:
        """Raise `ValueError` if the number of parts does not fit the rows and columns, as in a changed file."""
        fits = 0 < self.rows <= MOST_ROWS and 0 < self.columns <= LONGEST_LINE
        if not (fits and len(self.errors) == len(self.allowed) == self.rows * self.columns):
            raise ValueError(
                f"expected 1 to {MOST_ROWS} rows and 1 to {LONGEST_LINE} columns, an error and an allowed error for "
                f"each of their parts, found {self.rows} rows, {self.columns} columns, {len(self.errors)} errors and "
                f"{len(self.allowed)} allowed errors"
            )

"""Where in an array numbers differ: it is cut into some parts, each with its worst error and what is allowed there."""

import msgspec

MOST_ROWS, MOST_COLUMNS, LONGEST_LINE = 16, 32, 96
"""The most parts of an array with several axes, and of one that is a line: a result stays small, whatever it is of."""


class ErrorGrid(msgspec.Struct, frozen=True, gc=False):
    """The errors of an array in parts, row by row. Of each part, the element that is farthest beyond what is allowed.

    The last axis of the array is cut into columns, all others together into rows. One axis is one row.
    """

    rows: int  # How many parts there are from top to bottom.
    columns: int  # How many parts there are from left to right.
    height: int  # How many elements of the array are from top to bottom.
    width: int  # How many elements of the array are from left to right.
    errors: tuple[float | None, ...]  # The absolute error, null where one side is NaN or infinite.
    allowed: tuple[float, ...]  # The error that this element may have, 0 where it must be equal.

    def __post_init__(self) -> None:
        """Raise `ValueError` for parts that are no grid: a file may come from anywhere, and pages draw it."""
        fits = 0 < self.rows <= MOST_ROWS and 0 < self.columns <= LONGEST_LINE
        if not (fits and len(self.errors) == len(self.allowed) == self.rows * self.columns):
            raise ValueError(f"expected {self.rows} x {self.columns} parts, found {len(self.errors)}")

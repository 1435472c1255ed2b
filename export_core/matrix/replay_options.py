"""The options of a replay, which are equal for all its cells."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from export_core.numbers.user_code import SECONDS, UserCode
from export_core.policy import Policy
from export_core.policy.run_options import CellLimits
from export_core.readers.cell import Cell
from export_core.readers.environment import PUBLISHED, Sources
from export_core.releases import Calendar


@dataclass(frozen=True)
class ReplayOptions:
    """The options of a replay, which are equal for all its cells."""

    calendar: Calendar  # Has the build dates of the readers' jax, for the table of refusals.
    policy: Policy = field(default_factory=Policy)  # Has the allowed custom calls, and the tolerances of platforms.
    limits: CellLimits = field(default_factory=CellLimits)
    sources: Sources = PUBLISHED  # Where packages come from beside the usual index.
    cache: bool = False  # Whether outcomes of equal cells are taken from earlier runs.
    dump: Path | None = None  # The folder for the StableHLO modules of all cells as text; None writes none.
    user_code: UserCode | None = None  # The process for users' comparators; None starts one for the replay alone.
    forecast: Callable[[Cell], str] | None = None
    """Returns what a cell is forecast to do, which is stored with its outcome; None stores no forecast."""
    silence: float | None = None
    """The seconds without an outcome after which a line names the cell that runs longest; None for no such line."""


class ConvertCell(Protocol):
    """The hook `converted`, with which a feature replaces a cell's golden by a converted one."""

    def __call__(self, cell: Cell, options: ReplayOptions, folder: Path, notify: Callable[[str], None]) -> Cell | None:
        """Convert the golden of a cell for its reader, write it into the new folder `folder`, and return its cell.

        Return None if the reader accepts the original golden, or if that cannot be converted.
        """


class SayRemedy(Protocol):
    """The hook `remedy`, with which a feature says how a failing cell may be made to run."""

    def __call__(self, cell: Cell, options: ReplayOptions) -> str:
        """Return a sentence on how the feature may make a failing cell run, or why it cannot."""


def opened(user_code: UserCode | None, policy: Policy, limits: CellLimits) -> AbstractContextManager[UserCode]:
    """Return a context manager for the process that runs users' comparators.

    If `user_code` is given, it is this process, which stays open. Otherwise it is a new one, which is closed at the
    end. A new process gets the environment variables that the policy adds, and its limit for an answer is that of a
    cell, if that is more than `SECONDS`.
    """
    if user_code:
        return nullcontext(user_code)
    return closing(UserCode(seconds=max(SECONDS, limits.timeout), variables=policy.environment))

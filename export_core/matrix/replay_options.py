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

    calendar: Calendar  # Dates the readers' jax, for the table of refusals.
    policy: Policy = field(default_factory=Policy)  # Accepted custom calls, and the tolerances of platforms.
    limits: CellLimits = field(default_factory=CellLimits)
    sources: Sources = PUBLISHED  # Where environments come from.
    cache: bool = False  # Take the outcomes of equal cells from earlier runs.
    dump: Path | None = None  # A folder for every module as text, by cell; None writes none.
    user_code: UserCode | None = None  # Runs users' comparators; None starts one for the replay alone.
    forecast: Callable[[Cell], str] | None = None  # What a cell is forecast to do, which is cached with its outcome.


class ConvertCell(Protocol):
    """The hook `converted`: a cell whose reader gets the same program in another form."""

    def __call__(self, cell: Cell, options: ReplayOptions, folder: Path, notify: Callable[[str], None]) -> Cell | None:
        """Return the cell of a converted golden in a folder to make; None where the reader takes the original."""


class SayRemedy(Protocol):
    """The hook `remedy`: what may make a failing cell run."""

    def __call__(self, cell: Cell, options: ReplayOptions) -> str:
        """Return what to do, as a sentence."""


def opened(user_code: UserCode | None, policy: Policy, limits: CellLimits) -> AbstractContextManager[UserCode]:
    """Return a process for users' comparators: the given one, which stays open, or one for this use alone.

    The latter has the variables that the policy adds, and an answer of it may take as long as a cell may.
    """
    if user_code:
        return nullcontext(user_code)
    return closing(UserCode(seconds=max(SECONDS, limits.timeout), variables=policy.environment))

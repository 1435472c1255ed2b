"""How the cells of a replay are run: what is the same for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from export_core.numbers.user_code import SECONDS, UserCode
from export_core.policy import Policy
from export_core.readers.cell import Limits
from export_core.readers.environment import PUBLISHED, Sources
from export_core.releases import Calendar


@dataclass(frozen=True)
class ReplayOptions:
    """What is the same for all cells of a replay.

    `calendar` dates the readers' jax, for the table of refusals; `policy` says which custom calls are accepted beside
    JAX's stable list, and the tolerances of platforms; `sources` are where environments come from. `cache`: take the
    outcomes of equal cells from earlier runs. `dump` is a folder for every module as text, by cell; None writes none.
    `user_code` runs users' comparators; None starts a process for each comparison.
    """

    calendar: Calendar
    policy: Policy = field(default_factory=Policy)
    limits: Limits = field(default_factory=Limits)
    sources: Sources = PUBLISHED
    cache: bool = False
    dump: Path | None = None
    user_code: UserCode | None = None


def user_code_within(limits: Limits, variables: Iterable[str]) -> UserCode:
    """A process for users' comparators, with the variables that a policy adds; an answer may take as a cell may."""
    return UserCode(seconds=max(SECONDS, limits.timeout), variables=variables)

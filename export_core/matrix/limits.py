"""How cells are replayed: the limits of each cell, and everything else that is the same for all cells of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from export_core.numbers.user_code import SECONDS, UserCode
from export_core.policy import Policy
from export_core.policy.run_options import CellOptions, RunOptions, of_cell
from export_core.readers.environment import PUBLISHED, Sources
from export_core.releases import Calendar


@dataclass(frozen=True)
class Limits(CellOptions):
    """The options of each cell, and how many run at once. A limit of 0 is none.

    `jobs` is how many cells run at once, `device_jobs` how many of those may be on an accelerator: two processes do
    not share its memory, each takes what it finds. `fork` says how a cold process is made.
    """

    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    fork: bool = hasattr(os, "fork")  # Windows has none, and starts an interpreter for each cell
    device_jobs: int = 1

    @classmethod
    def of(cls, options: RunOptions) -> Limits:
        """The limits that the options of a run ask for."""
        cores = 1 if options.executor != "local" else os.cpu_count() or 1
        return cls(**of_cell(options), jobs=options.jobs or cores, device_jobs=options.device_jobs)

    def user_code(self, variables: Iterable[str]) -> UserCode:
        """A process for users' comparators, with the variables that a policy adds; an answer may take as a cell may."""
        return UserCode(seconds=max(SECONDS, self.timeout), variables=variables)


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

"""Environments that broke while a run uses them: found when a cell errs, and built again."""

from __future__ import annotations

import threading
from collections.abc import Callable

from export_core.environments.environment import Environment, damage
from export_core.environments.placement import Placement
from export_core.matrix.cell import Verdict

SUSPICIOUS = (Verdict.ERROR, Verdict.CRASH, Verdict.TIMEOUT, Verdict.NUMERICS, Verdict.NOT_RUN)
"""Verdicts that a damaged environment gives too: it is looked at before they count."""


class Repairs:
    """Damaged environments of a run. `provider` gives an environment, `notify` reports one that is built again."""

    def __init__(self, provider: Callable[[Placement], Environment], notify: Callable[[str], None]) -> None:
        self._provider = provider
        self._notify = notify
        # By identity, with the environment itself, so that no other one gets its id.
        self._damages: dict[int, tuple[Environment, str]] = {}
        self._lock = threading.Lock()

    def damage(self, environment: Environment) -> str:
        """What of an environment is damaged, empty for nothing. All of its files are read, so only once."""
        with self._lock:
            if id(environment) not in self._damages:
                self._damages[id(environment)] = environment, damage(environment)
            return self._damages[id(environment)][1]

    def repaired(self, environment: Environment, placement: Placement) -> Environment:
        """An environment, asked for again: what broke of it meanwhile is repaired. Raises `EnvironmentFailed`."""
        damaged = self.damage(environment)
        if damaged:
            self._notify(f"the environment of jaxlib {environment.release.jaxlib} is built again: {damaged}")
        repaired = self._provider(placement)
        if damaged:  # what a package still says wrongly of its own files is no damage
            self._damages[id(repaired)] = repaired, ""
        return repaired

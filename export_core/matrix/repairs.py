"""Environments that broke while a run uses them: found when a cell errs, and built again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from export_core.matrix.cell import Verdict
from export_core.readers.environment import Environment, damage
from export_core.readers.placement import Placement


def is_suspicious(verdict: Verdict) -> bool:
    """Whether a damaged environment gives this verdict too: it is looked at before the verdict counts."""
    return not verdict.works and verdict is not Verdict.REFUSED


@dataclass
class _Look:
    """A look at an environment, which it has so that no other one gets its id. `damage` is None before the look."""

    environment: Environment
    damage: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Repairs:
    """Damaged environments of a run. `provider` gives an environment, `notify` reports one that is built again."""

    def __init__(self, provider: Callable[[Placement], Environment], notify: Callable[[str], None]) -> None:
        self._provider = provider
        self._notify = notify
        self._looks: dict[int, _Look] = {}  # by identity: variables make an environment unhashable

    def damage(self, environment: Environment) -> str:
        """What of an environment is damaged, empty for nothing. All of its files are read, so only once."""
        look = self._looks.setdefault(id(environment), _Look(environment))
        with look.lock:
            if look.damage is None:
                look.damage = damage(environment)
            return look.damage

    def repaired(self, environment: Environment, placement: Placement) -> Environment:
        """An environment, asked for again: what broke of it meanwhile is repaired. Raises `EnvironmentFailed`."""
        damaged = self.damage(environment)
        if damaged:
            self._notify(f"the environment of jaxlib {environment.release.jaxlib} is built again: {damaged}")
        repaired = self._provider(placement)
        if damaged:  # what a package still says wrongly of its own files is no damage
            self._looks[id(repaired)] = _Look(repaired, "")
        return repaired

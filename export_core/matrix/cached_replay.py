"""What of a plan is known from earlier runs, and what must be run?"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from export_core.environments.environment import Environment
from export_core.environments.hardware import shares_device
from export_core.environments.placement import Placement
from export_core.goldens import Golden, Manifest
from export_core.goldens.store import FOR_THE_EYE
from export_core.matrix.cell import Cell, Outcome
from export_core.matrix.checks import registered
from export_core.matrix.fingerprints import code, machine
from export_core.matrix.limits import Limits, Runs
from export_core.matrix.outcome_cache import OutcomeCache
from export_core.matrix.replay import Equipped
from export_core.matrix.self_contained import decided_by_content
from export_core.releases import Calendar
from export_core.tolerances import Tolerances


class Keys:
    """Names an outcome by the content of all that decides it."""

    def __init__(
        self,
        calendar: Calendar,
        limits: Limits,
        tolerances: Tolerances | None = None,
        allow: Mapping[str, str] | None = None,
    ) -> None:
        self._calendar = calendar
        self._policy = msgspec.json.encode([tolerances or {}, sorted(allow or ())], order="deterministic").decode()
        self._runs = Runs(limits)
        self._expected: dict[str, str] = {}
        self._where: dict[int, tuple[Environment, str]] = {}

    def of(self, cell: Cell, environment: Environment) -> str:
        """The key of a cell in an environment whose content is known."""
        golden = cell.golden
        if golden.id not in self._expected:
            self._expected[golden.id] = expected_content(golden.manifest)
        if id(environment) not in self._where:
            self._where[id(environment)] = environment, self._reader(environment)  # holding it keeps its id its own
        parts = (self._runs.of(cell), self._expected[golden.id], self._where[id(environment)][1], self._policy)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _reader(self, environment: Environment) -> str:
        reader = environment.release
        jax = self._calendar.jax.get(reader.jax)  # its date decides which messages are refusals
        loader = (f"{name}={value}" for name, value in sorted(environment.variables.items()) if name.startswith("LD_"))
        return "\n".join(
            (environment.content_hash, *loader, str(jax.built if jax else reader.built), code(), machine())
        )


def replay_new(
    cells: Sequence[Cell],
    cache: OutcomeCache,
    keys: Keys,
    *,
    standing: Callable[[Placement], Environment | None],
    equipped: Equipped,
    replay: Callable[[Sequence[Cell], Equipped], Generator[Outcome, None, None]],
    notify: Callable[[str], None] = lambda text: None,
    anew: bool = False,
) -> Iterator[Outcome]:
    """One outcome for each cell: those that are known first, then what `replay` makes of the others, which are kept.

    Of an environment that is asked for again, since something broke, nothing is kept: which outcomes come from the broken one nobody knows.
    No environment is built or started of which every cell is known. `standing` gives the environment of a reader where it is built.
    `anew`: every cell is run, whatever is known of it. So is what runs on an accelerator: no key holds its driver.
    """
    fresh = {name: _of_the_moment(golden) for name, golden in {cell.golden.id: cell.golden for cell in cells}.items()}
    asked: Counter[Placement] = Counter()
    environments = {placement: standing(placement) for placement in dict.fromkeys(cell.placement for cell in cells)}

    def key(cell: Cell) -> str:
        """Empty where the outcome is not kept, and while the environment does not stand."""
        environment = environments[cell.placement]
        if (
            asked[cell.placement] > 1
            or environment is None
            or not environment.content_hash
            or fresh[cell.golden.id]
            or shares_device(cell.placement)
        ):
            return ""
        return keys.of(cell, environment)

    named = {cell.id: name for cell in cells if (name := key(cell))}
    known = {} if anew else cache.get(tuple(named.values()))
    if known:
        notify(f"{len(known)} of {len(cells)} cells have been run before with the same content: not run again")
    left = []
    for cell in cells:
        if kept := known.get(named.get(cell.id, "")):
            yield kept.of(cell)
        else:
            left.append(cell)

    def remembered(placement: Placement) -> Environment:
        asked[placement] += 1
        environments[placement] = environment = equipped(placement)
        return environment

    with closing(replay(left, remembered)) as outcomes:
        for outcome in outcomes:
            name = key(outcome.cell)
            yield cache.put(name, outcome) if name else outcome


def _of_the_moment(golden: Golden) -> bool:
    """Whether what comes out depends on what no key holds: the code of a user, who registers or compares, may reach for anything.

    A module to register is in the golden, and in the key: that is enough where it reaches for nothing.
    """
    if ":" in golden.manifest.comparison.compare:
        return True
    modules = [Path(path) for _, path in registered(golden)]
    if not all(path.name in golden.manifest.files for path in modules):
        return True
    try:
        return not all(decided_by_content(path.read_bytes()) for path in modules)
    except OSError:  # the cell says so
        return True


def expected_content(manifest: Manifest) -> str:
    """A hash of what a golden says and expects; what it is called, and what is for the eye only, is left out."""
    files = {name: content for name, content in manifest.files.items() if name not in FOR_THE_EYE}
    nameless = msgspec.structs.replace(manifest, case="", test="", name=None, files=files)
    return hashlib.sha256(msgspec.json.encode(nameless, order="deterministic")).hexdigest()

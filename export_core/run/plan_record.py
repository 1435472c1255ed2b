"""plan.json: what decides the results of a run, and which cells it has. Results belong to one plan, by hash.

The evidence of a plan is everything that decides a verdict, part by part. A command that reads a run computes again the
parts that may have changed since: results by another tool, comparator or environment variable do not count.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from export_core.base.errors import Problem
from export_core.base.json_text import decode_json, json_bytes
from export_core.base.processes import is_of_machine, salted_hash
from export_core.base.text import few, schema_problem
from export_core.base.untrusted import LARGEST, read_named
from export_core.judge.gate import calendar_facts, recorded_policy
from export_core.matrix.cache_keys import tool
from export_core.matrix.plan import Plan
from export_core.numbers.user_source import source_hash
from export_core.policy import Policy
from export_core.policy.model import LOCATED
from export_core.policy.run_options import RESULTS as USUAL_FOLDER
from export_core.policy.run_options import CellLimits, CellOptions, Selection, of_cell, options_of
from export_core.readers.cell import CellKey
from export_core.releases.runtimes import Runtime, known_runtimes, runtime_of
from export_core.run.errors import AGAIN, IncompleteResults, not_as_written, not_readable

PLAN = "plan.json"

_OF_CELL = [option.flag for option in options_of(CellOptions).values()]
_DIFFERENCES = {
    "tool": "another version of pytest-jaxexport",
    "as_of": "another --as-of",
    "calendar": "another calendar of releases",
    "selection": "another selection",
    "goldens": "other goldens",
    "cells": "other cells",
    "wheels": "other wheel files",
    "policy": "another policy",
    "limits": f"another {', '.join(_OF_CELL[:-1])} or {_OF_CELL[-1]}",
}
_DECIDING = (
    ("--policy", "--fail-on", "--unpromised"),
    ("--goldens",),
)  # The options that decide the policy, the goldens.
_COMMIT, _COMPARATOR, _VARIABLE, _RUNTIME = "commit", "comparator", "variable", "runtime"
"""The kinds of parts that a plan has only in its evidence. A part of each kind but the commit is named such as
``comparator my_module:my_function``.
"""
_NOT_FOUND = "not found"
_HASHED = ("calendar", "goldens", "cells", "wheels", "policy")
"""The fields of a plan whose values people could not read: a message only says that they differ."""


class Evidence(msgspec.Struct, frozen=True):
    """Everything that decides a verdict."""

    digest: str  # A hash of all parts.
    parts: dict[str, str]
    """Each part by its name, as a hash; the version of pytest-jaxexport and the commit as they are."""

    @classmethod
    def of(cls, parts: Mapping[str, str]) -> Evidence:
        """Return the evidence with these parts, sorted by name, and with their digest."""
        ordered = dict(sorted(parts.items()))
        return cls(hash_of(ordered), ordered)

    def differs_in(self, other: Evidence, folders: Sequence[Path] = ()) -> str:
        """Return a phrase that names the first part that differs in another evidence; "" if no part does.

        `folders` are those of two shards, as `PlanRecord.differs_in` takes them.
        """
        if self.digest == other.digest:
            return ""
        for name in sorted({*self.parts, *other.parts}):
            then, now = self.parts.get(name, ""), other.parts.get(name, "")
            if then != now:
                return _in_words(name, then, now, folders)
        return ""


class PlanRecord(msgspec.Struct, frozen=True):
    """The content of plan.json: everything that decides the results of a run, and its cells.

    In the record of a shard, all fields but `own_cells`, `shard` and `options` are equal to those of the whole plan.
    """

    tool: str  # Our version and a hash of our code.
    as_of: str  # The day as of which cells are judged.
    selection: dict[str, Any]  # The selection that was asked for.
    goldens: dict[str, str]  # The hash of each golden, by its id.
    cells: str  # A hash of `own_cells` for the whole plan.
    planned: int  # The number of cells of the whole plan.
    policy: str  # A hash of the policy.
    limits: dict[str, float | str]  # The options of each cell: seconds, bytes, repetitions.
    wheels: str  # A hash of the unpublished wheels.
    calendar: dict[str, Any]  # The calendar's part of the summary.
    own_cells: dict[str, str]
    """For each reader on a platform the numbers of goldens, such as `0-17,20`, counted in the order of their ids."""
    shard: str = ""  # Which shard it is, such as 1/4; empty for the whole plan.
    evidence: Evidence | msgspec.UnsetType = msgspec.UNSET  # What decides a verdict; not in a plan by an older version.
    options: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The options of the command that made the run, as words, without --results, --shard and --resume; missing for a
    run that no command made."""

    @property
    def digest(self) -> str:
        """A hash of all that decides the results, which is the same for all shards of a plan."""
        # `options` decides nothing by itself: those that do are also in other fields.
        return hash_of(msgspec.structs.replace(self, shard="", own_cells={}, options=msgspec.UNSET))

    def command(self, folder: Path, *, resume: bool = True) -> str:
        """Return the shell command that continues this run in a folder of results; "" if no command made the run.

        Without `resume`, it is the command that makes the run again.
        """
        if not isinstance(self.options, list):
            return ""
        shard = ["--shard", self.shard] if self.shard else []
        results = [] if folder == USUAL_FOLDER else ["--results", str(folder)]
        return shlex.join(["jaxexport", "matrix", *self.options, *shard, *(["--resume"] if resume else []), *results])

    def under_policy(self, file: Path) -> PlanRecord:
        """Return the record of the command that names this policy file in place of its own."""
        if not isinstance(self.options, list):
            return self
        kept = list(self.options)
        if "--policy" in kept:
            at = kept.index("--policy")
            del kept[at : at + 2]
        return msgspec.structs.replace(self, options=[*kept, "--policy", str(file)])

    def _given(self, *options: str) -> list[str]:
        """Return the values that the command gave these options."""
        words = self.options if isinstance(self.options, list) else ()
        return [value for option, value in itertools.pairwise(words) if option in options]

    @property
    def policy_file(self) -> str | None:
        """The policy file that the command named; None if it named none."""
        return next(iter(self._given("--policy")), None)

    @property
    def goldens_folder(self) -> Path | None:
        """The folder of goldens that the command named; None if it named none."""
        return next(map(Path, self._given("--goldens")), None)

    @property
    def changes_policy(self) -> bool:
        """Whether options of the command changed its policy."""
        return bool(self._given("--fail-on", "--unpromised"))

    def other_commit(self, now: str) -> str:
        """Return a phrase that says from which commit this plan was made, if it is not that of `now`; else ""."""
        then = self.evidence.parts.get(_COMMIT, "") if isinstance(self.evidence, Evidence) else now
        return "" if then == now else _in_words(_COMMIT, then, now)

    def differs_in(self, other: PlanRecord, folders: Sequence[Path] = ()) -> str:
        """Return a phrase that names the first difference of another plan; "" if there is none.

        Two shards of one plan do not differ. For two shards of one day, `folders` are their results folders, which the
        phrase names in place of the word "now".
        """
        for name, words in _DIFFERENCES.items():
            before, now = getattr(self, name), getattr(other, name)
            if name == "selection":  # Whether a selection is whole follows from its other entries and the policy.
                before, now = ({**chosen, "whole": None} for chosen in (before, now))
            if before != now:
                return words if name in _HASHED else f"{words}: {_difference(before, now, folders)}"
        if isinstance(self.evidence, Evidence) and isinstance(other.evidence, Evidence):
            return self.evidence.differs_in(other.evidence, folders)
        return ""

    def has_changed_until(self, other: PlanRecord) -> bool:
        """Return whether a later plan differs in something that no option decides, such as the commit.

        Then no command continues this run. Changes inside the policy or the goldens count only if both commands name
        the same policy, or the same folder of goldens.
        """
        if self.tool != other.tool:
            return True
        if isinstance(self.options, list) and isinstance(other.options, list):
            same_policy, same_goldens = (self._given(*named) == other._given(*named) for named in _DECIDING)
            if same_policy and self.policy != other.policy:
                return True
            if same_goldens and any(other.goldens.get(name, found) != found for name, found in self.goldens.items()):
                return True
        if not (isinstance(self.evidence, Evidence) and isinstance(other.evidence, Evidence)):
            return False
        then, now = self.evidence.parts, other.evidence.parts
        names = {*then} & {*now}
        if self.policy == other.policy:  # which names the variables; the selection decides which of the others are used
            names |= {name for name in {*then, *now} if not name.startswith((_COMPARATOR, _RUNTIME))}
        return any(then.get(name) != now.get(name) for name in names - {*_DIFFERENCES})

    def changes_since(self, policy: Policy) -> list[str]:
        """Return a phrase for each part of the evidence that has changed since the run; an empty list if none has.

        Compared are the parts that can be computed again: the tool, the source code of comparators, the runtimes, and
        the environment variables that `policy` names. `policy` is the one by which the results are to be judged.
        """
        if self.tool != tool() or not isinstance(self.evidence, Evidence):
            return [_another_tool(self.tool)]
        then = self.evidence.parts
        runtimes = {name: known_runtimes().get(name) for name in _named(_RUNTIME, then)}
        now = own_parts(policy, _named(_COMPARATOR, then), self.goldens) | _runtime_parts(runtimes)
        # Source code that was not found then and is not found now may have changed all the same.
        lost = [_in_words(name, part, part) for name, part in now.items() if part == then.get(name) == _NOT_FOUND]
        return lost + different_parts(then, now)

    def check_keys(self, keys: Iterable[CellKey], where: str) -> None:
        """Check that each planned cell has exactly one result.

        `keys` are the cells of the results; `where` begins each message. Raises `IncompleteResults` if a planned cell
        has no result, or more than one, and `RunError` if a result is of a cell that was not planned.
        """
        names = sorted(self.goldens)
        places = self.own_cells.items()
        try:
            counts = {(names[number], place): 0 for place, ranges in places for number in _numbers(ranges)}
        except (ValueError, IndexError):
            raise not_as_written(where, f"expected only cells of goldens that {PLAN} lists, found others.") from None
        unplanned = []
        for key in keys:
            cell = key.golden, _place(key)
            if cell in counts:
                counts[cell] += 1
            else:
                unplanned.append(str(key))
        if unplanned:
            raise not_as_written(where, f"expected results of cells in {PLAN}, found also {few(unplanned)}.")
        for found, cells in (
            ("none", [cell for cell, count in counts.items() if not count]),
            ("more", [cell for cell, count in counts.items() if count > 1]),
        ):
            if cells:
                problem = (
                    f"expected one result for each of {len(counts)} planned cells, found {found} for {len(cells)}: "
                    f"{few([' in '.join(cell) for cell in cells])}."
                )
                raise IncompleteResults.about(Problem(where, problem, advice=AGAIN))


def record_of(
    plan: Plan,
    policy: Policy,
    limits: CellLimits,
    shard: str = "",
    part: Plan | None = None,
    commit: str = "",
    options: Sequence[str] = (),
) -> PlanRecord:
    """Return the record of a plan, or of one shard of the plan.

    Args:
        plan: the whole plan.
        policy: the policy of the project.
        limits: the options of each cell.
        shard: the name of the shard, such as ``1/4``; "" for the whole plan.
        part: the plan of the shard; None for the whole plan.
        commit: the commit of the project, and whether its files were changed since; "" if that is not known.
        options: the options of the command that makes the run, as words; empty if no command makes it.
    """
    goldens = {golden.id: hash_of(golden.manifest) for golden in plan.goldens}
    own_cells = cells_by_place((cell.key for cell in plan.cells), goldens)
    comparators = {golden.compared_as.comparison.compare for golden in plan.goldens}
    runtimes = {name: runtime_of(name) for name in {reader.family for reader in plan.readers if reader.runtime}}
    # Compared as they are read back: JSON has only one kind of numbers.
    own = of_cell(limits).items()
    limits_of_cell = {name: value if isinstance(value, str) else float(value) for name, value in own}
    wheels = hash_of([plan.sources.content(reader) for reader in plan.readers])
    parts = own_parts(policy, comparators, goldens) | _runtime_parts(runtimes)
    parts |= {"tool": tool(), "policy": hash_of(policy.replayed()), "goldens": hash_of(goldens), _COMMIT: commit}
    parts |= {"limits": hash_of(limits_of_cell), "wheels": wheels}
    return PlanRecord(
        tool=tool(),
        as_of=str(plan.as_of),
        # As it is read back, where tuples are lists.
        selection=msgspec.json.decode(json_bytes(plan.recorded_selection)),
        goldens=goldens,
        cells=hash_of(own_cells),
        planned=len(plan.cells),
        policy=policy_hash(recorded_policy(policy)),
        limits=limits_of_cell,
        wheels=wheels,
        calendar=calendar_facts(plan.calendar, plan.as_of),
        own_cells=cells_by_place((cell.key for cell in part.cells), goldens) if part else own_cells,
        shard=shard,
        evidence=Evidence.of({name: part for name, part in parts.items() if part}),
        options=[*options] or msgspec.UNSET,
    )


def own_parts(policy: Policy, comparators: Iterable[str], salted_by: Any) -> dict[str, str]:
    """Return the parts of the evidence that a project decides: its comparators' source code, environment variables.

    Args:
        policy: its `environment` names the variables. The part of a variable that is not set is "".
        comparators: the names of all comparators in use; only the user's own, ``module:function``, are parts.
        salted_by: data from which the salt of the variables' hashes is made, such as the hashes of goldens.
    """
    parts = {}
    for name in sorted(comparators):
        if ":" in name:
            parts[f"{_COMPARATOR} {name}"] = source_hash(name) or _NOT_FOUND
    for name in policy.environment:
        if not is_of_machine(name):
            value = os.environ.get(name)
            salt = hash_of(salted_by)[:16]  # the salt is the same for all shards of a plan
            parts[f"{_VARIABLE} {name}"] = "" if value is None else salted_hash(f"{name}={value}", salt)
    return parts


def both_values(before: Any, now: Any, folders: Sequence[Path] = ()) -> str:
    """Return two values as ``A, now B``, or if the results folders of two shards are given, as ``A in 1, B in 2``."""
    return f"{before} in {folders[0]}, {now} in {folders[1]}" if folders else f"{before}, now {now}"


def _difference(before: Any, now: Any, folders: Sequence[Path]) -> str:
    """Return two different values in words; for two tables, only the entries that differ, with their names."""
    if not (isinstance(before, dict) and isinstance(now, dict)):
        return both_values(before, now, folders)
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return "; ".join(
        f"{name} {both_values(_shown(before.get(name)), _shown(now.get(name)), folders)}" for name in names
    )


def _shown(value: Any) -> str:
    """Return the value of an option as people read it: a list with commas, and ``none`` for nothing."""
    shown = few([*map(str, value)]) if isinstance(value, list) else "" if value is None else str(value)
    return shown or "none"


def different_parts(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a text for each part in `now` whose value differs from its value in `then`."""
    return [_in_words(name, then.get(name, ""), part) for name, part in now.items() if part != then.get(name, "")]


def _runtime_parts(runtimes: Mapping[str, Runtime | None]) -> dict[str, str]:
    """Return a part of the evidence for each runtime; its value is "" for a runtime that is not installed (None)."""
    return {
        f"{_RUNTIME} {name}": _hash_of_runtime(runtime) if runtime else "" for name, runtime in sorted(runtimes.items())
    }


def _hash_of_runtime(runtime: Runtime) -> str:
    """Return a hash of what the package of a runtime declares, without its releases, and of its worker half."""
    names = {*runtime.__struct_fields__} - {"folder", "releases"}
    half = hashlib.sha256(read_named(runtime.half)).hexdigest()
    return hash_of([half, {name: getattr(runtime, name) for name in names}])


def _named(kind: str, parts: Iterable[str]) -> list[str]:
    """Return the names behind `kind` in the names of parts, such as `f` for the kind `comparator` in `comparator f`."""
    return [name for part in parts for found, _, name in [part.partition(" ")] if found == kind]


def _in_words(part: str, then: str, now: str, folders: Sequence[Path] = ()) -> str:
    """Return a phrase that says how a part of the evidence, whose values were `then` and are `now`, has changed.

    `folders` are those of two shards, as `PlanRecord.differs_in` takes them.
    """
    kind, _, name = part.partition(" ")
    if kind == _COMPARATOR:
        missing = ", which is not found from this folder" if now == _NOT_FOUND else ""
        return f"another source of the comparator {name}{missing}"
    if kind == _VARIABLE:
        missing = ", which is not set now" if not now else ", which was not set" if not then else ""
        if missing and folders:
            missing = f", which is not set in {folders[bool(then)]}"
        return f"another value of the variable {name}{missing}"
    if kind == _RUNTIME:
        missing = ", which is not installed here" if not now else ""
        return f"another version of the worker half of {name}, or of the file beside it{missing}"
    if kind == _COMMIT:
        return f"another commit of the project: {both_values(then or 'none', now or 'none', folders)}"
    return _DIFFERENCES[part]


def cells_by_place(keys: Iterable[CellKey], goldens: Iterable[str]) -> dict[str, str]:
    """Return cells in the form of `PlanRecord.own_cells`, which is equal for equal cells in any order.

    `goldens` are the ids of all goldens of the plan.
    """
    numbers = {name: number for number, name in enumerate(sorted(goldens))}
    places: dict[str, list[int]] = {}
    for key in keys:
        places.setdefault(_place(key), []).append(numbers[key.golden])
    return {place: _ranges(sorted(places[place])) for place in sorted(places)}


def recorded_plan(folder: Path) -> PlanRecord | None:
    """Return the plan of the last run in a results folder, or None if no run began there.

    Raises `RunError` if this version cannot read the plan.
    """
    path = folder / PLAN
    try:
        record: PlanRecord = decode_json(read_named(path, LARGEST), PlanRecord)
        return record
    except OSError:
        return None
    except msgspec.MsgspecError as error:
        raise not_readable(path, "a plan", schema_problem(error)) from None


class _Extent(msgspec.Struct):
    """The parts of a plan.json, of any version, that tell whether its run is whole."""

    selection: dict[str, Any]
    shard: str = ""


class _Maker(msgspec.Struct):
    """The parts of a plan.json, of any version, that tell which code made its run."""

    tool: str


def by_another_tool(folder: Path) -> str:
    """Return a phrase that names the version of pytest-jaxexport that made a run, if it is not this version.

    `folder` is the results folder. The phrase is "" if this version made the run, or if the plan cannot be read.
    """
    try:
        maker = decode_json(read_named(folder / PLAN, LARGEST), _Maker).tool
    except (OSError, msgspec.MsgspecError):
        return ""
    return _another_tool(maker) if maker != tool() else ""


def _another_tool(maker: str) -> str:
    return f"{_DIFFERENCES['tool']}: {maker}, now {tool()}"


def has_whole_run(folder: Path) -> bool:
    """Return whether the last run in a results folder, finished or not, is of everything that the project asks for."""
    try:
        extent = decode_json(read_named(folder / PLAN, LARGEST), _Extent)
    except (OSError, msgspec.MsgspecError):
        return False
    return bool(extent.selection.get("whole")) and not extent.shard


def is_narrower(readers: str, folder: Path) -> bool:
    """Return whether `readers` is a list, and the last run in a results folder had a group, such as `window`.

    A run of listed readers may be whole by its policy, and still lacks readers that the last run had.
    """
    try:
        extent = decode_json(read_named(folder / PLAN, LARGEST), _Extent)
    except (OSError, msgspec.MsgspecError):
        return False
    last = Selection(readers=str(extent.selection.get("readers", "")))
    return last.has_group and not Selection(readers=readers).has_group


def plan_of(folder: Path) -> PlanRecord:
    """Return the plan of the run in a results folder.

    Raises `RunError` if there is no plan, or if this version cannot read it.
    """
    if record := recorded_plan(folder):
        return record
    raise not_as_written(folder / PLAN, "expected the plan of a matrix run, found none.")


def hash_of(value: Any) -> str:
    """Return the SHA-256 of data as JSON, in hexadecimal digits; equal data always gives the same hash."""
    return hashlib.sha256(json_bytes(value, order="deterministic")).hexdigest()


def policy_hash(policy: Mapping[str, Any]) -> str:
    """Return a hash of a policy in the form of summary.json.

    The place of an entry in its file does not count. Only keys that are present count, so a later version, which knows
    more keys, computes the same hash.
    """
    plain = msgspec.json.decode(json_bytes(policy))
    for table in LOCATED:
        for entry in plain.get(table, ()):
            entry.pop("place", None)
    return hash_of(plain)


def _place(key: CellKey) -> str:
    return f"{key.pair} on {key.platform}"


def _ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers as ranges, such as ``0-17,20``."""
    parts = []
    # Consecutive numbers all differ from their positions by the same amount.
    for _, group in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *others = (number for _, number in group)
        parts.append(f"{first}-{others[-1]}" if others else str(first))
    return ",".join(parts)


def _numbers(ranges: str) -> Iterator[int]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)

"""The plan of a run: its cells, in order; and the shards of a plan, which machines run independently of each other."""

import datetime
import heapq
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from export_core.base.text import few, plural
from export_core.goldens import Golden, hint_at_cases
from export_core.goldens.store import check_output_folder
from export_core.goldens.verify import check_dates
from export_core.matrix.selection import MatrixError, Readers, choose_readers, known_releases
from export_core.numbers.user_code import UserCode, check_spelling
from export_core.policy.entries import DeploymentTarget, matches, names_of
from export_core.policy.run_options import BACKWARD, Selection, Shard
from export_core.readers.cell import Cell, promise_of_golden
from export_core.readers.environment import PUBLISHED, Sources
from export_core.readers.placement import Mode, Target, parse_platform, parse_targets
from export_core.releases import Calendar, Release, Windows


@dataclass(frozen=True)
class Plan:
    """The cells of one run, ordered by reader, oldest first."""

    cells: tuple[Cell, ...]
    as_of: datetime.date  # The day for which they are judged.
    calendar: Calendar  # The calendar as of that day, with the releases that `sources` add.
    selection: Selection
    sources: Sources = PUBLISHED
    spelled: Mapping[Release, str] = field(default_factory=dict)  # The name of each reader as --readers takes it.
    unexported: Mapping[str, int] = field(default_factory=dict)  # How many goldens have no cell on each platform.
    unexported_cases: Mapping[str, list[str]] = field(default_factory=dict)
    """By platform: the cases of which no selected golden runs there."""
    without_cells: str = ""
    """Sentences about goldens that have no cell, or not on all platforms; empty if there are none."""
    later: Mapping[str, datetime.date] = field(default_factory=dict)
    """The ids of selected goldens whose writers were built after that day, with those dates. They have no cell."""
    warnings: tuple[str, ...] = ()  # Sentences for people, about the policy and about earlier results.
    whole: bool = False  # Whether it has all that the policy selects, or every golden with its window.

    @property
    def recorded_selection(self) -> dict[str, Any]:
        """The selection in the form of plan.json and summary.json."""
        return self.selection.as_recorded(whole=self.whole)

    @property
    def readers(self) -> tuple[Release, ...]:
        """The readers of the cells, each once, oldest build first."""
        return tuple(dict.fromkeys(cell.reader for cell in self.cells))

    @property
    def goldens(self) -> tuple[Golden, ...]:
        """The goldens of the cells, each once, in the order of their writers' build dates."""
        goldens = {cell.golden.id: cell.golden for cell in self.cells}
        return tuple(sorted(goldens.values(), key=lambda golden: (golden.manifest.writer.built, golden.id)))


def make_plan(
    goldens: Sequence[Golden],
    calendar: Calendar,
    windows: Windows,
    selection: Selection,
    as_of: datetime.date,
    user_code: UserCode | None = None,
    targets: Sequence[DeploymentTarget] = (),
) -> Plan:
    """Plan every selected golden in every selected reader, as of a day.

    `targets` are the policy's deployment targets in force on that day: cells that have to run in them are planned too.

    `user_code` is the process that imports users' own comparators to check that they exist. Without it nothing is
    imported, since a plan that is only shown needs no project: only the spelling of names is checked.

    Raises:
        MatrixError: Nothing is left to run, since an empty plan must never look like a success.
        CompareError: A comparator does not exist, or cannot by its name.
        GoldenError: The build date in a golden is not that of the calendar.
        ReleaseError: A reader does not exist.
    """
    selection = selection.or_else()
    modes = dict(map(parse_platform, selection.platforms))
    known = known_releases(selection, calendar)
    selected = _select_goldens(goldens, selection, known.calendar, as_of)
    chosen = [golden for golden in selected if golden.manifest.writer.built <= as_of]
    later = {golden.id: golden.manifest.writer.built for golden in selected if golden.manifest.writer.built > as_of}
    # Before anything is run: a misspelled comparator must not end a run after hours.
    for name in dict.fromkeys(golden.compared_as.comparison.compare for golden in chosen):
        (user_code.check if user_code else check_spelling)(name)
    written = [golden.manifest.writer.built for golden in chosen]
    readers = choose_readers(selection, known, windows, written, as_of, targets)
    return Plan(
        _cells(chosen, readers, modes, selection, windows, targets),
        as_of,
        readers.calendar,
        selection,
        readers.sources,
        readers.spelled,
        {name: sum(name not in golden.manifest.replayed_on for golden in chosen) for name in modes},
        {name: _cases_without(chosen, name) for name in modes},
        " ".join(filter(None, (_untested(chosen, modes), of_later_writers(later, as_of)))),
        later,
    )


def planned_cell(
    golden: Golden,
    reader: Release,
    platform: str,
    windows: Windows,
    deployed: Sequence[DeploymentTarget],
    mode: Mode = Mode.RUN,
    target: Target | None = None,
) -> Cell:
    """Return the cell of a golden in a reader; it knows whether it is promised, and which targets have to run it.

    `deployed` are all deployment targets in force. `target` is the device to compile for; None for the default one.
    """
    promised = promise_of_golden(golden, reader, windows).promised
    manifest = golden.manifest
    targets = names_of(deployed, manifest.case, reader.name, platform, None, runs_on=manifest.runs_on)
    return Cell(golden, reader, platform, mode, target, promised, targets)


def _cells(
    goldens: Sequence[Golden],
    readers: Readers,
    modes: Mapping[str, Mode],
    selection: Selection,
    windows: Windows,
    deployed: Sequence[DeploymentTarget],
) -> tuple[Cell, ...]:
    """Return the cells of these goldens in these readers that the selection asks for, ordered by reader.

    `deployed` are the deployment targets in force. Raises `MatrixError` if there is no cell.
    """
    targets = parse_targets(selection.targets)
    # By reader first: a replay takes environments in the order of the cells, and each is built once.
    cells = [
        planned_cell(golden, reader, platform, windows, deployed, _mode(golden, platform, mode), targets.get(platform))
        for reader in readers.chosen
        for golden in goldens
        if golden.manifest.writer.built in readers.for_writers.get(reader, (golden.manifest.writer.built,))
        for platform, mode in modes.items()
        if _has_cell(golden, platform, reader)
    ]
    if "cpu" not in modes and all(reader.runtime for reader in readers.chosen):
        why = (
            f"{', '.join(reader.title for reader in readers.chosen)}: runtimes that are not jaxlib run only on cpu, "
            f"found --platforms {','.join(modes)}. Choose --platforms cpu."
        )
    else:
        why = (
            f"the {plural(len(goldens), 'selected golden')} {'was' if len(goldens) == 1 else 'were'} "
            f"exported for {_platforms(goldens)}, and none for "
            f"{', '.join(modes)}. Choose other --platforms, or export for more: platforms= of the marker."
        )
    return _asked_for(_some(cells, why), readers, selection, deployed)


def _asked_for(
    cells: tuple[Cell, ...], readers: Readers, selection: Selection, deployed: Sequence[DeploymentTarget]
) -> tuple[Cell, ...]:
    """Return the cells that are left after --touching, --only and the limits of deployment targets are applied.

    In a reader that is planned only for deployment targets, the cells that have to run there are left. Raises
    `MatrixError` if no cell is left.
    """
    targets = "; ".join(f"{target.location} {target.name}: {', '.join(target.cases)}".strip() for target in deployed)
    why = (
        f"no deployment target of the policy has to run a selected golden ({targets}). Name other --readers or "
        "--cases, or correct the cases of the target."
    )
    cells = _some((cell for cell in cells if cell.deployed or cell.reader not in readers.for_targets), why)
    if release := readers.touching:
        why = (
            f"--touching {selection.touching}: no selected golden was written by {release.title}, and it is not among "
            "the readers. Leave out --readers, or name it there."
        )
        cells = _some(
            (c for c in cells if c.reader == release or c.golden.manifest.writer.jaxlib == release.jaxlib), why
        )
    if selection.only:
        younger = selection.only == BACKWARD
        why = (
            f"--only {selection.only}: none of the {len(cells)} selected cells is inside its window"
            f"{', or has a younger reader' if younger else ''}. Choose other readers or goldens, or leave out --only."
        )
        cells = _some(
            (c for c in cells if c.decides or (younger and c.reader.built >= c.golden.manifest.writer.built)), why
        )
    return cells


def _some(cells: Iterable[Cell], why: str) -> tuple[Cell, ...]:
    """Return the cells as a tuple; raise `MatrixError` with the reason `why` if there are none."""
    if cells := tuple(cells):
        return cells
    raise MatrixError(f"The plan is empty: {why}")


def _has_cell(golden: Golden, platform: str, reader: Release) -> bool:
    manifest = golden.manifest
    if not reader.runtime:
        return platform in manifest.replayed_on
    # A call on a platform that the artifact is not for is refused by a check of jax.export: other runtimes may differ.
    return platform == "cpu" and platform in manifest.replayed_on and platform not in manifest.options.refused_on


def _mode(golden: Golden, platform: str, mode: Mode) -> Mode:
    """Return the mode of a golden's cell on a platform: compile if the golden has no outputs to compare, else `mode`.

    If the golden must be refused on the platform, the mode is always `mode`.
    """
    options = golden.manifest.options
    return Mode.COMPILE if options.without_outputs and platform not in options.refused_on else mode


def _untested(goldens: Sequence[Golden], modes: Mapping[str, Mode]) -> str:
    """Return sentences about goldens and platforms that a run does not test; empty if it tests them all.

    A golden is not tested if it has no cell on the platforms in `modes`. A platform is not tested if goldens were
    exported for it, but it is not in `modes`.
    """
    tested = [golden for golden in goldens if not modes.keys().isdisjoint(golden.manifest.replayed_on)]
    others = [left for golden in tested if (left := {*golden.manifest.options.platforms} - modes.keys())]
    sentences = []
    if left_out := [golden for golden in goldens if modes.keys().isdisjoint(golden.manifest.replayed_on)]:
        count, them = ("1 golden has", "it") if len(left_out) == 1 else (f"{len(left_out)} goldens have", "them")
        sentences.append(
            f"{count} no cell on the platforms asked for (exported for {_platforms(left_out)}): this run does "
            f"not test {them}."
        )
    if others:
        count = "1 golden was" if len(others) == 1 else f"{len(others)} goldens were"
        more = ", ".join(sorted(set.union(*others)))
        sentences.append(f"{count} exported for {more} too, which this run does not test.")
    return " ".join(sentences)


def _cases_without(goldens: Sequence[Golden], platform: str) -> list[str]:
    """Return the cases of which no golden runs on a platform; goldens that must be refused there do not count."""
    there = {golden.manifest.case for golden in goldens if platform in golden.manifest.runs_on}
    return sorted({golden.manifest.case for golden in goldens} - there)


def of_later_writers(later: Mapping[str, datetime.date], as_of: datetime.date) -> str:
    """Return a sentence about selected goldens whose writers were built after a day; empty if there are none."""
    if not later:
        return ""
    what = "1 golden was" if len(later) == 1 else f"{len(later)} goldens were"
    return f"{what} written by releases after {as_of}, and left out: {few(sorted(later))}."


def _platforms(goldens: Sequence[Golden]) -> str:
    return ", ".join(sorted({platform for golden in goldens for platform in golden.manifest.replayed_on}))


def _select_goldens(
    goldens: Sequence[Golden], selection: Selection, calendar: Calendar, as_of: datetime.date
) -> list[Golden]:
    """Return the goldens that match the cases and writers of the selection, also if the writer was built after `as_of`.

    Raises `MatrixError` if a named writer or case has no golden, or if the writers of all chosen goldens were built
    after `as_of`.
    """
    if not goldens:
        raise MatrixError(
            "There is no golden to replay: expected at least one in the golden folder. Mark a test with "
            "@pytest.mark.export_compat and run `pytest --update-goldens`."
        )
    by_date = sorted((golden.manifest.writer for golden in goldens), key=lambda writer: writer.built)
    writers = dict.fromkeys(writer.jaxlib for writer in by_date)
    if unknown := next((writer for writer in selection.writers if writer not in writers), ""):
        raise MatrixError(
            f"--writers: no golden was written by jaxlib {unknown}. There are goldens by {', '.join(writers)}."
        )
    cases = {golden.manifest.case for golden in goldens}
    for pattern in selection.cases:
        if not any(_matches(golden.manifest.case, pattern, cases) for golden in goldens):
            advice = _cases_of_test(pattern, goldens) or hint_at_cases(pattern, sorted(cases))
            advice = " Give --cases once for each." if "," in pattern else advice
            raise MatrixError(f"--cases: no case matches {pattern!r}.{advice}")
    selected = [golden for golden in goldens if _is_selected(golden, selection, cases)]
    check_dates(goldens, calendar, all_known=False)
    check_dates(selected, calendar)
    # After their dates: one that claims a day to come would otherwise be left out.
    if any(golden.manifest.writer.built <= as_of for golden in selected):
        return selected
    raise MatrixError(
        f"The plan is empty: of {len(selected)} selected goldens none was written by a jaxlib built on or before "
        f"{as_of}. Choose a later --as-of, or other --cases and --writers."
    )


def _is_selected(golden: Golden, selection: Selection, cases: Collection[str]) -> bool:
    """Return whether a golden matches the cases and writers of the selection; `cases` are those of all goldens."""
    case, writer = golden.manifest.case, golden.manifest.writer
    return (not selection.writers or writer.jaxlib in selection.writers) and (
        not selection.cases or any(_matches(case, pattern, cases) for pattern in selection.cases)
    )


def without_needless(selection: Selection, goldens: Sequence[Golden]) -> Selection:
    """Return the selection without --cases and --writers if these two options exclude none of `goldens`.

    They stay if a name in them matches nothing, so that the plan can report this name as an error.
    """
    cases = {golden.manifest.case for golden in goldens}
    lost = {*selection.writers}.difference(golden.manifest.writer.jaxlib for golden in goldens)
    lost |= {pattern for pattern in selection.cases if not any(_matches(case, pattern, cases) for case in cases)}
    if lost or not all(_is_selected(golden, selection, cases) for golden in goldens):
        return selection
    return replace(selection, cases=(), writers=())


def _cases_of_test(test: str, goldens: Sequence[Golden]) -> str:
    """Return advice for a test file or node id given in place of a case: the patterns that match its cases.

    The sentence begins with a space; it is empty if the text names no test of these goldens.
    """
    named = re.compile(rf"(.*/)?{re.escape(test.removeprefix('./'))}(?=$|::|\[)")
    nodes = {golden.manifest.case: match[0] for golden in goldens if (match := named.match(golden.manifest.test or ""))}
    patterns = []
    for case, node in nodes.items():
        file, _, names = node.partition("::")
        dotted = ".".join((file.removesuffix(".py").replace("/", "."), *names.split("::"))).rstrip(".")
        pattern = dotted if dotted == case else f"{dotted}*" if names else f"{dotted}.*"
        patterns.append(pattern if _matches(case, pattern, nodes) else case)
    quoted = few([shlex.quote(pattern) for pattern in dict.fromkeys(patterns)])
    return f" It names a test: its cases are matched by {quoted}." if patterns else ""


def _matches(case: str, pattern: str, cases: Collection[str]) -> bool:
    # A case id may contain brackets, which are a character class to fnmatch: an id that exists matches only itself.
    return case == pattern if pattern in cases else matches(case, pattern)


def part_of(plan: Plan, shard: Shard) -> Plan:
    """Return the part of a plan that one shard runs, with its cells in the order of the plan.

    Raises `MatrixError` if there are more shards than cells: a shard that runs nothing must not look like a success.
    """
    if shard.count > len(plan.cells):
        raise MatrixError(
            f"--shard {shard}: the plan has {plural(len(plan.cells), 'cell')}, too few for "
            f"{shard.count} shards. Choose a "
            "smaller N."
        )
    return replace(plan, cells=split(plan.cells, shard.count)[shard.index - 1])


def split(cells: Sequence[Cell], count: int) -> list[tuple[Cell, ...]]:
    """Split cells into `count` parts, none of them empty, in the same way on every machine.

    The cells of a reader on a platform are a group. If there are at least `count` groups, they stay whole, so that each
    environment is built for one part only. If there are fewer, they are cut, and each part has cells of one group.
    """
    # Numbers and not cells: each part is put back into the order of the plan.
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, cell in enumerate(cells):
        groups.setdefault((cell.reader.name, cell.reader.jax, cell.platform), []).append(number)
    whole = list(groups.values())
    parts = _packed(whole, count) if len(whole) >= count else _cut(whole, count)
    return [tuple(cells[number] for number in sorted(part)) for part in parts]


def _packed(groups: Sequence[list[int]], count: int) -> list[list[int]]:
    """Return `count` parts made of whole groups; each group, the largest first, goes into the smallest part so far."""
    parts: list[list[int]] = [[] for _ in range(count)]
    # With its number, so that equal parts are taken in the same order on every machine.
    smallest = [(0, number) for number in range(count)]
    for group in sorted(groups, key=lambda group: (-len(group), group[0])):
        size, number = heapq.heappop(smallest)
        parts[number] += group
        heapq.heappush(smallest, (size + len(group), number))
    return parts


def _cut(groups: Sequence[list[int]], count: int) -> list[list[int]]:
    """Return `count` pieces of the groups, as equal in size as possible; each piece is a part of one group."""
    pieces = [1] * len(groups)
    largest = [(-float(len(group)), number) for number, group in enumerate(groups)]
    heapq.heapify(largest)
    for _ in range(count - len(groups)):
        _, number = heapq.heappop(largest)
        pieces[number] += 1
        heapq.heappush(largest, (-len(groups[number]) / pieces[number], number))
    return [
        group[len(group) * piece // total : len(group) * (piece + 1) // total]
        for group, total in zip(groups, pieces, strict=True)
        for piece in range(total)
    ]


def make_dump_folder(path: Path) -> Path:
    """Make the folder of --dump-ir, in which all cells write their modules, and return its absolute path.

    Raises `GoldenError` if it has goldens, and `MatrixError` if it cannot be made, or has symbolic links, which JAX
    would follow when it writes there.
    """
    check_output_folder(path, "--dump-ir")
    there = (Path(folder, name) for folder, folders, files in os.walk(path) for name in (*folders, *files))
    if linked := next(filter(Path.is_symlink, chain([path], there)), None):
        raise MatrixError(f"--dump-ir {path}: expected no symbolic link in it, found {linked}. Name a new folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MatrixError(f"--dump-ir: cannot make the folder {path}: {error.strerror}.") from None
    return path.resolve()

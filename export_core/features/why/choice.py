"""The one cell that a person asks about: named in words, by options, or found among the results of a run."""

import contextlib
import datetime
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from export_core.base.errors import ExportCompatError
from export_core.base.text import few
from export_core.goldens import Golden, GoldenStore, hint_at_cases, no_goldens
from export_core.goldens.verify import check_claims, check_dates
from export_core.judge import Judgement, Result, judge_again
from export_core.judge.causes import Cause
from export_core.matrix import Cell, Plan
from export_core.matrix.comparisons import under_policy
from export_core.matrix.plan import make_plan
from export_core.matrix.replay_options import ReplayOptions, opened
from export_core.matrix.reproduce_command import reproduce_command, with_settings
from export_core.matrix.result import existed_on, grouped
from export_core.matrix.selection import reader_named
from export_core.matrix.verdicts import is_expected
from export_core.policy import Policy, find_policy
from export_core.policy.entries import matches
from export_core.policy.run_options import (
    RESULTS,
    CellLimits,
    RunOptions,
    Selection,
    option_words,
    reproduce_options,
)
from export_core.readers.cell import CellKey
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.hardware import resolve_mode
from export_core.readers.placement import Placement
from export_core.releases import Release, ReleaseError, parse_day
from export_core.report.view import view
from export_core.report.wording import asked_in, named_folder
from export_core.run.plan_record import hash_of
from export_core.run.results import SUMMARY, read_run, run_above, unfinished_run
from export_core.run.run import Run, judge_run


class WhyError(ExportCompatError):
    """An error of `explain`, `bisect` or `reduce`: no cell or several cells were named, or the cell cannot be used."""


_WORDS = re.compile(r"(?P<golden>.+) in (?:jaxlib )?(?P<reader>\S+)(?: on (?P<platform>\S+))?")
"""A cell as messages and plans name it: ``CASE/WRITER in 0.10.2-jax0.10.2 on cpu``."""
_SHOWN = 10  # How many cells a message lists.
_DAY = re.compile(r" --as-of (\d{4}-\d\d-\d\d)\b")  # In a command that reproduces a cell.


@dataclass(frozen=True)
class Asked:
    """The command-line options by which a person names one cell; each option that is not empty narrows the choice."""

    cell: str = ""
    """``GOLDEN in READER on PLATFORM``, a golden, a case, or the id of a cause."""
    case: str = ""  # The case, or a glob.
    writer: str = ""  # The jaxlib that wrote the golden, or the name of its folder, such as 0.9.2-cpu.
    reader: str = ""  # A jaxlib, one with its jax (0.11.2-jax0.12.0.1), or the path of its wheel.
    platform: str = ""  # A platform, also with a mode: cuda:run.
    results: Path | None = None  # The folder of a finished run; None for the usual folder, if it has a run.
    selection: Selection = field(default_factory=Selection)
    """Where unpublished releases come from, and which devices are compiled for; its other fields are not used."""
    run: RunOptions = field(default_factory=RunOptions)  # The goldens, the policy, the day, and how the cell is run.
    first_cause: bool = False  # Whether the first cause is meant if cells fail by several; else that is an error.


def spelled_out(asked: Asked, run: Run | None) -> Asked:
    """Return the options with CELL split into separate options for golden, reader and platform.

    CELL is split if it names a whole cell, or is the id of a cause, which stands for the example of this cause.

    Raises `WhyError` if another option contradicts CELL.
    """
    causes = run.summary.causes if run else ()
    if key := next((cause.example for cause in causes if cause.id == asked.cell), None):
        golden, words = key.golden, {"reader": key.pair, "platform": key.platform}
    elif match := _WORDS.fullmatch(asked.cell):
        golden, words = match["golden"], {"reader": match["reader"], "platform": match["platform"] or ""}
    else:
        return asked
    for name, word in words.items():
        option = getattr(asked, name)
        if word and option and word != option:
            raise WhyError(
                f"--{name}: expected {word}, as in the name of the cell, found {option}. Leave out one of the two."
            )
    reader, platform = asked.reader or words["reader"], asked.platform or words["platform"]
    return replace(asked, cell=golden, reader=reader, platform=platform)


@dataclass(frozen=True)
class Choice:
    """The cell that a person's options mean, how it is replayed, and what a stored run says about it."""

    cell: Cell
    plan: Plan  # A plan of this cell alone; its calendar also has the releases of given wheels and indexes.
    options: ReplayOptions
    stored: tuple[Result, ...] = ()
    """The golden's results in all readers on this platform; empty if the run had another golden of this name."""
    run: RunOptions = field(default_factory=RunOptions)
    """The options with which another command finds the same golden and releases."""
    alike: Mapping[str, int] = field(default_factory=dict)
    """The number of the run's cells with the same cause, by judgement, the worst first; empty without a run."""
    others: tuple[str, ...] = ()  # An `explain` command for the example of each other cause.
    having_others: str = ""  # The phrase before the number of `others`, such as "The run has".
    outside: tuple[str, ...] = ()
    """An `explain` command for each cause that only cells outside the window have, if other cells break the run."""
    goldens: tuple[str, ...] = ()
    """An `explain` command for each failing golden of the same case that no other command names."""
    results: Path | None = None  # The folder of results that was named.
    not_counted: str = ""  # Why the result that the run has of the cell does not count, as a phrase; empty if it does.

    @property
    def named_results(self) -> dict[str, str]:
        """The option --results, with its value, for another command about this cell; empty for the usual folder."""
        return {"--results": str(self.results)} if named_folder(self.results) else {}

    @property
    def asked(self) -> dict[str, str]:
        """The options with which another command uses the same goldens, policy, day and results."""
        return asked_in(option_words(self.run)) | self.named_results

    def command(self, name: str, *words: str) -> str:
        """Return the shell command `jaxexport NAME` for this cell, with further words at its end."""
        options = option_words(self.plan.selection, self.run)
        options += chain.from_iterable(self.named_results.items())
        command = shlex.join(["jaxexport", name, str(self.cell.key), *options, *words])
        return with_settings(command, self.options.policy.environment)

    @property
    def reproduce(self) -> str:
        """The command that runs the cell again, with the goldens of this machine."""
        plan, reader = self.plan, self.cell.reader
        if plan.spelled.get(reader) == reader.pair:
            with contextlib.suppress(ReleaseError):  # of a jaxlib that no jax goes with by itself
                # As reports and people name it, where that means the same.
                plan = replace(plan, spelled={}) if self.release(reader.name) == reader else plan
        options = reproduce_options(plan.selection, self.run)
        return reproduce_command(plan, self.cell, options, self.options.policy.environment)

    @property
    def result(self) -> Result | None:
        """The stored result of the cell; None if the run does not have the cell."""
        return next((result for result in self.stored if result.key == self.cell.key), None)

    @property
    def newest(self) -> Placement:
        """The newest jaxlib, on a CPU: it can read and rewrite the modules of all releases."""
        calendar = self.plan.calendar
        return Placement(calendar.release(calendar.newest()))

    def environments(self, notify: Callable[[str], None]) -> ReaderEnvironments:
        """Return the environments of all releases; `notify` gets a line about what is built."""
        options = self.options
        return ReaderEnvironments.of(options.policy, self.plan.calendar, options.sources, notify=notify)

    def release(self, name: str) -> Release:
        """Return the release with this name: a jaxlib, a jaxlib with its jax, or a release of another runtime.

        Raises `ReleaseError` if there is no such release.
        """
        return reader_named(name, self.plan.calendar)

    def cell_in(self, reader: Release) -> Cell:
        """Return the cell of the same golden and platform in another release."""
        return replace(self.cell, reader=reader, promised=False, deployed=())


class _Candidate(NamedTuple):
    """A cell that a person's options may mean.

    `reader` is the reader's name as `--readers` accepts it. `result` is the stored result of the cell, if there is one.
    """

    golden: Golden
    reader: str
    platform: str
    result: Result | None = None

    @property
    def cause(self) -> str:
        """The id of the cell's cause; empty if the run has none."""
        return self.result.cause if self.result else ""

    @property
    def key(self) -> CellKey | None:
        """The key of the cell in the run; None if the run does not have the cell."""
        return self.result.key if self.result else None

    def __str__(self) -> str:
        verdict = f": {self.result.verdict}" if self.result else ""
        return f"{self.golden.id} in {self.reader} on {self.platform}{verdict}"


def choose(asked: Asked) -> Choice:
    """Return the cell that the options mean; if they fit several cells, the one that fails in the stored results.

    The stored results may be from another machine.

    Raises:
        WhyError: The options fit no cell or several cells, which the message lists.
        RunError: The folder of results that was named has no finished run.
        ExportCompatError: The policy, a golden, the reader or the platform cannot be used.
    """
    # The usual folder need not have a run.
    recorded = read_run(asked.results or RESULTS) if asked.results or (RESULTS / SUMMARY).exists() else None
    policy = find_policy(Path(), asked.run.policy_file)
    run = _judged_as_asked(recorded, asked, policy) if recorded else None
    asked = spelled_out(asked, run)
    calendar = policy.calendar()
    store = asked.run.goldens or Path(policy.goldens)
    stored = GoldenStore(store).goldens_so_far()
    if not stored:
        raise WhyError(no_goldens(store, "Name their folder with --goldens."))
    check_dates(stored, calendar, all_known=False)
    goldens = under_policy(_goldens_named(asked, stored, store), policy)
    meant = _only_one(_candidates(asked, goldens, run), asked, run)
    candidate = meant.one
    others, outside, same_case = (
        tuple(_explaining(other, asked, policy) for other in group)
        for group in (meant.others, meant.outside, meant.goldens)
    )
    candidate.golden.verify()
    check_claims([candidate.golden], calendar, all_known=False)
    # As of the day of a stored result, if its run was asked for one and the options name none.
    if candidate.result and not asked.run.as_of and (match := _DAY.search(candidate.result.reproduce)):
        asked = replace(asked, run=replace(asked.run, as_of=parse_day(match[1])))
    as_of = asked.run.as_of or datetime.datetime.now(tz=datetime.UTC).date()
    selection = replace(asked.selection, readers=candidate.reader, platforms=(candidate.platform,))
    limits = CellLimits.of(asked.run)
    with opened(None, policy, limits) as user_code:
        windows, targets = policy.window_lengths(), policy.targets_on(as_of)
        plan = make_plan([candidate.golden], calendar, windows, selection, as_of, user_code, targets)
    (planned,) = plan.cells
    cell = replace(planned, mode=resolve_mode(planned.mode, planned.platform))
    results: tuple[Result, ...] = ()
    is_same = run is not None and run.goldens.get(cell.golden.id) == hash_of(cell.golden.manifest)
    # Of the recorded run: judged again, it has the policy that was asked for.
    changed = (recorded.changed_since(policy) if is_same else "another golden of this name") if recorded else ""
    not_counted = changed if candidate.result else ""
    if run and recorded and not changed:
        place = cell.golden.id, cell.platform, cell.mode
        results = tuple(result for result in run.results if (result.golden, result.platform, result.mode) == place)
    options = ReplayOptions(plan.calendar, policy, limits, plan.sources, asked.run.cache)
    alike = _alike(candidate, run) if results else {}
    return Choice(
        cell,
        plan,
        options,
        stored=results,
        run=asked.run,
        alike=alike,
        others=others,
        having_others=meant.having,
        outside=outside,
        goldens=same_case,
        results=asked.results,
        not_counted=not_counted,
    )


def _judged_as_asked(run: Run, asked: Asked, policy: Policy) -> Run:
    """Return a stored run, judged again if the options name a policy or a day other than those of the run.

    Cells whose writer or reader was built after the day are then left out.

    Raises:
        WhyError: The run has cells, and none of them existed on that day.
    """
    day = asked.run.as_of or run.summary.as_of
    is_other_policy = asked.run.policy_file and policy.without_locations() != run.policy.without_locations()
    if not is_other_policy and day == run.summary.as_of:
        return run
    by = policy if asked.run.policy_file else run.policy
    existing = [result for result in run.results if existed_on(result, day)]
    if run.results and not existing:
        raise WhyError(
            f"--as-of {day}: expected a cell whose writer and reader were built on or before this day in "
            f"{run.folder}, found only later ones. Choose a later --as-of."
        )
    results = [judge_again(result, by, day) for result in existing]
    return judge_run(results, by, structs.replace(run.summary, as_of=day), plan=run.plan, folder=run.folder)


def _goldens_named(asked: Asked, stored: Sequence[Golden], store: Path) -> list[Golden]:
    """Return the goldens that fit the options for cell, case and writer.

    Raises `WhyError` if no golden fits.
    """

    def is_meant(golden: Golden) -> bool:
        return (
            (not asked.cell or any(matches(name, asked.cell) for name in golden.names))
            and (not asked.case or matches(golden.manifest.case, asked.case))
            and asked.writer in ("", *golden.manifest.writer.names)
        )

    if goldens := [golden for golden in stored if is_meant(golden)]:
        return goldens
    wanted = " ".join(filter(None, (asked.cell, asked.case and f"--case {asked.case}")))
    cases = dict.fromkeys(golden.manifest.case for golden in stored)
    of_case = [golden for golden in stored if matches(golden.manifest.case, asked.case or asked.cell)]
    if asked.writer and of_case:
        by = few(list(dict.fromkeys(golden.manifest.writer.id for golden in of_case)))
        raise WhyError(f"--writer {asked.writer}: {wanted} has no golden by this writer, only by {by}.")
    raise WhyError(
        f"{wanted or f'--writer {asked.writer}'}: expected a golden in {store}, found none of this name."
        f"{hint_at_cases(asked.case or asked.cell, cases)}"
    )


def _candidates(asked: Asked, goldens: Sequence[Golden], run: Run | None) -> list[_Candidate]:
    """Return the cells of the run that fit the options.

    If the options name a reader, its cells with the `goldens` that the run lacks are added.
    """
    by_id = {golden.id: golden for golden in goldens}
    platform = asked.platform.partition(":")[0]
    candidates = []
    for result in run.results if run else ():
        names = result.reader.name, result.reader.pair
        if result.golden in by_id and platform in ("", result.platform) and (asked.reader in ("", *names)):
            # In the mode in which it was run, unless another one was asked for.
            as_run = result.platform if result.platform == "cpu" else f"{result.platform}:{result.mode}"
            place = asked.platform if ":" in asked.platform else as_run
            candidates.append(_Candidate(by_id[result.golden], names[1], place, result))
    if asked.reader:
        known = {(candidate.golden.id, candidate.platform.partition(":")[0]) for candidate in candidates}
        for golden in goldens:
            platforms = golden.manifest.replayed_on
            place = asked.platform or ("cpu" if "cpu" in platforms else platforms[0])
            if (golden.id, place.partition(":")[0]) not in known:
                candidates.append(_Candidate(golden, asked.reader, place))
    return candidates


def _explaining(candidate: _Candidate, asked: Asked, policy: Policy) -> str:
    """Return the shell command `jaxexport explain` for a cell of the same run."""
    results = ["--results", str(asked.results)] if asked.results else []
    cell = f"{candidate.golden.id} in {candidate.reader} on {candidate.platform}"
    command = shlex.join(["jaxexport", "explain", cell, *option_words(asked.selection, asked.run), *results])
    return with_settings(command, policy.environment)


def _worst_first(run: Run) -> list[Cause]:
    """Return the causes of a run, the worst first, as in a report; causes that the report does not show come last."""
    shown = [finding.cause for finding in view(run).findings if finding.cause]
    return [*shown, *(cause for cause in run.summary.causes if cause not in shown)]


def _alike(candidate: _Candidate, run: Run | None) -> dict[str, int]:
    """Return the number of the run's cells that have the same cause as this cell, by judgement, the worst first."""
    counts = Counter(one.judgement for one in run.results if one.cause == candidate.cause) if run else Counter()
    return {str(judgement): counts[judgement] for judgement in Judgement if candidate.cause and counts[judgement]}


class _Meant(NamedTuple):
    """The cell that is meant, and other failing cells to explain: an example of each other cause, the worst first."""

    one: _Candidate
    others: Sequence[_Candidate] = ()
    having: str = ""  # The phrase before the number of `others`, such as "The run has".
    outside: Sequence[_Candidate] = ()  # Of causes only of cells outside the window, while other cells break the run.
    goldens: Sequence[_Candidate] = ()  # Of goldens of one case, each of which has none of the other examples.


def _examples(failing: Sequence[_Candidate], run: Run | None) -> list[_Candidate]:
    """Return the example of each cause of these cells, the worst cause first."""
    by_cause = grouped(failing, lambda candidate: candidate.cause)
    causes = _worst_first(run) if run else []
    # A cause may have several judgements, each with its own example: that of the worst is shown.
    places: dict[CellKey | None, int] = {cause.example: place for place, cause in enumerate(causes)}
    order = dict.fromkeys([*(cause.id for cause in causes), *by_cause])
    alike = [by_cause[name] for name in order if name in by_cause]
    return [min(cells, key=lambda one: places.get(one.key, len(places))) for cells in alike]


def _of_other_goldens(
    failing: Sequence[_Candidate], examples: Sequence[_Candidate], run: Run | None
) -> list[_Candidate]:
    """Return the worst cell of each golden that has none of the `examples`; empty if the cells are of several cases."""
    if len({candidate.golden.manifest.case for candidate in failing}) > 1:
        return []
    named = {candidate.golden.id for candidate in examples}
    by_golden = grouped(failing, lambda candidate: candidate.golden.id)
    return [_examples(cells, run)[0] for golden, cells in by_golden.items() if golden not in named]


def _only_one(candidates: Sequence[_Candidate], asked: Asked, run: Run | None) -> _Meant:
    """Return the candidate that is meant; if several candidates fail by the same cause, the example of that cause.

    Raises `WhyError` if no candidate fits, or if several do without a reason to prefer one.
    """
    failing = [candidate for candidate in candidates if candidate.result and candidate.result.verdict.fails]
    # Who names no reader asks about what fails; who names one may ask about any cell.
    meant = failing if failing or not asked.reader else candidates
    having = "The cells that are named have"
    outside: list[_Candidate] = []
    if not any((asked.cell, asked.case, asked.writer, asked.reader, asked.platform)):
        # Who names nothing asks why the run fails: what fails as expected, outside the window, is not meant.
        urgent = [one for one in meant if one.result and one.result.judgement.is_urgent]
        having = "The run also fails by" if urgent else "The run has"
        unexpected = [one for one in meant if one.result and not is_expected(one.result.judgement, one.result.verdict)]
        if urgent:
            breaking = {one.cause for one in urgent}
            others = [one for one in unexpected if one.cause not in breaking]
            outside = [one for one in others if one.result and one.result.judgement is Judgement.OUTSIDE]
        meant = urgent or unexpected or meant
    if meant:
        by_cause = grouped(meant, lambda candidate: candidate.cause)
        if len(meant) == 1 or ("" not in by_cause and (len(by_cause) == 1 or asked.first_cause)):
            first, *others = _examples(meant, run)
            return _Meant(
                first, others, having, _examples(outside, run), _of_other_goldens(meant, [first, *others], run)
            )
        more = f"; and {len(meant) - _SHOWN} more" if len(meant) > _SHOWN else ""
        raise WhyError(
            f"Expected one cell, found {len(meant):,}: {'; '.join(map(str, meant[:_SHOWN]))}{more}. Name one, in "
            "quotes, or narrow them by --case, --writer, --reader and --platform."
        )
    if candidates:
        raise WhyError(
            f"None of these cells fails in the results ({len(candidates)} work or were not run). To ask about a "
            "reader that the run lacks, name it with --reader."
        )
    if not run:
        if found := unfinished_run(RESULTS):
            raise WhyError(
                f"Expected a finished run in {RESULTS}, found {found} Name a finished run with --results, or a cell "
                "with its reader."
            )
        advice = "Run `jaxexport matrix` first, name other results with --results, or a cell with its reader."
        raise WhyError(
            f"Expected a run in {RESULTS.absolute()}, found none that has finished. {run_above(RESULTS) or advice}"
        )
    raise WhyError("Expected a reader, found none: the results have no such cell. Name one with --reader.")

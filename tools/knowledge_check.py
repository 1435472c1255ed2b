"""A check that entries of the knowledge base are still true: ``python -m tools.knowledge_check [ID…]``.

An entry names a golden that shows its issue, and a neighbour, a similar golden that does not. The golden runs in the
first and the last release of the entry's range that load it, and in the releases just outside the range; the neighbour
runs in the same releases. The entry is true if its golden shows the issue inside the range, and no other cell shows it.
`nox -s knowledge` checks all entries.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from export_core.artifact.readers import loads
from export_core.goldens import Golden
from export_core.judge import Result
from export_core.knowledge.forecasting import X64
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.policy.known_issues import KnownIssue, days_of, shipped_issues
from export_core.policy.load_check import find_reader
from export_core.policy.run_options import RunOptions, Selection
from export_core.policy.terms import Terms
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import calendar_entries
from export_core.releases.runtimes import JAXLIB, runtime_of
from export_core.run.session import run_matrix
from tools.knowledge import fixtures


class Trial(NamedTuple):
    """A golden, the readers in which it must show the issue of an entry, and the readers in which it must not."""

    golden: Golden
    shown_in: tuple[str, ...]
    not_in: tuple[str, ...]


WITHOUT_X64 = "[JAX_ENABLE_X64=false]"
"""The setting of a reader that keeps 64-bit numbers off. Otherwise a cell turns them on where its golden had them."""


RUNS_SINCE = {"pjrt": "0.5.1", "stablehlo": "0.5.0"}
"""The oldest jaxlib whose client or interpreter a cell can call: the workers of export_core/runtimes say why."""


def releases_of(consumer: str, settings: str = "") -> dict[str, str]:
    """Return the build dates of a consumer's releases that a cell can call, oldest first.

    The keys are the releases' names as readers, such as 0.12.0 or iree==3.13.0. `settings`, such as `WITHOUT_X64`, are
    appended to the name of each release of jaxlib.
    """
    calendar = load_calendar()
    if consumer == JAXLIB:
        return {version + settings: str(calendar.built(version)) for version in calendar.versions()}
    known = {version: str(one.built) for version, one in runtime_of(consumer).known(calendar).items()}
    oldest = known.get(RUNS_SINCE.get(consumer, ""), "")
    return {f"{consumer}=={version}": built for version, built in known.items() if built >= oldest}


def trials(issue: KnownIssue, goldens: Mapping[str, Golden]) -> Iterator[Trial]:
    """Yield what is to be run for an entry: a trial of its golden, which shows the issue, and one of its neighbour.

    The neighbour is a similar golden that must not show the issue. Nothing is yielded for an entry without a golden, or
    about a platform other than the CPU. Nor for an entry about overwritten arguments, which no cell shows, since each
    call of a cell has arrays of its own.

    Args:
        issue: the entry.
        goldens: the goldens that entries can name, by id. A golden that is missing has no trial.
    """
    if issue.fixture is None or (issue.platforms and "cpu" not in issue.platforms) or issue.outcome == "overwritten":
        return
    since, mended, _ = days_of(issue)
    for name, is_concerned in ((issue.fixture.concerned, True), (issue.fixture.neighbour, False)):
        if (golden := goldens.get(name)) is None:
            continue
        names = releases_of(issue.consumer, WITHOUT_X64 if X64 in issue.unless else "")
        terms = Terms(calendar_entries(load_calendar()))
        readers = [find_reader(name, terms, load_calendar()) for name in names]
        # Of the bytes alone, since an entry may say that a release fails to parse what it should.
        known = [*zip(names.items(), loads(golden.read_artifact(), readers), strict=True)]
        loading = {name: built for (name, built), load in known if load.ok}
        refusing = {name: built for (name, built), load in known if load.ok is False}
        # What a reader does not deserialize, or has too old a StableHLO for, the bytes exclude too.
        is_in_bytes = issue.stage in (Stage.DESERIALIZE, Stage.MODULE) and issue.concerns is None
        shown = refusing if is_concerned and is_in_bytes else loading
        inside = [name for name, built in shown.items() if built >= since and (not mended or built < mended)]
        before = [name for name, built in loading.items() if built < since][-1:]
        after = [name for name, built in loading.items() if mended and built >= mended][:1]
        ends = tuple(dict.fromkeys([*inside[:1], *inside[-1:]]))
        outside = (*before, *after)
        yield Trial(golden, ends, outside) if is_concerned else Trial(golden, (), (*ends, *outside))


def run_trial(trial: Trial) -> Sequence[Result]:
    """Run the cells of a trial in cold processes, and return their results."""
    readers = ",".join((*trial.shown_in, *trial.not_in))
    options = RunOptions(results=None, cache=False)
    return run_matrix(Policy(), Selection(readers=readers), options, goldens=[trial.golden]).results if readers else ()


def untruths(issue: KnownIssue, trial: Trial, results: Sequence[Result]) -> Iterator[str]:
    """Yield a line for each statement of an entry that the results of one of its trials contradict."""
    by_reader = {result.reader.name: result for result in results}
    missing = [name for name in trial.shown_in if by_reader[name].upstream != issue.id]
    if issue.certainty == "sometimes" and len(missing) < len(trial.shown_in):
        missing = []
    for name in missing:
        result = by_reader[name]
        yield f"{trial.golden.id} was expected to show the issue in {name}, found {result.verdict}, {result.ending}"
    for name in trial.not_in:
        if by_reader[name].upstream == issue.id:
            yield f"{trial.golden.id} shows the issue in {name}: it is outside the range, or the neighbour"
        elif by_reader[name].verdict is Verdict.NOT_RUN:
            yield f"{trial.golden.id} was not run in {name}: {by_reader[name].message}"


def main(ids: Sequence[str]) -> int:
    """Check the entries with these ids, or all entries if there are no ids; return the exit code."""
    goldens, wrong, checked = fixtures(), 0, 0
    for issue in shipped_issues():
        if ids and issue.id not in ids:
            continue
        own = [*trials(issue, goldens)]
        problems = [line for trial in own for line in untruths(issue, trial, run_trial(trial))]
        cells = sum(len(trial.shown_in) + len(trial.not_in) for trial in own)
        checked += bool(own)
        wrong += bool(problems)
        state = "no longer true" if problems else f"true in {cells} cells" if own else "not run here"
        print(f"{issue.consumer} {issue.id}: {state}", flush=True)
        print("".join(f"  {line}\n" for line in problems), end="", flush=True)
    print(f"{checked} entries checked, {wrong} no longer true")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The promised plan of a day, made anew from the results of a run: which promised cells it does not have.

The day, the windows or the calendar of a judgement may be others than those of the run. Results say all that is asked
here: a run is also judged where its goldens are not.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from export_core.matrix.result import Result
from export_core.matrix.selection import DEPLOYED, WORDS, KnownReleases, MatrixError, Readers, choose_readers
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget, names_of
from export_core.policy.run_options import COMPARISONS, Selection, comma_separated
from export_core.readers.cell import promise_of
from export_core.releases import ReleaseError
from export_core.releases.runtimes import names_runtime


def missing_promised(
    results: Iterable[Result], policy: Policy, selection: Mapping[str, Any], as_of: datetime.date
) -> dict[str, int]:
    """Return the number of cells that a run lacks, by reader, although they are promised or owed to a target.

    Args:
        results: All results of the run.
        policy: The policy, whose windows, calendar and deployment targets decide what is promised.
        selection: What the run was asked for, in the form of `Selection.as_recorded`.
        as_of: The day of the judgement.

    Returns:
        The number of missing cells by reader, oldest build first. Readers that lack no cell are left out.
    """
    results = [result for result in results if not result.converted]
    targets = policy.targets_on(as_of) if policy.deployed else ()
    readers = _readers_of_day(results, policy, selection, as_of, targets)
    if readers is None:
        return {}
    # A runtime may leave out what a golden needs: that one of its releases is promised a cell shows that it does not.
    own = {
        (result.reader.family, result.golden, result.platform): result
        for result in results
        if result.promised or not result.reader.runtime
    }
    # Of a jaxlib with two jax, one is enough: the promise is about jaxlib.
    present = {(result.golden, result.platform, result.reader.name) for result in results}
    touching, windows = str(selection.get("touching", "")).partition("-jax")[0], policy.window_lengths()
    missing: dict[str, int] = {}
    for reader in readers.chosen:
        writers = readers.for_writers.get(reader)
        for (family, golden, platform), result in own.items():
            writer = result.writer
            if family != reader.family or (golden, platform, reader.name) in present:
                continue
            if (writers and writer.built not in writers) or (touching and touching not in (reader.name, writer.jaxlib)):
                continue
            promise = promise_of(reader, writer.built, windows, devices=result.devices, converted=result.converted)
            promised = promise.promised and reader not in readers.for_targets
            runs_on = result.runs_on
            if promised or names_of(targets, result.case, reader.name, platform, as_of, runs_on=runs_on):
                missing[reader.name] = missing.get(reader.name, 0) + 1
    return missing


def _readers_of_day(
    results: Sequence[Result],
    policy: Policy,
    selection: Mapping[str, Any],
    as_of: datetime.date,
    targets: Sequence[DeploymentTarget],
) -> Readers | None:
    """Return the readers that words (such as `window`) and ranges in a selection mean on a day; None if there are none.

    Releases that the selection names by version are left out, since they do not depend on the day. None is returned if
    there are no such words or ranges, or no release fits.
    """
    named = comma_separated(str(selection.get("readers", "")))
    words = [text for text in named if text in WORDS or text[0] in COMPARISONS or _names_several(text)]
    calendar = policy.calendar()
    if {*words} <= ({DEPLOYED} if not targets else set()) or not calendar.as_of(as_of).versions():
        return None
    written = {result.writer.built for result in results}
    asked, known = Selection(readers=",".join(words)), KnownReleases(calendar, {}, ())
    try:
        return choose_readers(asked, known, policy.window_lengths(), written, as_of, targets)
    except (MatrixError, ReleaseError):  # of a range: on an earlier day it may have no release
        return None


def _names_several(text: str) -> bool:
    """Return whether a text names a runtime or a range of its releases, so that its meaning depends on the day."""
    return names_runtime(text) and "==" not in text

"""The first runs of adopted goldens, in the environments of their writers: to compute outputs, and to replay them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import msgspec

from export_core.goldens import Golden, Leaf
from export_core.matrix import Limits, MatrixError, Outcome, Selection, Verdict
from export_core.matrix.one_reader import replay_with_outputs
from export_core.matrix.replay_options import ReplayOptions
from export_core.numbers.measuring_noise import not_measured
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions
from export_core.readers.cell import Cell, CellKey
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.worker.protocol import Stage
from export_core.releases import Release, ReleaseError
from export_core.run.first_replay import FirstReplay, first_replay
from export_core.run.session import Observer, run_matrix

Notify = Callable[[str], None]


def by_writer(goldens: Iterable[Golden]) -> dict[Release, list[Golden]]:
    """The goldens of each writer."""
    groups: dict[Release, list[Golden]] = {}
    for golden in goldens:
        groups.setdefault(_writer_release(golden), []).append(golden)
    return groups


def _writer_release(golden: Golden) -> Release:
    writer = golden.manifest.writer
    return Release(writer.jaxlib, writer.jax, writer.built)


def outputs_of(
    goldens: Sequence[Golden], policy: Policy, limits: Limits, notify: Notify
) -> Iterator[tuple[Golden, tuple[Leaf, ...] | str]]:
    """What each golden returns in the environment of its writer, in a cold process; or why that is not known.

    Their manifests need no outputs. None of them is run in this process, or in any other release.
    """
    cells: dict[CellKey, Cell] = {}
    for golden in goldens:
        if problem := not_measured(golden):
            yield golden, problem
        else:
            cell = Cell(golden, _writer_release(golden), "cpu")
            cells[cell.key] = cell
    options = ReplayOptions(policy.calendar(), policy, limits)
    with (
        ReaderEnvironments.of(policy, options.calendar, notify=notify) as environments,
        closing(replay_with_outputs([*map(_not_compared, cells.values())], environments.build, options)) as ran,
    ):
        for one in ran:
            yield cells[one.outcome.cell.key].golden, one.outputs if one.works else _problem(one.outcome)


def _not_compared(cell: Cell) -> Cell:
    """A cell whose outputs are not compared with any."""
    manifest = cell.golden.manifest
    options = msgspec.structs.replace(manifest.options, without_outputs="they are computed now")
    return replace(cell, golden=replace(cell.golden, manifest=msgspec.structs.replace(manifest, options=options)))


def _problem(outcome: Outcome) -> str:
    """Why a writer gave no outputs."""
    if outcome.stage is Stage.AUDIT:
        return outcome.message
    if outcome.verdict is Verdict.NOT_RUN:
        return f"its writer cannot be run here: {outcome.message}"
    return f"its own writer gave no outputs: stage {outcome.stage}: {outcome.message}"


def replays_by_writer(goldens: Sequence[Golden], policy: Policy, notify: Notify) -> dict[str, FirstReplay]:
    """What the writer of each golden makes of it, by the golden's id."""
    # Known failures are left out: their globs are checked against the width of a whole plan.
    own = msgspec.structs.replace(policy, known_failures=())
    options = RunOptions(results=None, cache=False)
    replays: dict[str, FirstReplay] = {}
    for release, group in by_writer(goldens).items():
        selection = Selection(readers=f"{release.jaxlib}-jax{release.jax}")
        try:
            run = run_matrix(own, selection, options, goldens=group, observer=Observer(note=notify))
        except (MatrixError, ReleaseError) as error:
            replays |= {golden.id: FirstReplay(unknown=str(error)) for golden in group}
            continue
        unplanned = FirstReplay(unknown="nothing of it can be run here")
        results: Mapping[str, FirstReplay] = {result.golden: first_replay(result) for result in run.results}
        replays |= {golden.id: results.get(golden.id, unplanned) for golden in group}
    return replays


def in_words(replay: FirstReplay) -> str:
    """A replay after which a golden may be stored, in a sentence."""
    if replay.unknown:
        return f"not replayed: {replay.unknown}"
    if replay.crash:
        return f"its own writer crashes when it replays it: {replay.crash}"
    return "its own writer replays it"

"""The first runs of adopted goldens, in the environments of their writers: to compute outputs, and to replay them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from export_core.base.errors import InfrastructureFault
from export_core.base.phrases import signal_name
from export_core.base.scratch import scratch_folder
from export_core.goldens import Golden, GoldenError, Leaf
from export_core.goldens.arrays import from_npz
from export_core.matrix import Limits, MatrixError, Selection
from export_core.matrix.cell_audit import audit_problem
from export_core.matrix.outcome import machine_fault
from export_core.numbers.measuring_noise import not_measured
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions
from export_core.readers.cell import Cell, request_of
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.readers.worker.client import start_worker
from export_core.readers.worker.protocol import Reply
from export_core.releases import Release, ReleaseError
from export_core.run.first_replay import FirstReplay, first_replay
from export_core.run.session import Observer, run_matrix

Notify = Callable[[str], None]


def by_writer(goldens: Iterable[Golden]) -> dict[Release, list[Golden]]:
    """The goldens of each writer."""
    groups: dict[Release, list[Golden]] = {}
    for golden in goldens:
        writer = golden.manifest.writer
        groups.setdefault(Release(writer.jaxlib, writer.jax, writer.built), []).append(golden)
    return groups


def outputs_of(
    goldens: Sequence[Golden], policy: Policy, limits: Limits, notify: Notify
) -> Iterator[tuple[Golden, tuple[Leaf, ...] | str]]:
    """What each golden returns in the environment of its writer, in a cold process; or why that is not known.

    Their manifests need no outputs. None of them is run in this process, or in any other release.
    """
    runnable: list[Golden] = []
    for golden in goldens:
        # A part that no audit knows is never compiled, here as in a matrix.
        if problem := not_measured(golden) or audit_problem(golden, policy):
            yield golden, problem
        else:
            runnable.append(golden)
    with ReaderEnvironments.of(policy, policy.calendar(), notify=notify) as environments:
        for release, group in by_writer(runnable).items():
            yield from _outputs_in(group, release, environments, limits)


def _outputs_in(
    goldens: Sequence[Golden], release: Release, environments: ReaderEnvironments, limits: Limits
) -> Iterator[tuple[Golden, tuple[Leaf, ...] | str]]:
    try:
        worker = start_worker(environments.build(Placement(release)), limits.jobs, fork=limits.fork)
    except (InfrastructureFault, ReleaseError) as error:
        yield from ((golden, f"its writer cannot be run here: {error}") for golden in goldens)
        return
    with scratch_folder() as scratch:

        def run(number: int, golden: Golden) -> tuple[Leaf, ...] | str:
            (folder := scratch / str(number)).mkdir()
            try:
                reply = worker.submit(request_of(Cell(golden, release, "cpu"), folder, limits)).result()
                return _problem(reply) or from_npz(folder / "0.npz")
            except (InfrastructureFault, GoldenError) as error:
                return str(error)

        try:
            # As many at once as may run: a worker forks for each request that it gets.
            with ThreadPoolExecutor(limits.jobs, thread_name_prefix="outputs") as pool:
                yield from zip(goldens, pool.map(run, itertools.count(), goldens), strict=True)
        finally:
            worker.close()


def _problem(reply: Reply) -> str:
    """Why the writer gave no outputs; empty if it did."""
    if fault := machine_fault(reply):
        return fault
    if reply.end == "ok":
        return ""
    where = f"its own writer gave no outputs: stage {reply.stage}: "
    if reply.end in ("timeout", "memory"):
        return where + {"timeout": "timed out", "memory": "used more memory than a cell may"}[reply.end]
    message = f"{reply.type}: {reply.message}" if reply.type else reply.message
    return where + (message or f"died by {signal_name(reply.signal)}")


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

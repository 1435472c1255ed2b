"""The noise of stored goldens, each measured in the environment of its writer, or of the oldest reader that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from export_core.base.errors import InfrastructureFault
from export_core.base.phrases import plural
from export_core.goldens import Golden, GoldenStore
from export_core.matrix.limits import Limits
from export_core.matrix.noise_runs import MeasuredNoise, OtherKernel, measure_noise, not_measured, with_noise
from export_core.numbers.noise_text import noise_text
from export_core.policy import Policy
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.readers.worker.client import start_worker
from export_core.releases import Calendar, Release, ReleaseError

Measured = tuple[Golden, "MeasuredNoise | str"]


def measure_goldens(
    goldens: Sequence[Golden], policy: Policy, limits: Limits, notify: Callable[[str], None]
) -> Iterator[Measured]:
    """Each golden with its noise, or with the reason why there is none, those of one writer after the other.

    Those that no environment can measure come first.
    """
    calendar = policy.calendar()
    by_writer: dict[Release, list[Golden]] = {}
    for golden in goldens:
        if reason := not_measured(golden):
            yield golden, reason
            continue
        writer = golden.manifest.writer
        by_writer.setdefault(Release(writer.jaxlib, writer.jax, writer.built), []).append(golden)
    with ReaderEnvironments.of(policy, calendar, notify=notify) as environments:
        for writer_release, group in by_writer.items():
            releases = [writer_release, *_later(writer_release, calendar)]
            yield from _of_writer(group, releases, environments, limits, notify)


def _of_writer(
    goldens: Sequence[Golden],
    releases: Sequence[Release],
    environments: ReaderEnvironments,
    limits: Limits,
    notify: Callable[[str], None],
) -> Iterator[Measured]:
    """The noise of one writer's goldens: in the first of these releases, or in the first later one that runs them.

    Each as soon as it is known: an interruption loses none that was.
    """
    left = list(goldens)
    reasons: dict[str, str] = {}
    for release in releases:
        failed: dict[str, str] = {}
        try:
            for golden, noise in _in_release(left, environments.build(Placement(release)), limits, notify):
                if isinstance(noise, str):
                    failed[golden.id] = noise
                    continue
                left = [other for other in left if other.id != golden.id]
                yield golden, noise
        except (InfrastructureFault, ReleaseError) as error:
            reasons = reasons or {golden.id: str(error) for golden in left}
            continue
        reasons = failed if release == releases[0] else reasons
        # What its own writer cannot run is no question of releases.
        if not left or release == releases[0]:
            break
    yield from ((golden, reasons[golden.id]) for golden in left)


def _in_release(
    goldens: Sequence[Golden], environment: Environment, limits: Limits, notify: Callable[[str], None]
) -> Iterator[Measured]:
    """Each of these goldens with its noise in an environment. Raises `WorkerDied` when its worker does not start."""
    worker, other = start_worker(environment, limits.jobs, fork=limits.fork), OtherKernel()
    pool = ThreadPoolExecutor(limits.jobs, thread_name_prefix="noise")

    def measure(numbered: tuple[int, Golden]) -> MeasuredNoise | str:
        number, golden = numbered
        notify(f"measuring the noise of {golden.id} ({number} of {len(goldens)} by this writer)")
        return measure_noise(golden, environment, worker, limits, other)

    try:
        yield from zip(goldens, pool.map(measure, enumerate(goldens, 1)), strict=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        other.close()
        worker.close()


def _later(writer: Release, calendar: Calendar) -> list[Release]:
    """The releases built after a writer, oldest first."""
    versions = [version for version in calendar.versions() if calendar.built(version) > writer.built]
    return [calendar.release(version) for version in versions]


def add_noise(
    store: GoldenStore, goldens: Sequence[Golden], policy: Policy, notify: Callable[[str], None]
) -> Iterator[str]:
    """Measure the noise of stored goldens and store it with them. Yields what is said of each."""
    known = 0
    for golden, measured in measure_goldens(goldens, policy, Limits(), notify):
        if isinstance(measured, str):
            yield f"{golden.id}  no noise: {measured}"
            continue
        known += 1
        store.write(*with_noise(golden.manifest, golden.files(), measured))
        yield f"{golden.id}  {noise_text(measured.record)}"
    yield f"noise of {known} of {plural(len(goldens), 'golden')} measured"

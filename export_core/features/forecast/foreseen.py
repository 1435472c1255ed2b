"""What readers that are not jaxlib are foreseen to make of the goldens, by the bytes of these: nothing is run."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from export_core.artifact.audit import calls_of_jax
from export_core.artifact.readers import loads
from export_core.goldens import Golden
from export_core.policy.entries import DeploymentTarget
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases import Calendar
from export_core.releases.entries import calendar_entries
from export_core.releases.runtimes import runtime_of


class RuntimeReader(msgspec.Struct, frozen=True):
    """A reader in use that is not jaxlib, and what it is foreseen to make of the goldens that it has to run."""

    reader: str  # Its name, such as `tensorflow==2.21.0`.
    targets: tuple[str, ...]  # The deployment targets of the policy in which it runs.
    promised: tuple[datetime.date, datetime.date] | None
    """It promises to read what jaxlibs export that were built from the first of these days to the last; null where it
    promises nothing."""
    goldens: int  # How many goldens: those of their cases and platforms, or all on the CPU where it is in no target.
    unread: dict[str, list[str]]  # The goldens that it does not read, or may not, by the first reason.
    not_run: list[str]
    """The goldens that it does not run, though it may read them: only jax registers their custom calls, or they are for
    several devices."""


def foreseen_readers(
    names: Iterable[str], goldens: Sequence[Golden], targets: Sequence[DeploymentTarget], calendar: Calendar
) -> Iterator[RuntimeReader]:
    """Foresee what each of these releases makes of the goldens. Raises `ReleaseError` for one that is not known yet."""
    terms = Terms(calendar_entries(calendar))
    for name in names:
        built = runtime_of(name).release(name.partition("==")[2], calendar).built
        reader, own = find_reader(name, terms, calendar), [target for target in targets if target.release == name]
        artifacts = {golden.id: golden.read_artifact() for golden in goldens if _has_to_run(golden, own)}
        unread: dict[str, list[str]] = {}
        for golden, artifact in artifacts.items():
            (load,) = loads(artifact, [reader])
            if not load.ok:
                unread.setdefault(load.reasons[0], []).append(golden)
        not_run = [golden for golden, artifact in artifacts.items() if calls_of_jax(artifact) or artifact.devices > 1]
        targets_here = tuple(target.name for target in own)
        yield RuntimeReader(name, targets_here, _promised(name, built), len(artifacts), unread, not_run)


def _promised(name: str, built: datetime.date) -> tuple[datetime.date, datetime.date] | None:
    if (own := runtime_of(name).promise) is None:
        return None
    return built - datetime.timedelta(own.backward_days), built + datetime.timedelta(own.forward_days)


def _has_to_run(golden: Golden, targets: Sequence[DeploymentTarget]) -> bool:
    platforms, case = golden.manifest.options.platforms, golden.manifest.case
    if not targets:
        return "cpu" in platforms
    return any(target.platform in platforms and target.has_case(case) for target in targets)

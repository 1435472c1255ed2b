"""The measurement of a golden's noise: its calls once more, on moved inputs and compiled in other ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from export_core.artifact.float_types import narrowest_float
from export_core.comparing.noise import count_changed, moved_by_an_ulp, spread, stray
from export_core.comparing.stored_noise import proves_nothing, undecided_counts
from export_core.environments.environment import Environment
from export_core.environments.hardware import instruction_set
from export_core.goldens import Golden, GoldenError, GoldenStore, Leaf, Manifest
from export_core.goldens.arrays import from_npz, to_npz
from export_core.goldens.manifest import as_stored
from export_core.goldens.noise import Noise, noise_from_npz, noise_to_npz
from export_core.goldens.noise_record import NoiseRecord
from export_core.goldens.store import NOISE, sha256
from export_core.matrix.cell import Cell
from export_core.matrix.checks import checks_of, request_of
from export_core.matrix.limits import Limits
from export_core.phrases import signal_name
from export_core.scratch import scratch_folder
from export_core.tolerances import FLOATS
from export_core.worker.protocol import CheckRequest, Reply, Request, VariantRequest, Worker

MOVED = 6
"""Runs with moved inputs."""

LONGEST_REASON = 200
"""Characters of why a variant failed, in golden.yaml."""

COMPILED: dict[str, dict[str, str | int | bool]] = {
    "unoptimized": {"xla_backend_optimization_level": 0},
    "fast_math": {"xla_cpu_enable_fast_math": True},
    "one_thread": {"xla_cpu_multi_thread_eigen": False},
    "short_vectors": {"xla_cpu_prefer_vector_width": 128},
    "sse4_2": {"xla_cpu_max_isa": "SSE4_2"},
    "no_fusion": {"xla_disable_hlo_passes": "fusion,algsimp"},
}
"""Options of XLA's compiler under which it rounds in other orders. A release that lacks one says so by an error."""


@dataclass(frozen=True)
class MeasuredNoise:
    """What was measured of a golden: the record for its manifest, and noise.npz.

    `proves_nothing` says that the noise of every output is so large that no wrong number would be seen.
    """

    record: NoiseRecord
    data: bytes
    proves_nothing: bool


def with_noise(
    manifest: Manifest, files: Mapping[str, bytes], measured: MeasuredNoise
) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest and the files of a golden, with its noise."""
    hashes = {**manifest.files, NOISE: sha256(measured.data)}
    return msgspec.structs.replace(manifest, noise=measured.record, files=hashes), {**files, NOISE: measured.data}


def known_noise(store: GoldenStore, manifest: Manifest) -> MeasuredNoise | None:
    """The noise that is stored of a golden that is about to be written: of one that is the same in everything else.

    See `as_stored`. None where there is none, or it was measured by another release or on another processor.
    """
    generations = store.generations(manifest.case)
    golden = next((golden for golden in generations if golden.manifest.writer.id == manifest.writer.id), None)
    if golden is None or (record := golden.manifest.noise) is None:
        return None
    files = {name: hashed for name, hashed in golden.manifest.files.items() if name != NOISE}
    plain = msgspec.structs.replace(golden.manifest, noise=None, files=files)
    by = (record.jaxlib, record.instruction_set)
    if plain != as_stored(manifest, golden.manifest) or by != (manifest.writer.jaxlib, manifest.instruction_set):
        return None
    try:
        golden.verify()
    except GoldenError:  # it is damaged, and written again
        return None
    return MeasuredNoise(record, golden.content(NOISE), proves_nothing(golden, record.undecided))


def not_measured(golden: Golden) -> str:
    """Why no environment can measure the noise of this golden; empty where one may."""
    manifest = golden.manifest
    if manifest.options.without_outputs:
        return "it has no outputs"
    runs = "cpu" in manifest.replayed_on and "cpu" not in manifest.options.refused_on
    return "" if runs else "it was exported for other platforms than cpu"


def lacks_noise(golden: Golden) -> bool:
    """Whether a golden has no noise, and `jaxexport goldens noise` could measure it."""
    return golden.manifest.noise is None and not not_measured(golden)


def measure_noise(golden: Golden, environment: Environment, worker: Worker, limits: Limits) -> MeasuredNoise | str:
    """Run the calls of a golden in each variant, in cold processes of a worker in this environment.

    A variant that raises or ends its process is left out, and recorded with what it said.

    Returns:
        The noise, or why there is none: the call itself fails, or does not run on cpu.

    Raises:
        WorkerDied: the worker was lost.
    """
    if reason := not_measured(golden):
        return reason
    with scratch_folder() as scratch:
        cell = Cell(golden, environment.release, "cpu")
        request = _with_variants(request_of(cell, scratch, limits), scratch)
        calls: dict[str, list[CheckRequest]] = {}
        for check, asked in zip(checks_of(cell), request.checks, strict=True):
            if check.outputs is not None:
                calls.setdefault(check.outputs, []).append(asked)
        names = [variant.name for check in request.checks for variant in check.variants]
        failed: dict[str, str] = {}
        while (reply := worker.submit(_without(request, failed)).result()).end != "ok":
            # Whatever ran may have said anything: only what was asked for counts.
            if reply.variant not in names or reply.variant in failed:
                return _ending(reply)
            # It took its process along, so the others run again without it: after a timeout, those before it.
            lost = names[names.index(reply.variant) :] if reply.end == "timeout" else [reply.variant]
            failed |= {**reply.failed, **dict.fromkeys(lost, _ending(reply))}
        failed = {name: text for name, text in {**failed, **reply.failed}.items() if name in names}
        return _measured(golden, environment.release.jaxlib, calls, failed)


def _with_variants(request: Request, scratch: Path) -> Request:
    checks = (
        check
        if check.outputs is None
        else msgspec.structs.replace(check, variants=tuple(_variants(check, scratch / f"variants {number}")))
        for number, check in enumerate(request.checks)
    )
    # Warm: this asks how exact the numbers are, and not whether a cold process survives.
    return msgspec.structs.replace(request, checks=tuple(checks), warm=True)


def _variants(check: CheckRequest, folder: Path) -> Iterator[VariantRequest]:
    """The variants of a call, each with a name of its own: ``moved 0``, ``vjp1/fast_math``."""
    folder.mkdir(parents=True)
    prefix = f"{check.name}/" if check.name else ""
    inputs = from_npz(Path(check.inputs))
    for seed in range(MOVED if any(leaf.dtype in FLOATS for leaf in inputs) else 0):
        generators = (np.random.default_rng([seed, number]) for number in range(len(inputs)))
        path = folder / f"inputs {seed}.npz"
        path.write_bytes(to_npz(map(moved_by_an_ulp, inputs, generators)))
        yield VariantRequest(f"{prefix}moved {seed}", str(path), str(folder / f"moved {seed}.npz"))
    for name, options in COMPILED.items():
        yield VariantRequest(f"{prefix}{name}", check.inputs, str(folder / f"{name}.npz"), options)


def _without(request: Request, failed: Mapping[str, str]) -> Request:
    """The request without the variants that failed."""
    checks = (
        msgspec.structs.replace(
            check, variants=tuple(variant for variant in check.variants if variant.name not in failed)
        )
        for check in request.checks
    )
    return msgspec.structs.replace(request, checks=tuple(checks))


def _ending(reply: Reply) -> str:
    """How a process ended that did not say "ok", in a line."""
    if reply.end in ("timeout", "memory"):
        return {"timeout": "timed out", "memory": "used more memory than a cell may"}[reply.end]
    text = f"{reply.type}: {reply.message}" if reply.type else reply.message
    return _line(text or f"died by {signal_name(reply.signal)}")


def _line(text: str) -> str:
    return text.strip().partition("\n")[0][:LONGEST_REASON]


def _measured(
    golden: Golden, jaxlib: str, calls: Mapping[str, Sequence[CheckRequest]], failed: dict[str, str]
) -> MeasuredNoise:
    """The noise of each file of outputs, from what its calls and their variants wrote."""
    noises: list[tuple[Sequence[Leaf], Noise]] = []
    unstable: dict[str, int] = {}
    for checks in calls.values():
        # Calls that must have the same outputs have their noise together.
        runs = [outputs for check in checks for outputs in _runs_of(check, failed)]
        plain = from_npz(Path(checks[0].outputs or ""))
        noise = spread(plain, runs)
        noises.append((plain, noise))
        for number, (leaf, own) in enumerate(zip(plain, noise, strict=True)):
            if own is None and (count := max((count_changed(leaf, outputs[number]) for outputs in runs), default=0)):
                unstable[f"{checks[0].name}/{number}".removeprefix("/")] = count
    data = noise_to_npz(noises)
    stored = noise_from_npz(data, NOISE, [plain for plain, _ in noises])
    undecided = undecided_counts(golden, dict(zip(calls, stored, strict=True)))
    record = NoiseRecord(
        jaxlib=jaxlib,
        instruction_set=instruction_set(),
        moved=MOVED - len({_variant(name) for name in failed} - COMPILED.keys()),
        compiled=tuple(name for name in COMPILED if name not in map(_variant, failed)),
        failed={name: _line(text) for name, text in sorted(failed.items())},
        narrowest_float=narrowest_float(golden.read_artifact()),
        undecided={name: counts for name, counts in undecided.items() if counts[0]},
        unstable=unstable,
    )
    return MeasuredNoise(record, data, proves_nothing(golden, undecided))


def _runs_of(check: CheckRequest, failed: dict[str, str]) -> list[tuple[Leaf, ...]]:
    """The outputs of a call in its variants. One that computes something else is added to those that failed."""
    assert check.outputs is not None
    plain = from_npz(Path(check.outputs))
    runs = {one.name: from_npz(Path(one.outputs)) for one in check.variants if one.name not in failed}
    for name in [name for name, outputs in runs.items() if list(map(str, outputs)) != list(map(str, plain))]:
        failed[name] = "its outputs have other types"
        del runs[name]
    if _variant(name := stray(plain, runs)) in COMPILED:
        failed[name] = "it computes something else"
        del runs[name]
    return [plain, *runs.values()]


def _variant(name: str) -> str:
    """The variant without its call: ``vjp1/fast_math`` is ``fast_math``."""
    return name.rpartition("/")[2]

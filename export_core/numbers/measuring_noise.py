"""Measuring the noise of goldens: their calls run again, on moved inputs and compiled in other ways.

A stored golden is measured in the environment of its writer, or of the oldest later reader that runs it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from export_core.artifact.audit import LAPACK
from export_core.base.errors import InfrastructureFault
from export_core.base.processes import signal_name
from export_core.base.scratch import scratch_folder
from export_core.base.text import plural
from export_core.base.tolerances import FLOATS
from export_core.goldens import Golden, GoldenError, GoldenStore, Leaf, Manifest
from export_core.goldens.arrays import Noise, from_npz, noise_from_npz, noise_to_npz, to_npz
from export_core.goldens.manifest import NoiseRecord, as_stored
from export_core.goldens.store import NOISE, sha256
from export_core.numbers.leaf_paths import leaf_paths, output_name
from export_core.numbers.noise import (
    ULPS,
    moved_by,
    noise_and_jumps,
    noise_text,
    proves_nothing,
    scale_of,
    spread,
    undecided_outputs,
)
from export_core.numbers.shows_nothing import OtherInputs, Remark, remark_lines
from export_core.policy import Policy
from export_core.policy.run_options import CellLimits
from export_core.readers.cell import Cell, request_of
from export_core.readers.environment import Environment, ReaderEnvironments, with_variables
from export_core.readers.hardware import instruction_set, other_openblas_core
from export_core.readers.placement import Placement
from export_core.readers.worker.client import WarmWorkers, start_worker
from export_core.readers.worker.first_run import FirstRuns
from export_core.readers.worker.protocol import CheckRequest, Reply, Request, VariantRequest, Worker, moves
from export_core.releases import Release, ReleaseError

MOVED = 6  # Runs with inputs moved by up to one unit in the last place.

INSIDE_RUNS = (("inside", 24, 1), ("amplified", 4, ULPS))
"""Runs in which results rounded inside the program are moved, and inputs too: the name of each kind, how many runs, and
by up to how many units.

All of them use the same compiled program. A few runs would miss what one rounding in ten does: of 6 runs in which a sum
near 200 took up or lost a small term, none met what the next reader met (docs/evidence/numbers-measured.md).
"""

LIMIT = 240.0  # Processor seconds of all runs of a golden together.
LONGEST_REASON = 200  # The most characters of the reason in golden.yaml why a variant failed.
UNOPTIMIZED = "unoptimized"  # The run of the rewritten program in which nothing moves.
OPTIONS: dict[str, str | int | bool] = {"xla_backend_optimization_level": 0}
"""The compiler options of the rewritten program. LLVM takes minutes to optimize some programs; and without
optimization, sums are rounded in other orders. Compilations with other options and passes were measured and added
nothing (docs/explanation/comparing.md)."""

OTHER_NUMBERS = "without moves, the rewritten program gives other numbers"
OTHER, ELSEWHERE = 64.0, 0.01
"""The limits beyond which a rewritten program counts as a different program.

Its outputs then differ by more than `OTHER` times what its moves do to them, and by more than `ELSEWHERE` times the
largest number.
"""

NOT_ROUNDED = "NotMovedError"
"""The worker's error if nothing is rounded inside a program, so that there is nothing to move."""


@dataclass(frozen=True)
class MeasuredNoise:
    """The measured noise of a golden: how far its outputs moved when its writer rounded in other ways."""

    record: NoiseRecord  # The record for the golden's manifest.
    data: bytes  # The content of its noise.npz.
    proves_nothing: bool  # Whether the noise of every output is so large that no wrong number would be seen.
    remarks: tuple[Remark, ...] = ()  # What other inputs show about the golden. They are not stored.


def with_noise(
    manifest: Manifest, files: Mapping[str, bytes], measured: MeasuredNoise
) -> tuple[Manifest, dict[str, bytes]]:
    """Return the manifest and the files of a golden with the noise that was measured added to both."""
    hashes = {**manifest.files, NOISE: sha256(measured.data)}
    return replace(manifest, noise=measured.record, files=hashes), {**files, NOISE: measured.data}


def known_noise(store: GoldenStore, manifest: Manifest) -> MeasuredNoise | None:
    """Return the noise of the stored golden that equals, in all but noise, a golden that is about to be written.

    None if there is no such golden, or if its noise is damaged or was measured by another release or on another
    processor. `as_stored` defines which evidence may differ.
    """
    generations = store.readable(manifest.case)
    golden = next((golden for golden in generations if golden.manifest.writer.id == manifest.writer.id), None)
    if golden is None or (record := golden.manifest.noise) is None:
        return None
    files = {name: hashed for name, hashed in golden.manifest.files.items() if name != NOISE}
    plain = replace(golden.manifest, noise=None, files=files)
    by = (record.jaxlib, record.instruction_set)
    if plain != as_stored(manifest, golden.manifest) or by != (manifest.writer.jaxlib, manifest.instruction_set):
        return None
    try:
        golden.verify()
        undecided = undecided_outputs(golden, golden.noise(), record.jumping)
    except GoldenError:  # it is damaged, and written again
        return None
    if undecided:  # an older version may have found fewer of them
        record = replace(record, undecided_outputs=undecided)
    return MeasuredNoise(record, golden.content(NOISE), proves_nothing(golden, undecided))


def not_measured(golden: Golden) -> str:
    """Return why the noise of a golden cannot be measured in any environment; empty if it can be measured."""
    manifest = golden.manifest
    if manifest.options.without_outputs:
        return "it has no outputs"
    runs = "cpu" in manifest.replayed_on and "cpu" not in manifest.options.refused_on
    return "" if runs else "it was exported for other platforms than cpu"


def lacks_noise(golden: Golden) -> bool:
    """Return whether a golden has no noise although `jaxexport goldens verify --noise` can measure it."""
    return golden.manifest.noise is None and not not_measured(golden)


class OtherKernel:
    """A process whose LAPACK computes with another kernel of OpenBLAS, as on another processor.

    The process is started for the first golden that calls LAPACK, unless this processor can run no other kernel. It is
    warm, like all processes that measure noise, since cold processes of old jaxlibs crash at a LAPACK call.
    """

    def __init__(self) -> None:
        self._workers = WarmWorkers()
        self.close = self._workers.close

    def run(self, golden: Golden, environment: Environment, request: Request) -> tuple[str, dict[str, Path]]:
        """Run the calls of a golden, and return the name of the kernel and, by call, the files of outputs.

        Both results are empty if the golden does not call LAPACK, if there is no other kernel, or if the run fails.
        """
        core = other_openblas_core(environment.variables)
        if not core or not any(call.startswith(LAPACK) for call in golden.manifest.custom_calls):
            return "", {}
        outputs = {check.name: f"{check.outputs}.kernel.npz" for check in request.checks if check.outputs}
        checks = tuple(replace(check, outputs=outputs.get(check.name), variants=()) for check in request.checks)
        worker = self._workers.start(with_variables(environment, OPENBLAS_CORETYPE=core), 1)
        reply = worker.submit(replace(request, checks=checks, warm=True)).result()
        return (core, {name: Path(path) for name, path in outputs.items()}) if reply.end == "ok" else ("", {})


def measure_noise(
    golden: Golden,
    environment: Environment,
    worker: Worker,
    other: OtherKernel | None = None,
    first_runs: FirstRuns | None = None,
) -> MeasuredNoise | str:
    """Run the calls of a golden in each variant, in processes of a worker, and return the noise.

    A variant that raises an error or ends its process is left out, and recorded with its message. If `other` is given,
    a golden that calls LAPACK also runs on another kernel. If `first_runs` is given, the first process is cold, and its
    reply is stored for the golden's first replay.

    If a call of the golden itself fails or does not run on cpu, the reason is returned as text. Raises `WorkerDied` if
    the worker dies.
    """
    if reason := not_measured(golden):
        return reason
    with scratch_folder() as scratch:
        cell = Cell(golden, environment.release, "cpu")
        # In processor seconds: a golden that a busy machine writes has the noise that an idle one measures.
        request = replace(request_of(cell, scratch, CellLimits(timeout=LIMIT)), by_processor=True)
        variants_of = {
            check.name: [*_write_variants(check, scratch / f"variants {number}")] if check.outputs else []
            for number, check in enumerate(request.checks)
        }
        variants = [variant for of_check in variants_of.values() for variant in of_check]
        names = [variant.name for variant in variants]
        failed: dict[str, str] = {}
        others = OtherInputs(golden, request.checks[0], scratch / "other inputs")

        def run() -> Reply:
            """Run the calls with all variants that have not failed; variants with other inputs come first."""
            left = {name: tuple(one for one in of if one.name not in failed) for name, of in variants_of.items()}
            left[""] = (*others.variants, *left[""])
            checks = tuple(replace(check, variants=left[check.name]) for check in request.checks)
            asked = replace(request, checks=checks)
            if is_cold and first_runs:
                return first_runs.run(worker, asked)
            # Warm: this asks how exact the numbers are, and not whether a cold process survives.
            return worker.submit(replace(asked, warm=True)).result()

        is_cold = first_runs is not None
        while (reply := run()).end != "ok":
            is_cold, was_cold = False, is_cold
            if others.ended(reply):  # which says nothing of the golden
                continue
            if was_cold and reply.end == "crash":  # all of it may run in a warm process
                continue
            # The artifact's code may have sent any reply: only requested variants count.
            if reply.variant not in names or reply.variant in failed:
                return _ending(reply)
            # It took its process along, so the others run again without its program: after a timeout, those before it.
            first, *later = variants[names.index(reply.variant) :]
            lost = [one.name for one in later if reply.end == "timeout" or _are_one_program(first, one)]
            failed |= {**reply.failed, **dict.fromkeys([first.name, *lost], _ending(reply))}
        others.ended(reply)
        failed = {name: text for name, text in {**failed, **reply.failed}.items() if name in names}
        moved = [one for one in variants_of[""] if one.name.startswith("moved ") and one.name not in failed]
        remarks = others.remarks(moved)
        calls: dict[str, list[CheckRequest]] = {}
        for check, asked in zip(cell.checks, request.checks, strict=True):
            if check.outputs is not None:
                calls.setdefault(check.outputs, []).append(replace(asked, variants=tuple(variants_of[asked.name])))
        kernel = other.run(golden, environment, request) if other else ("", {})
        measured = _measured(golden, environment.release.jaxlib, calls, failed, *kernel)
        return MeasuredNoise(measured.record, measured.data, measured.proves_nothing, remarks)


def _write_variants(check: CheckRequest, folder: Path) -> Iterator[VariantRequest]:
    """Write the inputs for the variants of a call, and yield the variants, such as ``vjp1/inside 0``.

    Variants that run the program unchanged come first.
    """
    folder.mkdir(parents=True)
    prefix = f"{check.name}/" if check.name else ""
    inputs = from_npz(Path(check.inputs))
    has_floats = any(leaf.dtype in FLOATS and leaf.data.size for leaf in inputs)

    def variant(name: str, given: str, **fields: Any) -> VariantRequest:
        return VariantRequest(f"{prefix}{name}", given, str(folder / f"{name}.npz"), **fields)

    def write_moved(seed: int, ulps: int) -> str:
        """Write inputs moved by up to `ulps` units to a file, and return its path.

        If there are no floats, return the path of the unmoved inputs.
        """
        if not has_floats:
            return check.inputs
        generators = (np.random.default_rng([seed, number]) for number in range(len(inputs)))
        path = folder / f"inputs {seed}.npz"
        path.write_bytes(to_npz(moved_by(ulps, leaf, one) for leaf, one in zip(inputs, generators, strict=True)))
        return str(path)

    for seed in range(MOVED if has_floats else 0):
        yield variant(f"moved {seed}", write_moved(seed, 1))
    yield variant(UNOPTIMIZED, check.inputs, options=OPTIONS, numbers=moves(0, 0))
    for name, count, ulps in INSIDE_RUNS:
        for number in range(count):
            # Each run has a seed of its own: what is computed from constants is the same in every run.
            seed = 100 * ulps + number
            yield variant(f"{name} {number}", write_moved(seed, ulps), options=OPTIONS, numbers=moves(seed, ulps))


def _are_one_program(one: VariantRequest, other: VariantRequest) -> bool:
    """Return whether two variants run the same rewritten program, since both rewrite the program of the same call."""
    calls = {variant.name.rpartition("/")[0] for variant in (one, other)}
    return len(calls) == 1 and bool(one.numbers and other.numbers)


def _ending(reply: Reply) -> str:
    """Return, in one line, why a process failed, from its reply."""
    if reply.end in ("timeout", "memory"):
        timeout = f"took more than {LIMIT:g} seconds of processor time"
        return {"timeout": timeout, "memory": "used more memory than a cell may"}[reply.end]
    text = f"{reply.type}: {reply.message}" if reply.type else reply.message
    return _line(text or f"died by {signal_name(reply.signal)}")


def _line(text: str) -> str:
    return text.strip().partition("\n")[0][:LONGEST_REASON]


def _measured(
    golden: Golden,
    jaxlib: str,
    calls: Mapping[str, Sequence[CheckRequest]],
    failed: dict[str, str],
    kernel: str,
    by_kernel: Mapping[str, Path],
) -> MeasuredNoise:
    """Return the noise of a golden, from the outputs of its calls, of their variants, and of another kernel.

    Args:
        golden: the golden.
        jaxlib: the jaxlib that ran the calls.
        calls: the calls, by the name of their file of expected outputs.
        failed: the reasons why variants failed, by variant. Reasons that this function finds are added.
        kernel: the name of the other kernel; empty if there was none.
        by_kernel: the files with the outputs of the other kernel, by call.
    """
    noises: list[tuple[Sequence[Leaf], Noise]] = []
    jumping: dict[str, tuple[int, int]] = {}
    run: set[str] = set()
    unmeasured: list[str] = []
    for checks in calls.values():
        for check in checks:
            names = [variant.name for variant in check.variants if variant.numbers and variant.name not in failed]
            if _computes_something_else(check, names):
                failed |= dict.fromkeys(names, OTHER_NUMBERS)
        # Calls that must have the same outputs have their noise together.
        plain = from_npz(Path(checks[0].outputs or ""))
        near = [from_npz(by_kernel[check.name]) for check in checks if check.name in by_kernel]
        far: list[Sequence[Leaf]] = []
        for check in checks:
            types = list(map(str, from_npz(Path(check.outputs or ""))))
            for variant in (variant for variant in check.variants if variant.name not in failed):
                outputs = from_npz(Path(variant.outputs))
                if list(map(str, outputs)) != types:
                    failed[variant.name] = "its outputs have other types"
                    continue
                kind = _variant(variant.name)
                run.add(kind)
                (far if kind.startswith("amplified ") else near).append(outputs)
        # With nothing that moves or is rounded, all is exact. With runs that failed, nothing is known.
        variants = [variant.name for check in checks for variant in check.variants]
        if not near and any(name in failed and not failed[name].startswith(NOT_ROUNDED) for name in variants):
            unmeasured.append(checks[0].name)
        spreads = zip(plain, spread(plain, near), spread(plain, far), strict=True)
        measured = [noise_and_jumps(*one) for one in spreads]
        noises.append((plain, tuple(noise for noise, _ in measured)))
        for number, (leaf, (_, count)) in enumerate(zip(plain, measured, strict=True)):
            if count:
                jumping[output_name(checks[0].name, number)] = (count, leaf.data.size)
    data = noise_to_npz(noises)
    stored = noise_from_npz(data, NOISE, [plain for plain, _ in noises])
    undecided = undecided_outputs(golden, dict(zip(calls, stored, strict=True)), jumping)
    record = NoiseRecord(
        jaxlib=jaxlib,
        instruction_set=instruction_set(),
        moved=sum(name.startswith("moved ") for name in run),
        inside=sum(name.startswith("inside ") for name in run),
        amplified=sum(name.startswith("amplified ") for name in run),
        compiled=(UNOPTIMIZED,) if UNOPTIMIZED in run else (),
        kernel=kernel,
        failed=_summarized(failed),
        unmeasured=tuple(unmeasured),
        jumping=jumping,
        undecided_outputs=undecided,
    )
    return MeasuredNoise(record, data, proves_nothing(golden, undecided))


def _computes_something_else(check: CheckRequest, names: Sequence[str]) -> bool:
    """Return whether the rewritten program of a call computes something other than the plain program.

    The outputs of both then differ by many times the noise of the rewritten program, and by a noticeable part of the
    largest number. Some releases took a transposed matrix for an untransposed matrix in this way. `names` are the
    variants that ran the rewritten program.
    """
    outputs = {one.name: from_npz(Path(one.outputs)) for one in check.variants if one.name in names}
    still = next((name for name in names if _variant(name) == UNOPTIMIZED), "")
    if not still or len(names) == 1:
        return False
    plain = from_npz(Path(check.outputs or ""))
    if any(list(map(str, leaves)) != list(map(str, plain)) for leaves in outputs.values()):
        return False
    moved = [leaves for name, leaves in outputs.items() if name != still]
    pairs = zip(plain, spread(plain, [outputs[still]]), spread(outputs[still], moved), strict=True)
    return any(
        leaf.dtype in FLOATS and off is not None and by is not None and off.size > 0
        and float(off.max()) > max(OTHER * float(by.max()), ELSEWHERE * scale_of([leaf]))
        for leaf, off, by in pairs
    )  # fmt: skip


def _summarized(failed: Mapping[str, str]) -> dict[str, str]:
    """Return the reasons why runs failed, by the name of the run.

    If all runs of a kind failed for the same reason, there is one entry for the kind, such as ``vjp1/inside``.
    """
    counts = {"moved": MOVED, **{name: count for name, count, _ in INSIDE_RUNS}}
    reasons = {name: _line(text) for name, text in failed.items() if not text.startswith(NOT_ROUNDED)}
    alike = Counter((name.rpartition(" ")[0], text) for name, text in reasons.items())
    whole = {kind: text for (kind, text), count in alike.items() if count == counts.get(_variant(kind))}
    rest = {name: text for name, text in reasons.items() if name.rpartition(" ")[0] not in whole}
    return dict(sorted({**whole, **rest}.items()))


def _variant(name: str) -> str:
    """Return the name of a variant without its call: ``inside 0`` for ``vjp1/inside 0``."""
    return name.rpartition("/")[2]


Measured = tuple[Golden, MeasuredNoise | str]


def measure_goldens(goldens: Sequence[Golden], policy: Policy, notify: Callable[[str], None]) -> Iterator[Measured]:
    """Yield each golden with its noise, or with the reason why it has none.

    Goldens whose noise cannot be measured in any environment come first.
    """
    calendar = policy.calendar()
    by_writer: dict[Release, list[Golden]] = {}
    for golden in goldens:
        if reason := not_measured(golden):
            yield golden, reason
            continue
        by_writer.setdefault(golden.manifest.writer.release, []).append(golden)
    with ReaderEnvironments.of(policy, calendar, notify=notify) as environments:
        for writer_release, group in by_writer.items():
            later = [version for version in calendar.versions() if calendar.built(version) > writer_release.built]
            releases = [writer_release, *map(calendar.release, later)]
            yield from _of_writer(group, releases, environments, notify)


def _of_writer(
    goldens: Sequence[Golden],
    releases: Sequence[Release],
    environments: ReaderEnvironments,
    notify: Callable[[str], None],
) -> Iterator[Measured]:
    """Yield the goldens of one writer, each with its noise, or with the reason why it has none.

    The noise is measured by the first of `releases`, which is the release of the writer. If its environment cannot be
    built or its worker dies, later releases measure the goldens that are left.
    """
    left = {golden.id: golden for golden in goldens}
    reasons: dict[str, str] = {}
    for release in releases:
        failed: dict[str, str] = {}
        try:
            environment = environments.build(Placement(release))
            for golden, noise in _in_release([*left.values()], environment, notify):
                if isinstance(noise, str):
                    failed[golden.id] = noise
                else:
                    del left[golden.id]
                    yield golden, noise  # at once: an interruption loses none that is known
        except (InfrastructureFault, ReleaseError) as error:
            reasons = reasons or dict.fromkeys(left, str(error))
            continue
        if release == releases[0]:  # what its own writer cannot run says nothing about other releases
            reasons = failed
        if release == releases[0] or not left:
            break
    yield from ((golden, reasons[golden.id]) for golden in left.values())


def _in_release(
    goldens: Sequence[Golden], environment: Environment, notify: Callable[[str], None]
) -> Iterator[Measured]:
    """Yield each of these goldens with its noise, measured in this environment, or with the reason why it has none.

    Raises `WorkerDied` if the worker does not start.
    """
    jobs = CellLimits().jobs
    worker, other = start_worker(environment, jobs), OtherKernel()
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="noise")

    def measure(numbered: tuple[int, Golden]) -> MeasuredNoise | str:
        number, golden = numbered
        notify(f"measuring the noise of {golden.id} ({number} of {len(goldens)} by this writer)")
        return measure_noise(golden, environment, worker, other)

    try:
        yield from zip(goldens, pool.map(measure, enumerate(goldens, 1)), strict=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        other.close()
        worker.close()


def add_noise(
    store: GoldenStore, goldens: Sequence[Golden], policy: Policy, notify: Callable[[str], None]
) -> Iterator[str]:
    """Measure the noise of stored goldens, add it to them, and yield lines about each golden and a line about all."""
    known = 0
    for golden, measured in measure_goldens(goldens, policy, notify):
        if isinstance(measured, str):
            yield f"{golden.id}  no noise: {measured}"
            continue
        known += 1
        store.write(*with_noise(golden.manifest, golden.files(), measured))
        yield f"{golden.id}  {noise_text(measured.record)}"
        leaves = [path for paths in leaf_paths(golden.manifest, golden.read_artifact()) for path in paths]
        yield from (f"  {line}" for line in remark_lines(measured.remarks, leaves=leaves))
    yield f"noise of {known} of {plural(len(goldens), 'golden')} measured"

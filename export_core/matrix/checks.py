"""The calls that a cell makes of its artifact, and whether each came out as its golden says."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from export_core.base.tolerances import ROUNDING, Tolerances
from export_core.goldens import Check, Comparison, Golden, Leaf
from export_core.goldens.arrays import from_npz
from export_core.goldens.rules import adopted_specs
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS
from export_core.matrix.cell import Cell
from export_core.matrix.dump import cell_dump_folder
from export_core.matrix.limits import Limits, ReplayOptions
from export_core.numbers.bits import bits_of, bits_of_calls
from export_core.numbers.compare import Difference, compare_leaves, kind_of_all, rules_in_words
from export_core.numbers.rules import NO_NOISE, CallNoise, call_noise
from export_core.numbers.user_code import UserCode
from export_core.policy.run_options import of_cell
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import CheckRequest, Reply, Request

_NO_LIMIT_SECONDS = 1e9
"""Not infinity: JSON has none, and `threading.Timer`, which gets twice this, takes at most 9.2e9."""

WRONG_PLATFORM = r"(exported|lowered) for platforms"
"""What releases say on a platform that an artifact was not exported for, as a regular expression."""


def checks_of(cell: Cell) -> tuple[Check, ...]:
    """The calls of a cell in order, the plain one first: its name is empty."""
    options = cell.golden.manifest.options
    if cell.platform in options.refused_on:
        return (Check("", inputs=INPUTS, refused=WRONG_PLATFORM),)
    outputs = None if options.without_outputs else OUTPUTS
    return (Check("", inputs=INPUTS, outputs=outputs, mesh=options.mesh), *cell.golden.manifest.checks)


def request_of(cell: Cell, scratch: Path, limits: Limits, dump: Path | None = None) -> Request:
    """A cell as a request to its worker.

    Outputs go into the folder `scratch`, and the modules as text into the folder `dump`; None writes none.
    """
    golden = cell.golden
    folder, mesh = golden.folder.resolve(), golden.manifest.options.mesh
    specs = adopted_specs(golden.manifest)
    checks = tuple(
        CheckRequest(
            name=check.name,
            vjp=check.vjp,
            inputs=str(folder / (check.inputs or INPUTS)),
            outputs=None if check.refused is not None else str(scratch / f"{number}.npz"),
            mesh=tuple((check.mesh or mesh).items()),
            # The artifact's own shardings hold on the exporter's mesh only.
            place="spread" if check.spread else "whole" if check.mesh not in ({}, mesh) else "own",
            specs=specs,
            dump=None if dump is None else cell_dump_folder(cell, check.name, dump),
        )
        for number, check in enumerate(checks_of(cell))
    )
    return Request(
        artifact=str(folder / ARTIFACT),
        checks=checks,
        register=register_modules(golden),
        devices=_devices(cell),
        x64=bool(golden.manifest.flags.get("jax_enable_x64")),
        **{**of_cell(limits), "timeout": limits.timeout or _NO_LIMIT_SECONDS},
        platform=cell.platform,
        described=cell.target.described(_devices(cell)) if cell.target and cell.mode is Mode.COMPILE else None,
    )


def register_modules(golden: Golden) -> tuple[tuple[str, str], ...]:
    """The modules that a reader imports first, by name, and the golden's copies of them."""
    folder = golden.folder.resolve()
    return tuple((name, str(folder / f"{name}.register.py")) for name in golden.manifest.options.register)


def _devices(cell: Cell) -> int:
    """How many devices the process of a cell needs."""
    # The largest mesh of all calls: a client has its devices when it starts, and a process starts one.
    meshes = (cell.golden.manifest.options.mesh, *(check.mesh for check in checks_of(cell)))
    return max(math.prod(mesh.values()) for mesh in meshes)


def comparison_of(check: Check, how: Comparison) -> Comparison:
    """How the outputs of a call are compared.

    Derivatives are no factorizations, whatever the outputs of the function are.
    """
    return msgspec.structs.replace(how, compare="allclose") if check.vjp and how.compare != "shape" else how


@dataclass(frozen=True)
class GoldenOutputs:
    """The outputs that a golden expects, and how others are compared with them on a platform, under a policy."""

    golden: Golden
    platform: str
    tolerances: Tolerances
    user_code: UserCode | None = None

    @functools.cached_property
    def _noise(self) -> dict[str, CallNoise]:
        return call_noise(self.golden)

    def compare(self, check: Check, expected: Sequence[Leaf], actual: Sequence[Leaf]) -> Difference:
        """The difference of a call's outputs from the expected ones, which the file that the check names has."""
        manifest = self.golden.manifest
        return compare_leaves(
            expected,
            actual,
            comparison_of(check, manifest.comparison),
            noise=self._noise.get(check.outputs or "", NO_NOISE),
            platforms=(manifest.writer.platform, self.platform),
            tolerances=self.tolerances,
            sources=self.golden.sources,
            user_code=self.user_code,
            factors=() if check.vjp else self.golden.factors,
        )


@dataclass(frozen=True)
class CallResults:
    """What the calls of a cell gave: the largest errors of all.

    `problem` says what is wrong, and is empty if nothing is. `outputs` is a digest of the bits of all outputs, empty
    where there are none to compare; `as_written` says whether they are the bits of the golden.
    """

    difference: Difference
    problem: str = ""
    outputs: str = ""
    as_written: bool = False


def check_calls(cell: Cell, reply: Reply, scratch: Path, options: ReplayOptions) -> CallResults:
    """Compare what a worker brought back with the golden. The first call that differs is the `problem`.

    After one that does not look like rounding, only the bits of later calls are of interest. Of what was only compiled,
    there are only refusals to compare.
    """
    problem = ""
    differences: list[Difference] = []
    written: list[bytes] = []
    found: list[bytes] = []
    wanted = GoldenOutputs(cell.golden, cell.platform, options.policy.tolerances, options.user_code)
    for number, check in enumerate(checks_of(cell)):
        prefix = f"{check.name}: " if check.name else ""
        if check.refused is not None:
            message = reply.refusals.get(check.name, "")
            if not problem and not check.expects(message):
                problem = f"{prefix}expected a refusal with {check.refused!r} in its message, found {message}"
        elif check.outputs is not None and cell.mode is Mode.RUN:
            expected, actual = from_npz(cell.golden.folder / check.outputs), from_npz(scratch / f"{number}.npz")
            written.append(bits_of(expected))
            found.append(bits_of(actual))
            if problem and not kind_of_all(differences).startswith(ROUNDING):
                continue
            differences.append(difference := wanted.compare(check, expected, actual))
            problem = problem or ("" if difference.ok else f"{prefix}{difference}")
    return CallResults(
        _largest(differences),
        problem or _sharding_problem(cell, reply),
        outputs=bits_of_calls(found),
        as_written=bool(found) and found == written,
    )


def _sharding_problem(cell: Cell, reply: Reply) -> str:
    """Which output is sharded differently than its writer saw; empty if none is."""
    manifest = cell.golden.manifest
    expected = manifest.out_shardings
    if cell.mode is Mode.COMPILE or cell.platform in manifest.options.refused_on or not expected:
        return ""
    pairs = itertools.zip_longest(expected, reply.shardings, fillvalue="none")
    for number, (writer, reader) in enumerate(pairs):
        if writer != reader:
            return f"output {number} is sharded differently: expected {writer}, got {reader}"
    return ""


def _largest(differences: list[Difference]) -> Difference:
    """The largest errors of all calls so far."""
    if not differences:
        return Difference(True)
    return Difference(
        all(difference.ok for difference in differences),
        max_abs_error=max(difference.max_abs_error or 0.0 for difference in differences),
        max_rel_error=max(difference.max_rel_error or 0.0 for difference in differences),
        max_ulp=max((units for difference in differences if (units := difference.max_ulp) is not None), default=None),
        tolerance=rules_in_words(differences),
        max_noise_error=max(
            (error for difference in differences if (error := difference.max_noise_error) is not None), default=None
        ),
        kind=kind_of_all(differences),
    )

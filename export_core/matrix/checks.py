"""Which calls of its artifact does a cell make, and did each come out as its golden says?"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from export_core.comparing.compare import Difference, compare_leaves
from export_core.environments.placement import Mode
from export_core.goldens import Check, Comparison, Golden
from export_core.goldens.arrays import from_npz
from export_core.goldens.store import ARTIFACT, INPUTS, OUTPUTS
from export_core.matrix.cell import Cell
from export_core.matrix.dump import dump_of
from export_core.tolerances import Tolerances
from export_core.worker.protocol import CheckRequest, Reply, Request

WRONG_PLATFORM = r"(exported|lowered) for platforms"
"""What releases say on a platform that an artifact was not exported for, as a regular expression."""


def checks_of(cell: Cell) -> tuple[Check, ...]:
    """The calls of a cell in order, the plain one first: its name is empty."""
    options = cell.golden.manifest.options
    if cell.platform in options.refused_on:
        return (Check("", inputs=INPUTS, refused=WRONG_PLATFORM),)
    return (Check("", inputs=INPUTS, outputs=OUTPUTS, mesh=options.mesh), *cell.golden.manifest.checks)


def request_of(cell: Cell, scratch: Path, *, timeout: float, memory: int, dump: Path | None = None) -> Request:
    """A cell as the worker is told it.

    What comes out goes into the folder `scratch`, and the modules as text into `dump`, None for nowhere; `timeout` in seconds,
    `memory` in bytes.
    """
    golden = cell.golden
    folder, mesh = golden.folder.resolve(), golden.manifest.options.mesh
    checks = tuple(
        CheckRequest(
            name=check.name,
            vjp=check.vjp,
            inputs=str(folder / (check.inputs or INPUTS)),
            outputs=None if check.outputs is None else str(scratch / f"{number}.npz"),
            mesh=tuple((check.mesh or mesh).items()),
            place="spread" if check.spread else "whole" if check.mesh not in ({}, mesh) else "own",
            dump=None if dump is None else dump_of(cell, check.name, dump),
        )
        for number, check in enumerate(checks_of(cell))
    )
    return Request(
        artifact=str(folder / ARTIFACT),
        checks=checks,
        register=registered(golden),
        devices=_devices(cell),
        x64=bool(golden.manifest.flags.get("jax_enable_x64")),
        timeout=timeout,
        memory=memory,
        platform=cell.platform,
        described=cell.target.described(_devices(cell)) if cell.target and cell.mode is Mode.COMPILE else None,
    )


def registered(golden: Golden) -> tuple[tuple[str, str], ...]:
    """The modules that a reader imports first, by name, and the golden's copies of them."""
    folder = golden.folder.resolve()
    return tuple((name, str(folder / f"{name}.register.py")) for name in golden.manifest.options.register)


def _devices(cell: Cell) -> int:
    """How many devices the process of a cell needs."""
    meshes = (cell.golden.manifest.options.mesh, *(check.mesh for check in checks_of(cell)))
    return max(math.prod(mesh.values()) for mesh in meshes)


def comparison_of(check: Check, how: Comparison) -> Comparison:
    """How the outputs of a call are compared. Derivatives are no factorizations, whatever the outputs of the function are."""
    return msgspec.structs.replace(how, compare="allclose") if check.vjp else how


@dataclass(frozen=True)
class Checked:
    """What came of a cell's calls: the largest errors of all; `problem` where something other than a number is wrong."""

    difference: Difference
    problem: str = ""


def checked(cell: Cell, reply: Reply, scratch: Path, tolerances: Tolerances | None = None) -> Checked:
    """Compare what a worker brought back with the golden. The first call that came out otherwise is told.

    `tolerances` is what the policy says for platforms. Of what was only compiled, refusals are all there is to compare.
    """
    manifest = cell.golden.manifest
    found: list[Difference] = []
    for number, check in enumerate(checks_of(cell)):
        prefix = f"{check.name}: " if check.name else ""
        if check.outputs is None:
            said = reply.refusals.get(check.name, "")
            if not check.expects(said):
                return Checked(
                    _worst(found), f"{prefix}expected a refusal with {check.refused!r} in its message, found {said}"
                )
            continue
        if cell.mode is Mode.COMPILE:
            continue
        how = comparison_of(check, manifest.comparison)
        difference = compare_leaves(
            from_npz(cell.golden.folder / check.outputs),
            from_npz(scratch / f"{number}.npz"),
            how,
            platforms=(manifest.writer.platform, cell.platform),
            tolerances=tolerances,
        )
        found.append(difference)
        if not difference.ok:
            return Checked(replace(_worst(found), ok=False), f"{prefix}{difference}")
    wanted = () if cell.mode is Mode.COMPILE else manifest.out_shardings
    if wanted and cell.platform not in manifest.options.refused_on and reply.shardings != wanted:
        pairs = itertools.zip_longest(wanted, reply.shardings, fillvalue="none")
        number, (then, now) = next((number, pair) for number, pair in enumerate(pairs) if pair[0] != pair[1])
        return Checked(_worst(found), f"output {number} lies elsewhere on its mesh: expected {then}, got {now}")
    return Checked(_worst(found))


def _worst(found: list[Difference]) -> Difference:
    if not found:
        return Difference(True)
    return Difference(
        all(difference.ok for difference in found),
        max_abs_error=max(difference.max_abs_error or 0.0 for difference in found),
        max_rel_error=max(difference.max_rel_error or 0.0 for difference in found),
        max_ulp=max((each.max_ulp for each in found if each.max_ulp is not None), default=None),
    )

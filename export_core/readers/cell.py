"""A cell, the unit of work: one golden, in one reader, on one platform; and the calls that its reader makes."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from export_core.artifact import Artifact
from export_core.artifact.envelope.fields import Aval
from export_core.artifact.main_check import KEY_WORDS
from export_core.base.atomic import write_whole
from export_core.base.untrusted import read_regular
from export_core.goldens import Check, Golden, GoldenError, Manifest
from export_core.goldens.manifest_file import adopted_specs, check_specs
from export_core.goldens.store import ARTIFACT, INPUTS, MODULE_TEXT, OUTPUTS
from export_core.policy.run_options import CellLimits, of_cell
from export_core.readers.placement import Mode, Placement, Target
from export_core.readers.worker.protocol import CheckRequest, ModuleCall, Place, Request, WireType
from export_core.releases import Promise, Release, Windows
from export_core.releases.runtimes import promise_to

_NO_LIMIT_SECONDS = 1e9
"""Not infinity: JSON has none, and `threading.Timer`, which gets twice this, takes at most 9.2e9."""

WRONG_PLATFORM = r"(exported|lowered) for platforms"
"""A regular expression for the messages of jax about a platform for which an artifact was not exported."""


class CellKey(NamedTuple):
    """The name of a cell, the same in every run: its golden, the name of its reader, the reader's jax, the platform."""

    golden: str
    reader: str
    jax: str
    platform: str

    @property
    def pair(self) -> str:
        """The name of the reader with its jax, such as ``0.11.2-jax0.12.0.1``."""
        named, bracket, settings = self.reader.partition("[")
        return f"{named}-jax{self.jax}{bracket}{settings}" if self.jax else self.reader

    def __str__(self) -> str:
        return f"{self.golden} in {self.pair} on {self.platform}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One golden, in one reader, on one platform."""

    golden: Golden
    reader: Release
    platform: str
    mode: Mode = Mode.RUN
    target: Target | None = None  # The plugin and device to compile for if the platform is missing; None on a CPU.
    promised: bool = False  # Whether its reader is inside the window of its writer.
    deployed: tuple[str, ...] = ()  # The names of the policy's deployment targets in which it has to run.

    @property
    def decides(self) -> bool:
        """Whether the exit code depends on this cell. A replay runs such cells first."""
        return self.promised or bool(self.deployed)

    @property
    def key(self) -> CellKey:
        """The name of the cell, unique in a plan."""
        return CellKey(self.golden.id, self.reader.name, self.reader.jax, self.platform)

    @property
    def placement(self) -> Placement:
        """The reader with its platform, by which cells share an environment and a worker."""
        return Placement(self.reader, self.platform, self.mode, self.target)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The calls of the cell in order: first the plain call of the artifact, whose name is empty."""
        manifest = self.golden.manifest
        options, checks = manifest.options, manifest.checks
        plain = Check("", inputs=INPUTS, outputs=None if options.without_outputs else OUTPUTS)
        if self.reader.runtime:
            # Meshes, and that a derivative is missing, are of jax.export: a runtime calls what is in the artifact.
            called = (check for check in checks if not (check.mesh or check.spread) and check.vjp <= options.vjp_order)
            return (plain, *called)
        if self.platform in options.refused_on:
            return (Check("", inputs=INPUTS, refused=WRONG_PLATFORM),)
        return (msgspec.structs.replace(plain, mesh=options.mesh), *checks)


def request_of(cell: Cell, scratch: Path, limits: CellLimits, dump: Path | None = None) -> Request:
    """Return the request that a worker gets for a cell.

    Args:
        cell: the cell.
        scratch: the folder for outputs.
        limits: the limits of time and memory.
        dump: the folder below which modules are written as text, see `dump_folder`; None writes no modules.
    """
    golden = cell.golden
    folder, mesh = golden.folder.resolve(), golden.manifest.options.mesh
    specs, calls = adopted_specs(golden.manifest), cell.checks
    checks = tuple(
        CheckRequest(
            name=check.name,
            vjp=check.vjp,
            inputs=str(folder / (check.inputs or INPUTS)),
            outputs=None if check.refused is not None else str(scratch / f"{number}.npz"),
            mesh=tuple((check.mesh or mesh).items()),
            # The artifact's own shardings hold on the exporter's mesh only.
            place=_place(check, mesh),
            specs=check_specs(check) or specs,
            dump=None if dump is None else str(dump_folder(cell, check.name, dump)),
        )
        for number, check in enumerate(calls)
    )
    # The largest mesh of all calls: a client has its devices when it starts, and a process starts one.
    devices = max(math.prod(axes.values()) for axes in (mesh, *(check.mesh for check in calls)))
    return Request(
        artifact=str(folder / ARTIFACT),
        checks=checks,
        register=register_modules(golden),
        devices=devices,
        x64=bool(golden.manifest.flags.get("jax_enable_x64")) if cell.reader.x64 is None else cell.reader.x64,
        **{**of_cell(limits), "timeout": limits.timeout or _NO_LIMIT_SECONDS},
        platform=cell.platform,
        described=cell.target.described(devices) if cell.target and cell.mode is Mode.COMPILE else None,
    )


def _place(check: Check, mesh: dict[str, int]) -> Place:
    """Return the `Place` of a call: how its arguments are put on devices. The artifact was exported for `mesh`."""
    if check.spread:
        return "spread"
    if check.in_specs:
        return "given"
    return "whole" if check.mesh not in ({}, mesh) else "own"


def register_modules(golden: Golden) -> tuple[tuple[str, str], ...]:
    """Return the Python modules that a reader imports first: (name, path of the golden's copy)."""
    folder = golden.folder.resolve()
    return tuple((name, str(folder / f"{name}.register.py")) for name in golden.manifest.options.register)


def dump_folder(cell: Cell, check: str, folder: Path) -> Path:
    """Return the folder for the modules of one call: ``<case>/<writer>/<reader>-<platform>`` below `folder`.

    The worker writes into it: ``exported.mlir``, the module as the reader parses it, what jax dumps
    (``jax_dump_ir_to``) and ``compiled.hlo``. Each further call has a subfolder, named after `check`.
    """
    own = folder / cell.golden.id / f"{cell.reader.name}-{cell.platform}"
    return own / re.sub(r"[^\w.-]+", "_", check)


def make_dump_folders(cell: Cell, folder: Path) -> None:
    """Make the dump folder of each call of a cell, and write the golden's own module into the folder above them."""
    for check in cell.checks:
        dump_folder(cell, check.name, folder).mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        module = read_regular(cell.golden.folder / MODULE_TEXT)
        write_whole(dump_folder(cell, "", folder).parent / "exported.mlir", [module])


def has_devices_for(reader: Release, devices: int) -> bool:
    """Return whether a reader can be called with this many devices. A runtime other than jaxlib takes only one."""
    return devices <= 1 or not reader.runtime


def promise_of(
    reader: Release,
    writer_built: datetime.date,
    windows: Windows,
    *,
    devices: int,
    converted: bool,
    left_out: bool = False,
) -> Promise:
    """Return whether a reader is promised to run a golden, by the same rule for plans, judgements and forecasts.

    Args:
        reader: the release that reads the golden. A release with settings is promised nothing.
        writer_built: the day on which the golden's writer was built.
        windows: the windows of the policy, which count for jaxlib; another runtime has a promise of its own.
        devices: how many devices the golden needs. Nothing is promised if the reader cannot be called with so many.
        converted: whether `jaxexport convert` made the golden's artifact, for which nothing is promised.
        left_out: whether the cell was run, and the reader refused something that its own promise excludes.
    """
    promise = promise_to(reader, writer_built, windows)
    excepted = converted or left_out or bool(reader.with_settings) or not has_devices_for(reader, devices)
    return promise._replace(promised=False) if excepted else promise


def promise_of_golden(golden: Golden, reader: Release, windows: Windows) -> Promise:
    """Return whether a reader is promised to run a golden, as far as this is known before the cell is run."""
    manifest = golden.manifest
    converted, devices = manifest.converted_from is not None, manifest.options.devices
    return promise_of(reader, manifest.writer.built, windows, devices=devices, converted=converted)


FOR_ONE_DEVICE = "Export the function for one device."
"""What to do about an artifact for several devices in a runtime that is called with one: no other release helps."""


def cannot_pass(cell: Cell) -> str:
    """Return why the reader of a cell cannot be called with its golden at all; "" if it can, as jaxlib always can."""
    devices = cell.golden.manifest.options.devices
    if has_devices_for(cell.reader, devices):
        return ""
    return f"{cell.reader.title} is called with one device, but this artifact is for {devices} devices"


def called_modules(artifact: Artifact, manifest: Manifest) -> list[tuple[bytes, ModuleCall]]:
    """Return the module of an artifact, then those of its first, second … derivative, each with its `ModuleCall`.

    Each `ModuleCall` still lacks the path of its module. Raises `GoldenError` for a StableHLO module without the
    envelope of jax.export.
    """
    if artifact.envelope is None:
        raise GoldenError(
            f"{artifact.name}: expected a serialized jax.export.Exported, found a bare StableHLO module, which does "
            "not say how it is called. Export the function again with jax.export."
        )
    return [
        (
            level.module_source.copy(),
            ModuleCall(
                module="",
                version=level.calling_convention_version,
                platforms=level.platforms,
                kept=level.module_kept_var_idx,
                refine=level.uses_global_constants,
                tokens=len(level.ordered_effects),
                disabled_checks=tuple(
                    f"{check.kind}:{check.target}" if check.target else check.kind for check in level.disabled_checks
                ),
                inputs=tuple(map(_wire_type, level.in_avals)),
                outputs=tuple(map(_wire_type, level.out_avals)),
                devices=manifest.options.devices,
                x64=bool(manifest.flags.get("jax_enable_x64")),
                shardy=bool(manifest.flags.get("jax_use_shardy_partitioner")),
            ),
        )
        for level in artifact.envelope.levels
    ]


def write_calls(request: Request, cell: Cell, folder: Path) -> Request:
    """Write the modules of a cell into a folder; return a request that names them, for a runtime without jax.export.

    Each check of the returned request says which module is called and how. Raises `ArtifactError` for an artifact that
    cannot be read, `GoldenError` if it is missing or has no envelope, and `OSError` if a file cannot be written.
    """
    calls = []
    for order, (module, call) in enumerate(called_modules(cell.golden.read_artifact(), cell.golden.manifest)):
        path = folder / f"{order}.mlirbc"
        path.write_bytes(module)
        calls.append(msgspec.structs.replace(call, module=str(path)))
    checks = tuple(msgspec.structs.replace(check, call=calls[check.vjp]) for check in request.checks)
    return msgspec.structs.replace(request, checks=checks)


def _wire_type(aval: Aval) -> WireType:
    """Return the type in which a value is passed to a runtime: a PRNG key as its uint32 data, float0 as bool."""
    shape = tuple(size if isinstance(size, int) else None for size in aval.shape)
    if aval.dtype in KEY_WORDS:
        return "uint32", (*shape, KEY_WORDS[aval.dtype]), aval.dtype
    return "bool" if aval.dtype == "float0" else aval.dtype, shape, aval.dtype

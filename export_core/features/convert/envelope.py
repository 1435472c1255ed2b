"""The envelope of an artifact, with its shardings, in the format of a reader. Needs no jax and no NumPy.

The format is the one that the reader itself writes, since a release reads what it writes.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from export_core.artifact import AbstractMesh, Artifact, Aval, Envelope, HloSharding, NamedSharding, PartitionSpec
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import ByteSpan, Sharding
from export_core.artifact.envelope.formats import (
    ABSTRACT_DEVICES,
    DEVICE_PLATFORMS,
    INDICES,
    MEMORY_SPACES,
    NAMED_SHARDINGS,
    NO_XLA_SHARDINGS,
    WIDE_NR_DEVICES,
    fields_of,
    format_in_words,
    format_of,
    wire_version,
)
from export_core.artifact.hlo_sharding import MOST_DEVICES, proto_of, spec_on, tiles_of
from export_core.artifact.readers import Reader
from export_core.base.text import plural
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens.adopted_mesh import meshes_of
from export_core.releases.names import version_numbers

_OLDEST_CONVENTION = 9
_ORDINARY = (None, "device")  # memory kinds that mean the memory of the device


def rewrite_envelope(artifact: Artifact, reader: Reader, modules: Sequence[bytes]) -> tuple[bytes, tuple[str, ...]]:
    """Write an artifact in the format of a reader; return its bytes, and in words what was rewritten.

    Args:
        artifact: The original.
        reader: The reader that the format is for.
        modules: The bytecode of the function's module and of the modules of its nested VJPs, by order of derivative.

    Raises:
        ConversionRefused: The reader's format has no field for something in the artifact.
        ArtifactError: A sharding cannot be read, or the artifact has fields that no known schema has.
    """
    envelope, release = artifact.envelope, reader.release
    assert envelope is not None
    first, last = envelope.format_range
    # A runtime that is not jaxlib never sees the envelope, which stays in its format.
    number = last if release.runtime else format_of(release.jax)
    if not number:
        raise ConversionRefused(f"it is not known which artifact formats jax {release.jax} reads")
    is_xlas = any(isinstance(sharding, HloSharding) for sharding in shardings_of(envelope))
    mesh = _mesh_for_named(artifact, envelope) if is_xlas and number >= NAMED_SHARDINGS else None
    since_0_7 = not release.runtime and version_numbers(release.jax) >= (0, 7, 0)  # jax knows convention 10
    newest = (release.convention or sys.maxsize) if release.runtime else 10 if since_0_7 else _OLDEST_CONVENTION
    target = _Target(number, newest, mesh)
    if not release.runtime:
        target.note(
            (
                f"envelope written in format {number}, which the original may have too"
                if first <= number <= last
                else f"envelope of format {format_in_words(first, last)} rewritten in format {number}"
            )
            + (f", with {plural(envelope.vjp_order, 'derivative')}" if envelope.vjp is not None else "")
        )
    fit = target.relabelled if release.runtime else target.fitted
    fitted: Envelope | None = None
    for level, code in reversed(list(zip(envelope.levels, modules, strict=True))):
        fitted = fit(level)._replace(vjp=fitted, module_source=ByteSpan(code, 0, len(code)))
    assert fitted is not None
    return encode(fitted, None if release.runtime else fields_of(number)), tuple(target.rewrites)


def shardings_of(envelope: Envelope) -> list[Sharding]:
    """Return the shardings of all flat arguments and results, with those of nested VJPs."""
    return [sharding for level in envelope.levels for sharding in (*level.in_shardings, *level.out_shardings)]


def _mesh_for_named(artifact: Artifact, envelope: Envelope) -> AbstractMesh:
    """Return a mesh with which all XLA shardings of an artifact, which name no axes, can be written as named ones.

    Raises `ConversionRefused` if no mesh has axes for all of them.
    """
    if envelope.nr_devices > MOST_DEVICES:
        raise ConversionRefused(f"expected an artifact for at most {MOST_DEVICES} devices, found {envelope.nr_devices}")
    protos = [sharding.proto for sharding in shardings_of(envelope) if isinstance(sharding, HloSharding)]
    tiles = [tiles_of(proto, artifact.name) for proto in dict.fromkeys(protos)]
    for mesh in meshes_of(artifact, envelope):
        if all(spec_on(mesh, tiling) is not None for tiling in tiles):
            return AbstractMesh(tuple(mesh.values()), tuple(mesh), ("Auto",) * len(mesh))
    raise ConversionRefused(
        f"the artifact's shardings over {envelope.nr_devices} devices are in XLA's form, which names no axes, and no "
        "mesh can express them all"
    )


@dataclass
class _Target:
    """The format to write, its newest calling convention, and what was rewritten, without duplicates.

    `mesh` gives axes to shardings that exist only in XLA's form; None leaves such shardings unnamed.
    """

    number: int
    newest_convention: int
    mesh: AbstractMesh | None
    rewrites: list[str] = field(default_factory=list)

    def note(self, rewrite: str) -> None:
        if rewrite not in self.rewrites:
            self.rewrites.append(rewrite)

    def relabelled(self, envelope: Envelope) -> Envelope:
        """Return an envelope with a calling convention that the reader takes, otherwise unchanged."""
        return envelope._replace(calling_convention_version=self._convention(envelope.calling_convention_version))

    def fitted(self, envelope: Envelope) -> Envelope:
        """Return an envelope whose fields have the form of the target format; its VJP is not rewritten."""
        if self.number < WIDE_NR_DEVICES and envelope.nr_devices >= 1 << 15:
            raise ConversionRefused(
                f"the artifact is for {envelope.nr_devices} devices, and the reader's envelope format allows at most "
                "32767"
            )
        checks = envelope.disabled_checks
        if self.number >= INDICES and any(check.kind == "shape_assertions" for check in checks):
            checks = tuple(check for check in checks if check.kind != "shape_assertions")
            self.note("the disabled check shape_assertions left out, which only exporters use")
        return envelope._replace(
            serialization_version=wire_version(self.number),
            calling_convention_version=self._convention(envelope.calling_convention_version),
            in_avals=self._avals(envelope.in_avals),
            out_avals=self._avals(envelope.out_avals),
            in_shardings=self._shardings(envelope.in_shardings, envelope.in_avals),
            out_shardings=self._shardings(envelope.out_shardings, envelope.out_avals),
            disabled_checks=checks,
        )

    def _convention(self, version: int) -> int:
        if version < _OLDEST_CONVENTION:
            raise ConversionRefused(
                f"the artifact's calling convention is {version}: before {_OLDEST_CONVENTION}, `main` takes tokens and "
                "global constants in other arguments"
            )
        if version == self.newest_convention + 1 == 10:
            # jax writes the same module for both. 10 adds only that a caller learns whether Shardy partitions it.
            self.note("calling convention 10 called 9, which has the same arguments of `main`")
            return 9
        if version > self.newest_convention:
            raise ConversionRefused(
                f"the artifact's calling convention is {version}, and the newest that the reader knows is "
                f"{self.newest_convention}"
            )
        return version

    def _avals(self, avals: Sequence[Aval]) -> tuple[Aval, ...]:
        if self.number >= MEMORY_SPACES:
            return tuple(aval._replace(memory_space=aval.memory_space or "device") for aval in avals)
        for aval in avals:
            if aval.memory_space not in _ORDINARY:
                raise ConversionRefused(
                    f"an argument or result has the memory space {aval.memory_space}, which formats before "
                    f"{MEMORY_SPACES} cannot store. Export it without one, or convert it for a later reader"
                )
        return tuple(aval._replace(memory_space=None) for aval in avals)

    def _shardings(self, shardings: Sequence[Sharding], avals: Sequence[Aval]) -> tuple[Sharding, ...]:
        fit = self._as_xla if self.number < NAMED_SHARDINGS else self._as_named
        return tuple(fit(sharding, len(aval.shape)) for sharding, aval in zip(shardings, avals, strict=False))

    def _as_xla(self, sharding: Sharding, rank: int) -> Sharding:
        """Return a sharding of an array with `rank` dimensions in XLA's form, the only one of old formats."""
        if not isinstance(sharding, NamedSharding):
            return sharding
        if sharding.memory_kind not in _ORDINARY:
            raise ConversionRefused(
                f"a sharding has the memory kind {sharding.memory_kind}, which formats before {NAMED_SHARDINGS} "
                "cannot store. Export it without one, or convert it for a later reader"
            )
        self.note("named shardings written as XLA's")
        proto = sharding.hlo_sharding_proto
        return HloSharding(_proto(sharding, rank) if proto is None else proto)

    def _as_named(self, sharding: Sharding, rank: int) -> Sharding:
        """Return a sharding of an array with `rank` dimensions in named form.

        Formats before 9 also store it in XLA's form, for older readers.
        """
        if sharding is None:
            return None
        if isinstance(sharding, HloSharding):
            assert self.mesh is not None
            spec = spec_on(_sizes(self.mesh), tiles_of(sharding.proto, ""))
            assert spec is not None  # checked in `_mesh_for_named`
            self.note("XLA's shardings written as named ones")
            sharding = NamedSharding(self.mesh, PartitionSpec(spec))
        device = sharding.mesh.abstract_device
        if device is not None and self.number < DEVICE_PLATFORMS:
            # The field that the format lacks only names the device that the mesh was made for.
            known = device._replace(platform=None) if self.number >= ABSTRACT_DEVICES else None
            sharding = sharding._replace(mesh=sharding.mesh._replace(abstract_device=known))
        if self.number >= NO_XLA_SHARDINGS:
            return sharding._replace(hlo_sharding_proto=None)
        if sharding.hlo_sharding_proto is None:
            return sharding._replace(hlo_sharding_proto=_proto(sharding, rank))
        return sharding


def _proto(sharding: NamedSharding, rank: int) -> bytes:
    """Return a named sharding of an array with `rank` dimensions in XLA's form.

    Raises `ConversionRefused` if XLA cannot express it.
    """
    spec, sizes = sharding.spec, _sizes(sharding.mesh)
    if spec.reduced or spec.unreduced:
        raise ConversionRefused(
            f"the artifact has a reduced or unreduced sharding, which XLA's shardings cannot express: {spec}"
        )
    axes = [name for part in spec.partitions for name in ([part] if isinstance(part, str) else part or ())]
    is_possible = len(set(axes)) == len(axes) and sizes.keys() >= set(axes) and len(spec.partitions) <= rank
    if not is_possible or 0 in sizes.values():
        raise ConversionRefused(f"the sharding {sharding} is not a sharding of an array with {rank} dimensions")
    return proto_of(sizes, spec.partitions, rank)


def _sizes(mesh: AbstractMesh) -> dict[str, int]:
    return dict(zip(mesh.axis_names, mesh.axis_sizes, strict=False))

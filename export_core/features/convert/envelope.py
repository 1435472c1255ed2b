"""The envelope of an artifact, with its shardings, in the format that a reader writes. Needs no jax and no NumPy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from export_core.artifact.envelope import formats
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import AbstractMesh, ByteSpan, HloSharding, NamedSharding, PartitionSpec
from export_core.artifact.hlo_sharding import MOST_DEVICES, proto_of, spec_on, tiles_of
from export_core.base.phrases import plural
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens.adopted_mesh import meshes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from export_core.artifact import Artifact, Envelope
    from export_core.artifact.envelope.fields import AbstractMesh, Aval, Sharding
    from export_core.artifact.readers import Reader


_OLDEST_CONVENTION = 9


def rewrite_envelope(artifact: Artifact, reader: Reader, modules: Sequence[bytes]) -> tuple[bytes, tuple[str, ...]]:
    """Write an artifact in the format of a reader; return it with what was rewritten, in words.

    Args:
        artifact: what was read, with an envelope. It is not changed.
        reader: the release that is to take it.
        modules: the module of the function and those of its nested VJPs, by order.

    Raises:
        ConversionRefused: the reader's format has no field for something in it.
        ArtifactError: a sharding in it cannot be read, or it has fields that no known schema has.
    """
    envelope = artifact.envelope
    assert envelope is not None
    number = formats.format_of(reader.jax)
    if not number:
        raise ConversionRefused(f"no format is known that jax {reader.jax} reads")
    needs_mesh = number >= formats.NAMED_SHARDINGS and any(
        isinstance(sharding, HloSharding) for level in envelope.levels for sharding in level.shardings
    )
    target = _Target(number, formats.newest_convention(reader.jax), mesh_for_named(artifact) if needs_mesh else None)
    fitted: Envelope | None = None
    for level, code in reversed(list(zip(envelope.levels, modules, strict=True))):
        fitted = target.fitted(level)._replace(vjp=fitted, module_source=ByteSpan(code, 0, len(code)))
    assert fitted is not None
    return encode(fitted, formats.fields_of(number)), (_described(envelope, number), *target.rewrites)


def _described(envelope: Envelope, number: int) -> str:
    first, last = envelope.format_range
    was = f"{first}" if first == last else f"{first} to {last}"
    also = f", with {plural(envelope.vjp_order, 'derivative')}" if envelope.vjp is not None else ""
    return f"envelope of format {was} written in format {number}{also}"


@dataclass
class _Target:
    """The format to write; collects what was rewritten, each thing once."""

    number: int
    newest_convention: int
    mesh: AbstractMesh | None
    noted: dict[str, None] = field(default_factory=dict)

    @property
    def rewrites(self) -> tuple[str, ...]:
        return tuple(self.noted)

    def fitted(self, envelope: Envelope) -> Envelope:
        """An envelope without its VJP, whose fields are those of the format."""
        if self.number < formats.WIDE_NR_DEVICES and envelope.nr_devices >= 1 << 15:
            raise ConversionRefused(f"it is for {envelope.nr_devices} devices, and the reader's format counts 32,767")
        checks = tuple(check for check in envelope.disabled_checks if check.kind != "shape_assertions")
        if checks != envelope.disabled_checks and self.number >= formats.INDICES:
            self.noted["the disabled check shape_assertions left out, which only exporters use"] = None
        else:
            checks = envelope.disabled_checks
        return envelope._replace(
            serialization_version=formats.wire_version(self.number),
            calling_convention_version=self.convention(envelope.calling_convention_version),
            in_avals=self.avals(envelope.in_avals),
            out_avals=self.avals(envelope.out_avals),
            in_shardings=self.shardings(envelope.in_shardings, envelope.in_avals),
            out_shardings=self.shardings(envelope.out_shardings, envelope.out_avals),
            disabled_checks=checks,
        )

    def convention(self, version: int) -> int:
        if version < _OLDEST_CONVENTION:
            raise ConversionRefused(
                f"its calling convention is {version}: tokens and global constants are other arguments of `main` there "
                f"than since {_OLDEST_CONVENTION}"
            )
        if version == self.newest_convention + 1 == 10:
            # 10 only adds to the module whether Shardy partitions it, which older readers do not look for.
            self.noted["calling convention 10 called 9, which has the same arguments of `main`"] = None
            return 9
        if version > self.newest_convention:
            raise ConversionRefused(
                f"its calling convention is {version}, and the reader knows {self.newest_convention}"
            )
        return version

    def avals(self, avals: Sequence[Aval]) -> tuple[Aval, ...]:
        has_spaces = self.number >= formats.MEMORY_SPACES
        elsewhere = {aval.memory_space for aval in avals} - {None, "device"}
        if elsewhere and not has_spaces:
            raise ConversionRefused(
                f"an argument or result is in the memory space {elsewhere.pop()}, for which formats before "
                f"{formats.MEMORY_SPACES} have no field"
            )
        return tuple(
            aval._replace(memory_space=(aval.memory_space or "device") if has_spaces else None) for aval in avals
        )

    def shardings(self, shardings: Sequence[Sharding], avals: Sequence[Aval]) -> tuple[Sharding, ...]:
        pairs = list(zip(shardings, avals, strict=False))
        if self.number < formats.NAMED_SHARDINGS:
            fitted = [as_xla(sharding, len(aval.shape)) for sharding, aval in pairs]
        else:
            fitted = [as_named(sharding, len(aval.shape), self.mesh, self.number) for sharding, aval in pairs]
        for before, after in zip(shardings, fitted, strict=False):
            if type(before) is not type(after):
                named = isinstance(before, HloSharding)
                words = "XLA's shardings written as named ones" if named else "named shardings written as XLA's"
                self.noted[words] = None
        return tuple(fitted)


_ORDINARY = (None, "device")  # memory kinds that mean the memory of the device


def mesh_for_named(artifact: Artifact) -> AbstractMesh:
    """The mesh on which XLA's shardings of an artifact, which name none, become named ones.

    Raises:
        ConversionRefused: no mesh has axes for all of them.
    """
    envelope = artifact.envelope
    assert envelope is not None
    if envelope.nr_devices > MOST_DEVICES:
        raise ConversionRefused(f"expected an artifact for at most {MOST_DEVICES} devices, found {envelope.nr_devices}")
    protos = [
        sharding.proto for level in envelope.levels for sharding in level.shardings if isinstance(sharding, HloSharding)
    ]
    tiles = [tiles_of(proto, artifact.name) for proto in dict.fromkeys(protos)]
    for mesh in meshes_of(artifact, envelope):
        if all(spec_on(mesh, tiling) is not None for tiling in tiles):
            return AbstractMesh(tuple(mesh.values()), tuple(mesh), ("Auto",) * len(mesh))
    raise ConversionRefused(
        f"its shardings, over {envelope.nr_devices} devices, are in XLA's form, and no mesh has axes for all of them"
    )


def as_named(sharding: Sharding, rank: int, mesh: AbstractMesh | None, number: int) -> Sharding:
    """A sharding of an array with `rank` dimensions, in a format that has named ones.

    Formats before 9 have XLA's beside it, for older readers. `mesh` is that of shardings that were XLA's alone.

    Raises:
        ConversionRefused: the format has no place for a part of it.
    """
    if sharding is None:
        return None
    if isinstance(sharding, HloSharding):
        assert mesh is not None
        spec = spec_on(_sizes(mesh), tiles_of(sharding.proto, ""))
        assert spec is not None  # `mesh_for_named` has tried it
        sharding = NamedSharding(mesh, PartitionSpec(spec))
    sharding = sharding._replace(mesh=_fitting_mesh(sharding.mesh, number))
    if number >= formats.NO_XLA_SHARDINGS:
        return sharding._replace(hlo_sharding_proto=None)
    proto = sharding.hlo_sharding_proto
    return sharding._replace(hlo_sharding_proto=_proto(sharding, rank) if proto is None else proto)


def as_xla(sharding: Sharding, rank: int) -> Sharding:
    """A sharding in a format that has only XLA's.

    Raises:
        ConversionRefused: XLA has no such sharding, or it is in another memory, which these formats do not say.
    """
    if not isinstance(sharding, NamedSharding):
        return sharding
    if sharding.memory_kind not in _ORDINARY:
        raise ConversionRefused(
            f"a sharding is in the memory {sharding.memory_kind}, for which formats before {formats.NAMED_SHARDINGS} "
            "have no field"
        )
    proto = sharding.hlo_sharding_proto
    return HloSharding(_proto(sharding, rank) if proto is None else proto)


def _proto(sharding: NamedSharding, rank: int) -> bytes:
    spec, sizes = sharding.spec, _sizes(sharding.mesh)
    if spec.reduced or spec.unreduced:
        raise ConversionRefused(f"XLA's form has no sharding that is reduced or unreduced: {spec}")
    axes = [name for part in spec.partitions for name in ([part] if isinstance(part, str) else part or ())]
    if (
        len(set(axes)) < len(axes)
        or not sizes.keys() >= set(axes)
        or len(spec.partitions) > rank
        or 0 in sizes.values()
    ):
        raise ConversionRefused(f"the sharding {sharding} is no sharding of an array with {rank} dimensions")
    return proto_of(sizes, spec.partitions, rank)


def _fitting_mesh(mesh: AbstractMesh, number: int) -> AbstractMesh:
    """The mesh without what its format has no field for: it only says for which device the mesh was made."""
    device = mesh.abstract_device
    if device is None or number >= formats.DEVICE_PLATFORMS:
        return mesh
    return mesh._replace(abstract_device=device._replace(platform=None) if number >= formats.ABSTRACT_DEVICES else None)


def _sizes(mesh: AbstractMesh) -> dict[str, int]:
    return dict(zip(mesh.axis_names, mesh.axis_sizes, strict=False))

"""Shardings of arguments and results in the form that a reader's format has: named ones, or XLA's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from export_core.artifact.envelope.fields import AbstractMesh, HloSharding, NamedSharding, PartitionSpec
from export_core.artifact.hlo_sharding import MOST_DEVICES, proto_of, spec_on, tiles_of
from export_core.features.convert import formats
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens.adopted_mesh import meshes_of

if TYPE_CHECKING:
    from export_core.artifact import Artifact, Envelope
    from export_core.artifact.envelope.fields import Sharding

_ORDINARY = (None, "device")  # memory kinds that mean the memory of the device


def levels_of(envelope: Envelope) -> Iterator[Envelope]:
    """An envelope and those of its nested VJPs, by order."""
    level: Envelope | None = envelope
    while level is not None:
        yield level
        level = level.vjp


def shardings_of(envelope: Envelope) -> tuple[Sharding, ...]:
    """The shardings of all flat arguments and results, without those of its VJPs."""
    return (*envelope.in_shardings, *envelope.out_shardings)


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
        sharding.proto
        for level in levels_of(envelope)
        for sharding in shardings_of(level)
        if isinstance(sharding, HloSharding)
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

"""XLA's OpSharding protobuf, in which artifacts until format 8 say how arguments and results are sharded."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from export_core.artifact.errors import DAMAGED, ArtifactError
from export_core.artifact.protobuf import VARINT, Wire

Spec = tuple[str | tuple[str, ...] | None, ...]  # the mesh axes that split each dimension, as in a PartitionSpec
MOST_DEVICES = 4096
"""The most devices that a sharding may name, so that a hostile file cannot keep its reader busy."""

_MOST_DIMENSIONS = 64

# Numbers of the fields, and kinds of shardings. Source: xla/xla_data.proto, OpSharding.
_TYPE, _TILES, _DEVICES, _LAST_IS_REPLICATED, _LAST_TILES, _IOTA, _PERMUTATION = 1, 3, 4, 6, 8, 9, 10
_REPLICATED, _MAXIMAL, _TUPLE, _OTHER, _MANUAL = range(5)


class Tiles(NamedTuple):
    """A tiled sharding of an array: how it is split into parts, and which devices hold each part."""

    parts: tuple[int, ...]  # The number of parts along each dimension.
    replicas: int  # The number of devices that hold each part.
    devices: tuple[int, ...]  # The numbers of the devices: all replicas of the first part, then of the next.


def tiles_of(proto: bytes, name: str) -> Tiles | None:
    """Return the tiles of a sharding from the bytes of XLA's OpSharding, or None if it replicates the array.

    `name` is the name of the file in messages. Raises `ArtifactError` if the bytes are not a sharding of an array.
    """
    numbers = _numbers(proto, name)
    kind = numbers.get(_TYPE, [_REPLICATED])[-1]
    if kind == _REPLICATED:
        return None
    dims = numbers.get(_TILES, [])
    count = math.prod(dims)
    if kind != _OTHER or not 0 < count <= MOST_DEVICES or len(dims) > _MOST_DIMENSIONS:
        raise ArtifactError("a tiled sharding of an array", f"type {kind}, tiles {str(dims)[:200]}", name=name)
    # Of the kinds of trailing dimensions, all mean replicas to a caller: a manual one is none that jax.export writes.
    trailing = len(numbers.get(_LAST_TILES, [])) or int(any(numbers.get(_LAST_IS_REPLICATED, [])))
    devices = numbers.get(_DEVICES) or _transposed(numbers.get(_IOTA, [count]), numbers.get(_PERMUTATION, [0]))
    if sorted(devices) != list(range(count)) or trailing > len(dims):
        raise ArtifactError(f"each of {count} devices once", f"{str(devices)[:200]}", name=name)
    parts = tuple(dims[: len(dims) - trailing])
    replicas = count // math.prod(parts)
    return Tiles(parts, replicas, _in_groups(devices, replicas))


def spec_on(mesh: Mapping[str, int], tiles: Tiles | None) -> Spec | None:
    """Return a sharding as a partition spec over a mesh, or None if the mesh cannot express it.

    `mesh` has the sizes of the axes by name, in order. `tiles` is None for a replicated array, as `tiles_of` returns
    it.
    """
    if tiles is None:
        return ()
    sizes = list(mesh.values())
    if math.prod(sizes) != len(tiles.devices):
        return None
    strides = {name: math.prod(sizes[place + 1 :]) for place, name in enumerate(mesh) if mesh[name] > 1}
    spec: list[tuple[str, ...]] = []
    step = len(tiles.devices)
    for parts in tiles.parts:
        step //= parts
        axes: list[str] = []
        inner = 1  # the parts that the axes so far, from the last, make
        while inner < parts:
            stride = tiles.devices[inner * step] - tiles.devices[0]
            axis = next((name for name in strides if strides[name] == stride), None)
            if axis is None or parts % (inner * mesh[axis]):
                return None
            del strides[axis]
            axes.insert(0, axis)
            inner *= mesh[axis]
        spec.append(tuple(axes))
    # The device of each part, and of each replica, of an array with this sharding.
    order, replicas = _order(mesh, spec)
    if _in_groups(_transposed(sizes, order), replicas) != tiles.devices:
        return None
    return tuple(axes[0] if len(axes) == 1 else axes or None for axes in spec)


def _in_groups(devices: Sequence[int], replicas: int) -> tuple[int, ...]:
    """Return the devices, sorted within each group of `replicas` devices, where their order has no meaning."""
    groups = (sorted(devices[start : start + replicas]) for start in range(0, len(devices), replicas))
    return tuple(itertools.chain.from_iterable(groups))


def _order(mesh: Mapping[str, int], spec: Sequence[tuple[str, ...]]) -> tuple[list[int], int]:
    """Return the indexes of a mesh's axes, those that `spec` uses first, and the number of replicas of each part.

    The number of replicas is the product of the sizes of the axes that `spec` does not use.
    """
    split = [axis for axes in spec for axis in axes]
    others = [axis for axis in mesh if axis not in split]
    places = list(mesh)
    return [places.index(axis) for axis in (*split, *others)], math.prod(mesh[axis] for axis in others)


def _transposed(shape: Sequence[int], permutation: Sequence[int]) -> list[int]:
    """Return ``arange(prod(shape)).reshape(shape).transpose(permutation).ravel()`` as a list.

    The list is empty if `permutation` is not a permutation of the dimensions, or the shape has too many elements.
    """
    is_permutation = len(shape) <= _MOST_DIMENSIONS and sorted(permutation) == list(range(len(shape)))
    if not is_permutation or not 0 < math.prod(shape) <= MOST_DEVICES:
        return []
    strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    ranges = [range(0, shape[place] * strides[place], strides[place]) for place in permutation]
    return [sum(offsets) for offsets in itertools.product(*ranges)]


def _numbers(proto: bytes, name: str) -> dict[int, list[int]]:
    """Return the numbers in the bytes of a sharding's protobuf, by field; skip fields without numbers.

    `name` is the name of the file in messages.
    """
    wire = Wire(proto, name, DAMAGED)
    numbers: dict[int, list[int]] = {}
    try:
        for field in wire.fields(0, len(proto), "a sharding"):
            if field.wire == VARINT or field.number in (_TILES, _DEVICES, _LAST_TILES, _IOTA, _PERMUTATION):
                numbers.setdefault(field.number, []).extend(wire.packed(field, "a sharding"))
    except ArtifactError:  # its byte counts from the start of the sharding
        raise ArtifactError("a sharding as XLA's protobuf", f"the bytes {proto[:64].hex()}", name=name) from None
    return numbers


def proto_of(mesh: Mapping[str, int], spec: Spec, rank: int) -> bytes:
    """Return the OpSharding protobuf of a partition spec over a mesh, in the bytes that XLA writes.

    `tiles_of` and `spec_on` do the reverse.

    Args:
        mesh: the sizes of the axes by name, in order.
        spec: the axes that split each of the first dimensions; later dimensions are not split.
        rank: the number of dimensions of the array.
    """
    axes = [() if part is None else (part,) if isinstance(part, str) else part for part in spec]
    parts = [math.prod(mesh[axis] for axis in names) for names in axes] + [1] * (rank - len(axes))
    if math.prod(parts) == 1:
        return b""  # replicated, the default of a protobuf's first field
    order, replicas = _order(mesh, axes)
    sizes = list(mesh.values())
    if order == sorted(order):
        sizes, order = [math.prod(sizes)], [0]

    def packed(field: int, numbers: Sequence[int]) -> bytes:
        content = b"".join(map(_varint, numbers))
        return _varint(field << 3 | 2) + _varint(len(content)) + content

    proto = _varint(_TYPE << 3) + _varint(_OTHER) + packed(_TILES, [*parts, replicas] if replicas > 1 else parts)
    proto += _varint(_LAST_IS_REPLICATED << 3) + _varint(1) if replicas > 1 else b""
    return proto + packed(_IOTA, sizes) + packed(_PERMUTATION, order)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])

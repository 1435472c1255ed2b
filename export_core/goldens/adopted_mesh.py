"""The mesh that an artifact without its source was exported for, and how its arguments are sharded over it."""

import ast
import math
from collections.abc import Iterator, Mapping, Sequence

from export_core.artifact import Artifact, Envelope, HloSharding, NamedSharding
from export_core.artifact.hlo_sharding import MOST_DEVICES, Spec, spec_on, tiles_of
from export_core.base.leaf_names import numbered, path_at
from export_core.base.text import few, plural
from export_core.goldens.arrays import GoldenError
from export_core.goldens.made_inputs import parse_sizes

Mesh = dict[str, int]  # Sizes of the axes by name, in order.

_ADVICE = "Say how it was exported: --mesh data=2,model=4, the axes in order."


def mesh_for(artifact: Artifact, given: Mapping[str, int]) -> Mesh:
    """Return the mesh that a caller of the artifact needs: the given one, or else the one that the artifact shows.

    The surest evidence is the named shardings of arguments and results, since jax 0.9.0. Next is the mesh that Shardy
    has in the StableHLO module. Last are XLA's shardings, which have no names. For them the devices are factored into
    axes of prime sizes: a sharding over larger axes is also a sharding over several such axes.

    Raises:
        GoldenError: There is no mesh on which each argument can be placed as the artifact wants it.
    """
    envelope = artifact.envelope
    assert envelope is not None
    devices = envelope.nr_devices
    if devices <= 1 and not given:
        return {}
    if given and math.prod(given.values()) != devices:
        raise GoldenError(
            f"{artifact.name}: --mesh {_as_option(given)}: expected a mesh of {devices} devices, for which the "
            f"artifact was exported, found one of {math.prod(given.values())}."
        )
    if devices > MOST_DEVICES:
        raise GoldenError(f"{artifact.name}: expected an artifact for at most {MOST_DEVICES} devices, found {devices}.")
    problems = []
    for mesh in [dict(given)] if given else meshes_of(artifact, envelope):
        problems.append(_problem(artifact, envelope, mesh))
        if not problems[-1]:
            return mesh
    raise GoldenError(f"{artifact.name}: {problems[0]} {_ADVICE}")


def parse_mesh(text: str) -> Mesh:
    """Return the mesh that a text such as ``data=2,model=4`` describes. Raises `GoldenError` for any other text."""
    return parse_sizes(text, f"--mesh {text}: expected axes and their sizes, such as data=2,model=4.")


def parse_specs(text: str) -> tuple[Spec | None, ...]:
    """Return a spec for each argument from a text such as ``P('data', None), None``, in which None stands for no spec.

    Raises `GoldenError` for any other text.
    """
    try:
        match ast.parse(f"({text},)", mode="eval").body:
            case ast.Tuple(elts=nodes):
                return tuple(map(_parsed_spec, nodes))
    except (SyntaxError, ValueError):
        pass
    raise GoldenError(
        f"--in-specs {text}: expected a PartitionSpec or None for each argument, such as "
        "\"P('data', None), None, P(('data', 'model'))\"."
    )


def _parsed_spec(node: ast.expr) -> Spec | None:
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Call(func=ast.Name(id="P" | "PartitionSpec"), args=arguments, keywords=[]):
            spec: Spec = tuple(map(ast.literal_eval, arguments))
            grouped = [axes if isinstance(axes, tuple) else ("" if axes is None else axes,) for axes in spec]
            if all(isinstance(axis, str) for axes in grouped for axis in axes):
                return spec
    raise ValueError(ast.dump(node))


def specs_for(artifact: Artifact, mesh: Mapping[str, int], given: Sequence[Spec | None]) -> tuple[str | None, ...]:
    """Return the given specs in the form of a manifest, after checking them against the artifact.

    Raises `GoldenError` if their number is not that of the arguments, if the mesh lacks one of their axes, or if the
    artifact has a different spec.
    """
    envelope = artifact.envelope
    assert envelope is not None
    if given and len(given) != len(envelope.in_avals):
        raise GoldenError(
            f"{artifact.name}: --in-specs: expected a spec for each of the {len(envelope.in_avals)} flat arguments, "
            f"found {len(given)}."
        )
    for number, (spec, sharding) in enumerate(zip(given, envelope.in_shardings, strict=False)):
        if spec is None:
            continue
        argument = f"argument {numbered(number, path_at(envelope.argument_paths, number))}"
        if not {axis for axes in _whole(spec) for axis in axes} <= mesh.keys():
            raise GoldenError(
                f"{artifact.name}: --in-specs: {argument}: expected only axes of the mesh {_as_option(mesh)}, "
                f"found {spec}."
            )
        own = _own_spec(sharding, mesh, artifact.name)
        if own is not None and _whole(own) != _whole(spec):
            raise GoldenError(
                f"{artifact.name}: --in-specs: {argument}: expected {_text(own)}, as the artifact has it, found "
                f"{_text(spec)}."
            )
    return tuple(None if spec is None else _text(spec) for spec in given)


def meshes_of(artifact: Artifact, envelope: Envelope) -> Iterator[Mesh]:
    """Yield the meshes for which an artifact may have been exported, the surest first."""
    if named := _named_meshes(envelope):
        # Arguments may be on several. What is on the others can also be on the one with the most axes.
        sizes, names = max(named, key=lambda mesh: len(mesh[1]))
        yield dict(zip(names, sizes, strict=False))
        return
    for mesh in artifact.modules[0].meshes:
        if math.prod(mesh.values()) == envelope.nr_devices:
            yield mesh
    factors, rest = [], envelope.nr_devices
    while rest > 1:
        factors.append(next(divisor for divisor in range(2, rest + 1) if rest % divisor == 0))
        rest //= factors[-1]
    for sizes in _orders(factors):
        yield {f"axis{number}": size for number, size in enumerate(sizes)}


def _named_meshes(envelope: Envelope) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Return the meshes that the shardings of arguments and results name, each as (sizes, names) of its axes."""
    shardings = (*envelope.in_shardings, *envelope.out_shardings)
    return [sharding.mesh[:2] for sharding in shardings if isinstance(sharding, NamedSharding)]


def _problem(artifact: Artifact, envelope: Envelope, mesh: Mesh) -> str:
    """Return why an artifact cannot be called on a mesh; "" if it can."""
    if math.prod(mesh.values()) != envelope.nr_devices:
        return f"it was exported for {plural(envelope.nr_devices, 'device')}, and names the mesh {_as_option(mesh)}."
    named = {*_named_meshes(envelope)}
    if named and (tuple(mesh.values()), tuple(mesh)) not in named:
        meshes = " or ".join(_as_option(dict(zip(names, sizes, strict=False))) for sizes, names in sorted(named))
        return f"expected the mesh {meshes}, which its shardings name, found {_as_option(mesh)}."
    sides = (
        ("argument", envelope.in_shardings, envelope.argument_paths),
        ("result", envelope.out_shardings, envelope.result_paths),
    )
    for what, shardings, paths in sides:
        for number, sharding in enumerate(shardings):
            if isinstance(sharding, HloSharding) and _own_spec(sharding, mesh, artifact.name) is None:
                tiles = tiles_of(sharding.proto, artifact.name)
                assert tiles is not None  # what is replicated fits each mesh
                return (
                    f"{what} {numbered(number, path_at(paths, number))} cannot be placed on a mesh "
                    f"{_as_option(mesh)}: it is in {' × '.join(map(str, tiles.parts))} parts, on the devices "
                    f"{few([str(device) for device in tiles.devices], most=16)}."
                )
    return ""


def _own_spec(sharding: object, mesh: Mapping[str, int], name: str) -> Spec | None:
    """Return the spec of an artifact's own sharding on this mesh; None if it has none, or none that fits this mesh."""
    if isinstance(sharding, HloSharding):
        return spec_on(mesh, tiles_of(sharding.proto, name))
    return sharding.spec.partitions if isinstance(sharding, NamedSharding) else None


def _whole(spec: Spec) -> list[tuple[str, ...]]:
    """Return a spec in a normal form, equal for specs that mean the same, such as P('x') and P(('x',), None)."""
    axes = [() if axes is None else (axes,) if isinstance(axes, str) else tuple(axes) for axes in spec]
    while axes and not axes[-1]:
        axes.pop()
    return axes


def _text(spec: Spec) -> str:
    return f"PartitionSpec({', '.join(map(repr, spec))})"


def _as_option(mesh: Mapping[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in mesh.items())


def _orders(factors: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield each different order of these numbers once.

    `itertools.permutations` yields equal orders several times: 12! for the factors of 4096.
    """
    if not factors:
        yield ()
    for first in sorted(set(factors)):
        rest = factors.copy()
        rest.remove(first)
        yield from ((first, *order) for order in _orders(rest))

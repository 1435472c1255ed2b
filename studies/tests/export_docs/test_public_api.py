"""Every public name of jax.export, and every field and method of `Exported`, with its counterpart in this tool."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import textwrap
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from export_core.artifact import read_bytes
from export_core.export.golden_checks import ExtraCall, add_checks

SHOWN: dict[str, list[Callable[..., Any]]] = {}


def shows(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that notes that a test shows these names of jax.export.

    A name with a dot is a member of a class.
    """

    def note(test: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            SHOWN.setdefault(name, []).append(test)
        return test

    return note


def _public() -> set[str]:
    fields = [field.name for field in dataclasses.fields(export.Exported)]
    members = {
        f"{kind.__name__}.{name}" for kind in (export.Exported, export.DisabledSafetyCheck) for name in vars(kind)
    }
    return {*export.__all__, *members, *(f"Exported.{name}" for name in fields)}


NAMES = sorted(name for name in _public() if not name.rpartition(".")[2].startswith("_"))


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_a_test(name):
    assert name in SHOWN, f"jax {jax.__version__} has jax.export.{name}, and no test here shows it"


def test_every_test_uses_the_public_names_that_it_is_listed_for():
    for name, tests in SHOWN.items():
        for test in tests:
            nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(test))))
            used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
            assert name.rpartition(".")[2] in used, (name, test.__name__)


def wave(x, y):
    return {"sum": jnp.sin(x) + y["scale"]}


@pytest.fixture(scope="module")
def exported():
    return export.export(jax.jit(wave))(np.ones(3, np.float32), {"scale": np.float32(2)})


@pytest.fixture(scope="module")
def artifact(exported):
    return read_bytes(bytes(exported.serialize()))


@shows(
    "export", "Exported", "default_export_platform", "Exported.fun_name", "Exported.platforms", "Exported.nr_devices"
)
def test_export_is_for_the_default_platform(exported, artifact):
    assert isinstance(export.export(jax.jit(jnp.sin))(1.0), export.Exported)
    envelope = artifact.envelope
    assert envelope.fun_name == exported.fun_name == "wave"
    assert envelope.platforms == exported.platforms == (export.default_export_platform(),)
    assert envelope.nr_devices == exported.nr_devices == 1


@shows("Exported.in_avals", "Exported.out_avals", "Exported.in_tree", "Exported.out_tree")
def test_avals_and_trees_are_read_as_jax_exported_them(exported, artifact):
    envelope = artifact.envelope
    for ours, theirs in ((envelope.in_avals, exported.in_avals), (envelope.out_avals, exported.out_avals)):
        assert [(each.dtype, each.shape) for each in ours] == [(each.dtype.name, each.shape) for each in theirs]
    assert [str(envelope.in_tree), str(envelope.out_tree)] == [str(exported.in_tree), str(exported.out_tree)]


@shows(
    "Exported.in_shardings_hlo", "Exported.out_shardings_hlo", "Exported.in_shardings_jax", "Exported.out_shardings_jax"
)
def test_shardings_are_none_unless_given(exported, artifact):
    mesh = Mesh(np.array(jax.devices()[:1]), ("a",))
    envelope = artifact.envelope
    assert exported.in_shardings_hlo == (None, None) == envelope.in_shardings
    assert exported.out_shardings_hlo == (None,) == envelope.out_shardings
    assert exported.in_shardings_jax(mesh) == (None, None)
    assert exported.out_shardings_jax(mesh) == (None,)


@shows("Exported.in_shardings_jax")
def test_in_shardings_jax_returns_the_sharding_of_an_argument():
    mesh = Mesh(np.array(jax.devices()[:1]), ("a",))
    sharding = NamedSharding(mesh, PartitionSpec("a"))
    made = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((4,), np.float32, sharding=sharding))
    assert made.in_shardings_jax(mesh)[0].is_equivalent_to(sharding, 1)
    (read_sharding,) = read_bytes(bytes(made.serialize())).envelope.in_shardings
    assert str(read_sharding) == "NamedSharding(Mesh(a=1), PartitionSpec('a'))"


@shows("Exported.mlir_module", "Exported.mlir_module_serialized", "Exported.module_kept_var_idx")
def test_the_module_that_is_read_has_the_exported_bytes(artifact, exported):
    assert artifact.module.serialized() == bytes(exported.mlir_module_serialized)
    assert "func.func public @main" in exported.mlir_module()
    assert artifact.envelope.module_kept_var_idx == tuple(exported.module_kept_var_idx) == (0, 1)


@shows("Exported.ordered_effects", "Exported.unordered_effects", "Exported.uses_global_constants")
def test_a_pure_function_has_no_effects_or_global_constants(exported, artifact):
    envelope = artifact.envelope
    assert envelope.ordered_effects == exported.ordered_effects == ()
    assert envelope.unordered_effects == exported.unordered_effects == ()
    assert envelope.uses_global_constants is exported.uses_global_constants is False


@shows(
    "Exported.calling_convention_version",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
)
def test_the_calling_convention_is_supported(exported, artifact):
    lowest, highest = (
        export.minimum_supported_calling_convention_version,
        export.maximum_supported_calling_convention_version,
    )
    assert lowest <= exported.calling_convention_version <= highest
    assert artifact.envelope.calling_convention_version == exported.calling_convention_version


@shows("deserialize", "Exported.serialize", "Exported.call")
def test_a_deserialized_function_can_be_called(exported):
    rehydrated = export.deserialize(exported.serialize())
    result = rehydrated.call(np.ones(3, np.float32), {"scale": np.float32(2)})
    np.testing.assert_allclose(result["sum"], np.sin(np.ones(3)) + 2, rtol=1e-6)


@shows("Exported.has_vjp", "Exported.vjp")
def test_a_serialized_derivative_can_be_called(export_marked):
    produced = export_marked(jax.jit(jnp.sin), 0.0, vjp_order=1)
    rehydrated = export.deserialize(bytearray(produced.artifact.data))
    assert rehydrated.has_vjp()
    assert [float(cotangent) for cotangent in rehydrated.vjp().call(0.0, 3.0)] == [3.0]
    assert not rehydrated.vjp().has_vjp()


@shows(
    "DisabledSafetyCheck",
    "DisabledSafetyCheck.platform",
    "DisabledSafetyCheck.custom_call",
    "DisabledSafetyCheck.is_custom_call",
    "Exported.disabled_safety_checks",
)
def test_disabled_safety_checks_are_stored_and_read(export_marked):
    platform, call = export.DisabledSafetyCheck.platform(), export.DisabledSafetyCheck.custom_call("a_target")
    assert (platform.is_custom_call(), call.is_custom_call()) == (None, "a_target")
    produced = export_marked(jax.jit(jnp.sin), 1.0, disabled_checks={"platform": "to see", "a_target": "to see"})
    assert produced.exported.disabled_safety_checks == (platform, call)
    assert [str(check) for check in produced.artifact.envelope.disabled_checks] == ["platform", "custom_call(a_target)"]


@shows("register_namedtuple_serialization")
def test_a_registered_namedtuple_is_serialized_by_name(export_marked):
    Point = namedtuple("Point", ["x", "y"])
    export.register_namedtuple_serialization(Point, serialized_name="export_docs.Point")
    produced = export_marked(jax.jit(lambda p: Point(p.y, p.x)), Point(np.float32(1), np.int32(2)))
    tree = produced.artifact.envelope.out_tree
    assert (tree.kind, tree.custom_name) == ("custom", "export_docs.Point")
    assert export.deserialize(bytearray(produced.artifact.data)).call(Point(np.float32(1), np.int32(2))) == Point(2, 1)


class Scaled:
    """A custom node of a pytree, which has an array, and a unit that is not an array."""

    def __init__(self, value, unit):
        self.value, self.unit = value, unit


@shows("register_pytree_node_serialization")
def test_a_registered_node_is_serialized_with_auxdata(export_marked):
    jax.tree_util.register_pytree_node(Scaled, lambda s: ((s.value,), s.unit), lambda unit, kids: Scaled(*kids, unit))
    export.register_pytree_node_serialization(
        Scaled,
        serialized_name="export_docs.Scaled",
        serialize_auxdata=lambda unit: json.dumps(unit).encode(),
        deserialize_auxdata=json.loads,
    )
    produced = export_marked(jax.jit(lambda s: Scaled(s.value * 2, s.unit)), Scaled(np.float32(3), "metre"))
    tree = produced.artifact.envelope.out_tree
    assert (tree.kind, tree.custom_name, tree.custom_auxdata) == ("custom", "export_docs.Scaled", b'"metre"')
    result = export.deserialize(bytearray(produced.artifact.data)).call(Scaled(np.float32(3), "metre"))
    assert (float(result.value), result.unit) == (6.0, "metre")


@shows("symbolic_shape", "is_symbolic_dim")
def test_a_symbolic_dimension_may_be_an_expression(export_marked):
    rows, columns, fixed = export.symbolic_shape("b, 2*h, 4")
    assert [export.is_symbolic_dim(size) for size in (rows, columns, fixed)] == [True, True, False]
    made = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((rows, columns, fixed), np.float32))
    aval = read_bytes(bytes(made.serialize())).envelope.in_avals[0]
    assert aval.shape == ("b", "2*h", 4)
    produced = export_marked(jax.jit(jnp.sin), np.ones((1, 2, 4), np.float32), symbolic_shapes="b, 2*h, 4")
    assert produced.artifact.envelope.in_avals[0].shape == aval.shape


@shows("symbolic_args_specs")
def test_symbolic_shapes_can_be_given_for_each_argument(export_marked):
    x, y = np.ones((2, 3), np.float32), {"scale": np.ones(3, np.float32)}
    specs = export.symbolic_args_specs((x, y), ("b, n", {"scale": "n"}))
    assert [str(leaf.shape) for leaf in jax.tree_util.tree_leaves(specs)] == ["(b, n)", "(n,)"]
    envelope = export_marked(jax.jit(wave), x, y, symbolic_shapes=("b, n", {"scale": "n"})).artifact.envelope
    assert [str(aval) for aval in (*envelope.in_avals, *envelope.out_avals)] == [
        "float32[b,n]",
        "float32[n]",
        "float32[b,n]",
    ]


@shows("SymbolicScope")
def test_tracing_relies_on_constraints_of_its_scope(export_marked):
    scope = export.SymbolicScope(["b >= 2"])
    (size,) = export.symbolic_shape("b", scope=scope)
    (stranger,) = export.symbolic_shape("b")
    assert size >= 2
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        size + stranger
    produced = export_marked(jax.jit(jnp.sin), np.ones(3, np.float32), symbolic_shapes="b", constraints=("b >= 2",))
    refused = ExtraCall((np.ones(1, np.float32),), {}, "do not match the symbolic shape constraint b >= 2")
    assert [check.refused for check in add_checks(produced, [refused]).manifest.checks] == [refused.refused]


if hasattr(export, "symbolic_dim_bounds"):  # since 0.12

    @shows("symbolic_dim_bounds")
    def test_symbolic_dim_bounds_follow_from_constraints():
        (size,) = export.symbolic_shape("b", constraints=["b >= 2", "b <= 10"])
        assert export.symbolic_dim_bounds(2 * size) == (4, 20)

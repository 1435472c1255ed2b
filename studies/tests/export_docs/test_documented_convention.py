"""The statements of JAX's export document on the calling convention: versions, signature of main, assertions."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax._src import config, core, effects
from jax._src.interpreters import mlir

from export_core.artifact import read_bytes
from export_core.export.errors import ExportError
from export_core.export.golden_checks import ExtraCall, add_checks


class OrderedEffect(effects.Effect):
    """An effect that can be serialized: its type has no arguments, and all of its instances are equal."""

    def __eq__(self, other):
        return isinstance(other, OrderedEffect)

    def __hash__(self):
        return hash(OrderedEffect)


for kinds in (effects.lowerable_effects, effects.ordered_effects):
    kinds.add_type(OrderedEffect)

in_order = core.Primitive("in_order")
in_order.def_effectful_abstract_eval(lambda x: (x, {OrderedEffect()}))


def _lowered_in_order(ctx, operand):
    ctx.set_tokens_out(mlir.TokenSet({OrderedEffect(): ctx.tokens_in.get(OrderedEffect())}))
    return [operand]


mlir.register_lowering(in_order, _lowered_in_order)

# Section "Calling convention versions", "Module serialization versions" in June 2024.


def test_an_export_uses_the_latest_convention(export_marked):
    exp: export.Exported = export.export(jnp.cos)(1.0)
    # 9, the only one, in both documents; 10 is the latest since 0.7.0.
    assert exp.calling_convention_version == export.maximum_supported_calling_convention_version >= 9
    artifact = export_marked(jnp.cos, 1.0).artifact
    assert artifact.envelope.calling_convention_version == exp.calling_convention_version
    assert artifact.module.main.inputs == ("tensor<f32>",)


def test_every_supported_convention_can_be_chosen(export_marked):
    # (9, 9) in both documents; (9, 10) since 0.7.0.
    first, last = (
        export.minimum_supported_calling_convention_version,
        export.maximum_supported_calling_convention_version,
    )
    assert first <= 9 <= last
    for version in range(first, last + 1):
        # config.jax_serialization_version before 0.4.30.
        with config.jax_export_calling_convention_version(version):
            assert export.export(jnp.cos)(1.0).calling_convention_version == version
        asked = export_marked(jnp.cos, 1.0, calling_convention_version=version)
        assert asked.artifact.envelope.calling_convention_version == version


@pytest.mark.parametrize("version", range(1, 9))
def test_an_unsupported_convention_is_refused(export_marked, version):
    with pytest.raises(ExportError, match=rf"version {version} is outside the range of supported versions"):
        export_marked(jnp.cos, 1.0, calling_convention_version=version)


# Section "Module calling convention": f32[w, 2 * h], several platforms, one ordered effect.


@pytest.fixture(scope="module")
def documented(export_marked):
    function = jax.jit(lambda arg: jnp.cos(in_order.bind(arg)))
    return export_marked(function, np.ones((3, 4), np.float32), platforms=("cpu", "tpu"), symbolic_shapes="w, 2*h")


def _signature(function):
    return [(kind, attributes) for kind, attributes in zip(function.inputs, function.arg_attrs, strict=True)]


PLATFORM = ("tensor<i32>", {"jax.global_constant": "_platform_index"})
TOKEN = ("!stablehlo.token", {"jax.token": True})
ARRAY = ("tensor<?x?xf32>", {})


def test_main_takes_the_platform_index_then_tokens_then_arrays(documented):
    main = documented.artifact.module.main
    assert main.visibility == "public"
    assert _signature(main) == [PLATFORM, TOKEN, ARRAY]
    assert main.outputs == ("!stablehlo.token", "tensor<?x?xf32>")


def test_the_inner_function_takes_dimension_variables_by_name(documented):
    (inner,) = [each for each in documented.artifact.module.functions if each.name == "_wrapped_jax_export_main"]
    dimensions = [("tensor<i32>", {"jax.global_constant": name}) for name in ("h", "w")]
    assert inner.visibility == "private"
    assert _signature(inner) == [PLATFORM, *dimensions, TOKEN, ARRAY]
    assert inner.outputs[0] == "!stablehlo.token"


def test_main_computes_dimensions_and_calls_the_inner_function(documented):
    names = documented.artifact.module.op_names
    assert "vhlo.get_dimension_size_v1" in names
    (call,) = re.findall(r"call @_wrapped_jax_export_main\(.*", documented.files["module.mlir"].decode())
    assert call.partition(" : ")[2].startswith(
        "(tensor<i32>, tensor<i32>, tensor<i32>, !stablehlo.token, tensor<?x?xf32>) -> (!stablehlo.token"
    )


def test_x64_makes_index_and_dimensions_i64():
    with config.enable_x64(True):
        function = jax.jit(lambda x: x * x.shape[0])
        shape = jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32)
        artifact = read_bytes(bytes(export.export(function, platforms=["cpu", "tpu"])(shape).serialize()))
    (inner,) = [each for each in artifact.module.functions if each.name == "_wrapped_jax_export_main"]
    assert artifact.module.main.inputs == ("tensor<i64>", "tensor<?xf32>")
    assert inner.inputs == ("tensor<i64>", "tensor<i64>", "tensor<?xf32>")


def test_the_platform_index_follows_the_platform_order(export_marked):
    def by_platform(x):
        return lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x * 100)

    for platforms in (("cpu", "tpu"), ("tpu", "cpu")):
        artifact = export_marked(jax.jit(by_platform), 1.0, platforms=platforms).artifact
        assert artifact.envelope.platforms == platforms
        assert float(export.deserialize(bytearray(artifact.data)).call(2.0)) == 3.0


def test_arguments_made_of_global_constants_are_tagged(documented):
    (floor,) = [each for each in documented.artifact.module.functions if each.name == "floor_divide"]
    assert floor.arg_attrs == ({"jax.global_constant": ""}, {"jax.global_constant": ""})


def test_the_envelope_names_dimensions_platforms_and_effects(documented):
    envelope = documented.artifact.envelope
    assert str(envelope.in_avals[0]) == "float32[w,2*h]"
    assert (envelope.uses_global_constants, envelope.platforms) == (True, ("cpu", "tpu"))
    assert [effect.rstrip("'>").rpartition(".")[2] for effect in envelope.ordered_effects] == ["OrderedEffect"]


def test_main_drops_unused_arguments(export_marked):
    artifact = export_marked(jax.jit(lambda unused, used: used + 1), np.float32(1), np.int32(2)).artifact
    assert artifact.envelope.module_kept_var_idx == (1,)
    assert artifact.module.main.inputs == ("tensor<i32>",)


def test_with_one_platform_and_fixed_shapes_main_takes_only_arrays(export_marked):
    artifact = export_marked(jax.jit(jnp.cos), np.ones((3, 4), np.float32)).artifact
    assert _signature(artifact.module.main) == [("tensor<3x4xf32>", {})]
    assert (artifact.envelope.uses_global_constants, artifact.custom_calls) == (False, ())


# The assertions: both documents show three, in a function _check_shape_assertions. Since 0.4.30 at least, they are in
# main itself.


def test_main_asserts_what_tracing_assumed_of_dimensions(documented):
    calls = [(call.target, call.function, call.has_side_effect) for call in documented.artifact.custom_calls]
    assert calls == [("shape_assertion", "main", True)] * 3
    text = documented.files["module.mlir"].decode()
    for message in (
        "Expected value >= 1 for dimension variable 'w'",
        "Division had remainder {0}",
        "dimension variable 'h'",
    ):
        assert message in text


def test_an_assertion_takes_a_condition_and_integers(documented):
    calls = re.findall(r"custom_call @shape_assertion\(.*", documented.files["module.mlir"].decode())
    assert len(calls) == 3
    for call in calls:
        condition, *integers = re.findall(r"tensor<\w+>", call.rpartition(" : ")[2])
        indices = {int(index) for index in re.findall(r"\{(\d)\}", call)}
        assert (condition, {*integers}) == ("tensor<i1>", {"tensor<i32>"})
        assert indices == set(range(len(integers)))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 4), "Expected value >= 1 for dimension variable 'w'"),
        ((3, 5), "Division had remainder 1 when computing the value of 'h'"),
        ((3, 0), "Expected value >= 1 for dimension variable 'h'"),
    ],
)
def test_a_shape_that_breaks_an_assumption_is_refused(documented, shape, message):
    w, two_h = export.symbolic_shape("w, 2*h")
    exported = export.export(jax.jit(jnp.cos))(jax.ShapeDtypeStruct((w, two_h), np.float32))
    with pytest.raises(ValueError, match=message):
        exported.call(np.ones(shape, np.float32))
    (check,) = add_checks(documented, [ExtraCall((np.ones(shape, np.float32),), {}, message)]).manifest.checks
    assert (check.name, check.refused) == ("refused1", message)
    with pytest.raises(ExportError, match="expected this call of the exported function to be refused"):
        add_checks(documented, [ExtraCall((np.ones((3, 4), np.float32),), {}, message)])


# Section "Shape polymorphic export".


def test_jit_traces_each_shape_and_an_artifact_none():
    traced = []

    def noted(x):
        traced.append(x.shape)
        return 2 * x

    jitted = jax.jit(noted)
    symbolic = export.export(jitted)(jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32))
    traced.clear()
    shapes = [np.ones(size, np.float32) for size in (2, 3)]
    assert [symbolic.call(x).shape for x in shapes] == [(2,), (3,)]
    assert traced == []
    assert [jitted(x).shape for x in shapes] == traced == [(2,), (3,)]


def test_a_branch_on_a_dimension_needs_a_constraint(export_marked):
    def first_four(x):
        return x[:4] if x.shape[0] >= 4 else x

    def exported(*constraints):
        shape = export.symbolic_shape("b", constraints=constraints)
        return export.export(jax.jit(first_four))(jax.ShapeDtypeStruct(shape, np.float32))

    with pytest.raises(core.InconclusiveDimensionOperation, match="Symbolic dimension comparison 'b' >= '4'"):
        exported()
    assert exported("b >= 4").call(np.ones(6, np.float32)).shape == (4,)
    six = np.ones(6, np.float32)
    with pytest.raises(ExportError, match=r"(?s)comparison 'b' >= '4' is inconclusive.*constraints=\(\"b >= 4\",\)"):
        export_marked(jax.jit(first_four), six, symbolic_shapes="b")
    produced = export_marked(jax.jit(first_four), six, symbolic_shapes="b", constraints=("b >= 4",))
    assert str(produced.artifact.envelope.out_avals[0]) == "float32[4]"


def test_a_golden_checks_several_shapes_of_one_artifact(export_marked):
    produced = export_marked(
        jax.jit(jnp.cos), np.ones((3, 4), np.float32), symbolic_shapes="w, 2*h", constraints=("w >= 2",)
    )
    other, small = ExtraCall((np.ones((5, 8), np.float32),), {}), np.ones((1, 4), np.float32)
    checked = add_checks(produced, [other, ExtraCall((small,), {}, "do not match the symbolic shape constraint")])
    assert [check.name for check in checked.manifest.checks] == ["call1", "refused2"]
    assert produced.manifest.options.constraints == ("w >= 2",)

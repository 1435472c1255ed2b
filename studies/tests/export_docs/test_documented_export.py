"""The statements of JAX's export document on exporting, serializing, calling and differentiating."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from export_core.artifact import read
from export_core.export.errors import ExportError
from export_core.export.golden_checks import add_checks
from export_core.goldens.arrays import from_npz

DATA = Path(__file__).parents[3] / "tests" / "artifact" / "data"


def f(x):
    return 2 * x * x


def g(x):
    return 7 * x * x * x


# Section "Exporting and serializing staged-out computations".


def test_an_exported_function_can_be_inspected():
    exported: export.Exported = export.export(jax.jit(f))(jax.ShapeDtypeStruct((), np.float32))
    assert exported.fun_name == "f"
    assert str(exported.in_avals) == "(ShapedArray(float32[]),)"
    main = re.search(r".*@main.*", exported.mlir_module()).group(0)
    # June 2024 shows mhlo.layout_mode too, which 0.4.33 still writes and 0.4.35 does not; result_info is "result" since
    # 0.5.3.
    assert main.lstrip().startswith(
        'func.func public @main(%arg0: tensor<f32> loc("x")) -> (tensor<f32> {jax.result_info'
    )


def test_a_rehydrated_function_is_called_in_another_computation():
    exported = export.export(jax.jit(f))(jax.ShapeDtypeStruct((), np.float32))
    serialized: bytearray = exported.serialize()
    rehydrated_exp: export.Exported = export.deserialize(serialized)
    assert str(rehydrated_exp.in_avals) == "(ShapedArray(float32[]),)"

    def callee(y):
        return 3.0 * rehydrated_exp.call(y * 4.0)

    result = callee(1.0)
    assert (float(result), result.dtype) == (96.0, np.float32)


def test_an_artifact_runs_without_its_python_function():
    traced = []

    def noted(x):
        traced.append(x)
        return 2 * x

    rehydrated = export.deserialize(export.export(jax.jit(noted))(1.0).serialize())
    assert len(traced) == 1
    assert float(rehydrated.call(2.0)) == float(jax.jit(lambda x: rehydrated.call(x))(2.0)) == 4.0
    assert len(traced) == 1


def test_the_artifact_has_the_exported_name_and_types(export_marked):
    produced = export_marked(jax.jit(f), np.float32(1.0))
    envelope, main = produced.artifact.envelope, produced.artifact.module.main
    assert (envelope.fun_name, list(map(str, envelope.in_avals))) == ("f", ["float32[]"])
    assert str(main) == "@main(tensor<f32>) -> (tensor<f32>)"
    assert (main.visibility, "jax.result_info" in main.result_attrs[0]) == ("public", True)


def test_a_shape_dtype_struct_can_replace_an_argument(export_marked):
    given, described = (
        export_marked(jax.jit(f), value) for value in (np.float32(1.0), jax.ShapeDtypeStruct((), np.float32))
    )
    assert described.artifact.data == given.artifact.data
    assert described.inputs[0].dtype == "float32"


@pytest.mark.parametrize(("release", "names"), [("0.4.30", {"mhlo.layout_mode"}), ("0.12.0.1", set())])
def test_layout_modes_are_read_if_the_writer_wrote_them(release, names):
    # June 2024 shows them. 0.4.33 still writes them, 0.4.35 does not.
    main = read(DATA / release / "cholesky.jaxexport").module.main
    assert set(main.arg_attrs[0]) == names
    assert set(main.result_attrs[0]) == {"jax.result_info", *names}


# Section "Support for reverse-mode AD".


def test_vjps_are_serialized_up_to_vjp_order():
    blob: bytearray = export.export(jax.jit(g))(1.0).serialize(vjp_order=3)
    rehydrated_f: Callable = export.deserialize(blob).call
    assert rehydrated_f(0.1) == pytest.approx(7 * 0.1**3)
    assert jax.grad(rehydrated_f)(0.1) == pytest.approx(7 * 3 * 0.1**2)
    assert jax.grad(jax.grad(rehydrated_f))(0.1) == pytest.approx(7 * 3 * 2 * 0.1)
    assert jax.grad(jax.grad(jax.grad(rehydrated_f)))(0.1) == pytest.approx(7 * 3 * 2)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(jax.grad(jax.grad(jax.grad(rehydrated_f))))(0.1)


def test_a_golden_checks_each_vjp_of_its_artifact(export_marked):
    produced = add_checks(export_marked(jax.jit(g), 1.0, vjp_order=3), [])
    artifact = produced.artifact
    assert artifact.envelope.vjp_order == 3
    assert [module.vjp_order for module in artifact.modules] == [0, 1, 2, 3]
    # Each level takes the arguments of the level below, and a cotangent for each of its results.
    assert [len(module.main.inputs) for module in artifact.modules] == [1, 2, 3, 5]
    assert [check.name for check in produced.manifest.checks] == ["vjp1", "vjp2", "vjp3", "vjp4"]
    assert produced.manifest.checks[-1].refused == "No VJP is available"


def test_an_export_without_vjps_cannot_be_differentiated(export_marked):
    rehydrated = export.deserialize(export.export(jax.jit(g))(1.0).serialize())
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(rehydrated.call)(1.0)
    assert export_marked(jax.jit(g), 1.0).artifact.envelope.vjp is None


def test_a_custom_vjp_is_serialized(export_marked):
    @jax.custom_vjp
    def twice(x):
        return 2 * x

    twice.defvjp(lambda x: (twice(x), None), lambda _, cotangent: (100 * cotangent,))
    blob = export.export(jax.jit(twice))(1.0).serialize(vjp_order=1)
    assert jax.grad(export.deserialize(blob).call)(1.0) == 100
    produced = export_marked(jax.jit(twice), 1.0, vjp_order=1)
    assert jax.grad(export.deserialize(bytearray(produced.artifact.data)).call)(1.0) == 100
    files = add_checks(produced, []).files
    (_, cotangent), (gradient,) = (from_npz(files[f"vjp1.{side}.npz"]) for side in ("inputs", "outputs"))
    assert gradient.numpy() == 100 * cotangent.numpy()


def test_a_serialized_vjp_of_remat_recomputes(export_marked):
    def waves(x):
        return jnp.sin(jnp.sin(x))

    blob = export.export(jax.jit(jax.remat(waves)))(1.0).serialize(vjp_order=1)
    assert jax.grad(export.deserialize(blob).call)(1.0) == pytest.approx(np.cos(np.sin(1.0)) * np.cos(1.0))
    # A barrier keeps the compiler from merging the second computation with the first.
    remat, plain = (export_marked(jax.jit(function), 1.0, vjp_order=1) for function in (jax.remat(waves), waves))
    barriers = ["vhlo.optimization_barrier_v1" in each.artifact.modules[1].op_names for each in (remat, plain)]
    assert barriers == [True, False]


def test_a_vjp_is_computed_when_it_is_serialized(export_marked):
    asked = []

    @jax.custom_vjp
    def twice(x):
        return 2 * x

    def forward(x):
        asked.append("vjp")
        return twice(x), None

    twice.defvjp(forward, lambda _, cotangent: (2 * cotangent,))
    exported = export.export(jax.jit(twice))(1.0)
    exported.serialize()
    assert asked == []
    exported.serialize(vjp_order=1)
    assert asked == ["vjp"]
    export_marked(jax.jit(twice), 1.0)
    assert asked == ["vjp"]
    export_marked(jax.jit(twice), 1.0, vjp_order=1)
    assert asked == ["vjp", "vjp"]


def test_a_deserialized_function_refuses_jvp_and_vmap():
    rehydrated = export.deserialize(export.export(jax.jit(g))(1.0).serialize(vjp_order=1)).call
    with pytest.raises(TypeError, match=r"can't apply forward-mode \w+ \(jvp\)"):
        jax.jvp(rehydrated, (1.0,), (1.0,))
    with pytest.raises(NotImplementedError, match="Batching rule for 'call_exported' not implemented"):
        jax.vmap(rehydrated)(jnp.ones(3))


# Section "Migration guide from jax.experimental.export".


def test_only_the_result_of_jit_can_be_exported(export_marked):
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(f)(1.0)
    with pytest.raises(ExportError, match=r"expected a jitted function.*Wrap it: jax\.jit\(f\)"):
        export_marked(f, 1.0)


def test_old_names_of_fields_and_functions_are_gone():
    exported = export.export(jax.jit(f))(1.0)
    assert exported.platforms == (export.default_export_platform(),)
    assert exported.uses_global_constants is False
    assert exported.calling_convention_version >= export.minimum_supported_calling_convention_version
    assert float(export.deserialize(exported.serialize()).call(2.0)) == 8.0
    for old in ("lowering_platforms", "uses_shape_polymorphism", "mlir_module_serialization_version"):
        assert not hasattr(exported, old)
    for old in ("call", "serialize", "default_lowering_platform", "minimum_supported_serialization_version"):
        assert not hasattr(export, old)


def test_a_lowered_function_has_no_export_method():
    # The note of May 2024 announces Lowered.export. jax.experimental.export, still in 0.4.31, is gone in 0.6.2.
    assert not hasattr(jax.jit(f).lower(1.0), "export")
    assert importlib.util.find_spec("jax.experimental.export") is None

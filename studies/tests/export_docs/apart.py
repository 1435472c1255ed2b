"""Examples that need a process without other tests: for eight devices, or since they change a lowering rule for good.

test_apart.py runs them.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax._src.interpreters import mlir
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from export_core.artifact import read_bytes
from export_core.export.arguments import Arguments
from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.export.golden_checks import WRONG_DEVICES, add_checks
from export_core.export.meshes import place_unplaced


def f(x):
    return x.T


@pytest.fixture
def devices():
    assert len(jax.local_devices()) == 8
    return jax.local_devices()


def _first_two(result):
    # Devices were called TFRT_CPU_0 and so on up to 0.9.2.
    return [(s.device.id, s.index) for s in result.addressable_shards[:2]]


def _exported_for(mesh, size=32):
    return export.export(jax.jit(f))(
        jax.ShapeDtypeStruct((size,), dtype=np.int32, sharding=NamedSharding(mesh, P(mesh.axis_names[0])))
    )


# Section "Device polymorphic export". AbstractMesh took pairs, (("a", 4),), before 0.5.3.


def test_an_abstract_mesh_exports_like_a_mesh_of_devices(devices):
    exp = _exported_for(AbstractMesh((4,), ("a",)))
    assert exp.nr_devices == 4
    exp2 = _exported_for(Mesh(devices[:4], ("a",)))
    # ({devices=[4]<=[4]},) in the document; since 0.10.0 it is empty, and the artifact holds the NamedSharding.
    assert exp.in_shardings_hlo == exp2.in_shardings_hlo
    shardings = [read_bytes(bytes(each.serialize())).envelope.in_shardings[0] for each in (exp, exp2)]
    assert [str(sharding) for sharding in shardings] == ["NamedSharding(Mesh(a=4), PartitionSpec('a'))"] * 2


def test_an_artifact_has_devices_mesh_and_shardings(export_marked):
    produced = export_marked(jax.jit(f), jnp.arange(32), mesh={"a": 4}, in_specs=(P("a"),))
    envelope = produced.artifact.envelope
    assert (envelope.nr_devices, [str(aval) for aval in envelope.in_avals]) == (4, ["int32[32]"])
    (sharding,) = envelope.in_shardings
    assert str(sharding) == "NamedSharding(Mesh(a=4), PartitionSpec('a'))"
    assert produced.manifest.options.mesh == {"a": 4}


@pytest.mark.parametrize("kind", ["abstract", "concrete"])
def test_a_call_gives_each_device_its_part(devices, kind):
    concrete_mesh = Mesh(devices[:4], ("a",))
    exp = _exported_for(AbstractMesh((4,), ("a",)) if kind == "abstract" else concrete_mesh)
    arg = jnp.arange(8 * 4)
    res1 = exp.call(jax.device_put(arg, NamedSharding(concrete_mesh, P("a"))))
    assert _first_two(res1) == [(0, (slice(0, 8, None),)), (1, (slice(8, 16, None),))]


def test_device_put_refuses_an_abstract_mesh(devices):
    exp = _exported_for(AbstractMesh((4,), ("a",)))
    with pytest.raises(ValueError, match=r"is_fully_addressable is not implemented for `jax\.sharding\.AbstractMesh`"):
        exp.call(jax.device_put(jnp.arange(32), NamedSharding(AbstractMesh((4,), ("a",)), P("a"))))


def test_a_jit_with_in_shardings_exports_for_their_mesh(devices, export_marked):
    export_mesh = Mesh(devices[:4], ("a",))
    arg = jnp.arange(8 * 4)
    exp = export.export(jax.jit(f, in_shardings=(NamedSharding(export_mesh, P("a")),)))(arg)
    assert exp.nr_devices == 4
    res1 = exp.call(jax.device_put(arg, NamedSharding(export_mesh, P("a"))))
    assert _first_two(res1) == [(0, (slice(0, 8, None),)), (1, (slice(8, 16, None),))]
    produced = export_marked(jax.jit(f, in_shardings=(NamedSharding(export_mesh, P("a")),)), arg)
    assert produced.manifest.options.mesh == {"a": 4}


def test_a_call_accepts_other_devices_in_another_mesh(devices):
    exp = _exported_for(AbstractMesh((4,), ("a",)))
    other_mesh = Mesh(np.array(devices[2:6]).reshape((2, 2)), ("b", "c"))
    res2 = exp.call(jax.device_put(jnp.arange(8 * 4), NamedSharding(other_mesh, P("b"))))
    # The argument was in halves: the call distributed it as the exported function declares.
    assert _first_two(res2) == [(2, (slice(0, 8, None),)), (3, (slice(8, 16, None),))]


def test_a_golden_checks_another_mesh_and_refuses_one_device(export_marked):
    produced = export_marked(jax.jit(f), jnp.arange(32), mesh={"a": 4}, in_specs=(P("a"),))
    manifest = add_checks(produced, []).manifest
    assert manifest.out_shardings == ("0:[0:8] 1:[8:16] 2:[16:24] 3:[24:32]",)
    checks = {check.name: check for check in manifest.checks}
    assert checks["other-mesh"].mesh == {"other_a": 4}
    assert checks["one-device"].refused == WRONG_DEVICES


def test_another_number_of_devices_is_refused(devices):
    exp = _exported_for(Mesh(np.array(devices), ("a",)), 4 * 8)
    # "Exported module f was lowered for 8 devices" in both documents, "Function f was exported for" since 0.4.30.
    with pytest.raises(
        ValueError, match=r"f was \w+ for 8 devices and is called in a context with 1 devices"
    ) as refusal:
        exp.call(jnp.arange(4 * 8))
    assert re.search(WRONG_DEVICES, str(refusal.value))


def test_in_shardings_jax_places_arguments_as_exported(devices):
    exp = _exported_for(Mesh(np.array(devices), ("a",)), 4 * 8)
    # The documents name the axis "b" here; since 0.9.0 its name must be that of the export.
    calling_mesh = Mesh(np.array(devices[::-1]), ("a",))
    arg = jnp.arange(4 * 8)
    sharded_arg = jax.device_put(arg, exp.in_shardings_jax(calling_mesh)[0])
    res = exp.call(sharded_arg)
    assert _first_two(res) == [(7, (slice(0, 4, None),)), (6, (slice(4, 8, None),))]
    # A golden places the arguments of its artifact in the same way, on a mesh of its own.
    case = Case("documents", "the documents", None, jax.jit(f), (arg,), {})
    (placed,) = place_unplaced(case, Arguments((arg,), {}), exp, {"a": 8}).flat()
    assert placed.sharding.is_equivalent_to(NamedSharding(Mesh(np.array(devices), ("a",)), P("a")), 1)


def test_a_mesh_with_other_axis_names_is_refused(devices):
    # The documents do this; refused since 0.9.0.
    exp = _exported_for(AbstractMesh((4,), ("a",)))
    with pytest.raises(ValueError, match="does not match the mesh used for export"):
        exp.in_shardings_jax(Mesh(devices[:4], ("b",)))


def test_a_one_device_export_runs_on_sharded_arguments(devices, export_marked):
    def cosine(x):
        return jnp.cos(x)

    arg = jnp.arange(4)
    exp = export.export(jax.jit(cosine))(arg)
    assert (str(exp.in_avals), exp.nr_devices) == ("(ShapedArray(int32[4]),)", 1)
    calling_mesh = Mesh(devices[:4], ("b",))
    sharded_arg = jax.device_put(arg, NamedSharding(calling_mesh, P("b")))
    res = exp.call(sharded_arg)
    np.testing.assert_allclose(res, np.cos(np.arange(4)), rtol=1e-6)
    assert len(res.sharding.device_set) == 4
    produced = add_checks(export_marked(jax.jit(cosine), arg, spread_over=4), [])
    assert (produced.artifact.envelope.nr_devices, produced.artifact.envelope.in_shardings) == (1, (None,))
    assert [(check.name, check.spread) for check in produced.manifest.checks] == [("spread", True)]


# Section "Compatibility guarantees for custom calls" of June 2024. The newer document has a primitive of its own there.


def test_a_custom_call_in_a_replaced_lowering_is_refused(export_marked):
    # Since 0.6.0 the lowering rule of sin has a parameter for its accuracy.
    _ = mlir.register_lowering(
        lax.sin_p, lambda ctx, o, **_: mlir.custom_call("my_new_sin", operands=[o], result_types=[o.type]).results
    )
    assert "stablehlo.custom_call @my_new_sin(%arg0)" in str(jax.jit(lax.sin).lower(1.0).compiler_ir())
    with pytest.raises(ValueError, match=r"have no compatibility guarantees(?s:.*)my_new_sin"):
        export.export(jax.jit(lax.sin))(1.0)
    with pytest.raises(ExportError, match=r"custom calls for which jax \S+ promises nothing: my_new_sin"):
        export_marked(jax.jit(lax.sin), 1.0)
    exp = export.export(
        jax.jit(lax.sin), disabled_checks=[export.DisabledSafetyCheck.custom_call("my_new_sin")]
    )(1.0)  # fmt: skip
    assert "@my_new_sin" in exp.mlir_module()

"""Functions over several devices: exported without devices where jax can, called on them, refused on too few."""

import contextlib
from contextlib import closing

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from export_core.export import api
from export_core.export.arguments import Arguments, leaf_from, placed_like
from export_core.export.errors import ExportError
from export_core.export.golden_checks import WRONG_DEVICES, ExtraCall, add_checks
from export_core.export.meshes import concrete_mesh, shard_layout
from export_core.goldens.store import staged_goldens
from export_core.numbers.user_code import UserCode
from export_core.policy import Policy
from export_core.policy.run_options import CellLimits, RunOptions
from export_core.readers.cell import Cell, request_of
from export_core.readers.worker import jaxlib_worker
from export_core.releases import load_calendar
from export_core.run.golden_writing import OwnReader

X = np.arange(8, dtype=np.float32).reshape(4, 2)
SPEC = PartitionSpec
ON_4, ON_2_BY_2, ON_2 = (concrete_mesh("t", axes) for axes in ({"x": 4}, {"a": 2, "b": 2}, {"x": 2}))


def test_a_shard_layout_depends_only_on_mesh_positions():
    devices = np.array(jax.devices()[:4])
    for order in (devices, devices[::-1]):
        mesh = Mesh(order.reshape(2, 2), ("a", "b"))
        value = jax.device_put(X, NamedSharding(mesh, SPEC("a", None)))
        assert shard_layout(value) == "0:[0:2,0:2] 1:[0:2,0:2] 2:[2:4,0:2] 3:[2:4,0:2]"


def test_the_manifest_records_mesh_and_output_shardings(exported):
    produced = add_checks(exported(lambda x: (x * 2, x.sum()), X, mesh={"a": 2}, in_specs=(SPEC("a"),)), [])
    assert produced.exported.nr_devices == 2
    assert produced.manifest.options.mesh == {"a": 2}
    assert produced.manifest.out_shardings == ("0:[0:2,0:2] 1:[2:4,0:2]", "0:[] 1:[]")


def test_an_export_over_a_mesh_compiles_nothing_until_it_has_checks(exported, monkeypatch):
    compiled = []
    monkeypatch.setattr(api, "call_of", lambda each, real=api.call_of: compiled.append(each) or real(each))
    produced = exported(jnp.cos, X, mesh={"a": 2}, in_specs=(SPEC("a"),))
    assert compiled == []
    add_checks(produced, [])
    assert compiled


def test_the_mesh_of_arguments_on_devices_is_found(exported):
    produced = exported(lambda x: x.T, jax.device_put(X, NamedSharding(ON_2_BY_2, SPEC("a", "b"))))
    assert produced.manifest.options.mesh == {"a": 2, "b": 2}


def test_a_golden_over_a_mesh_has_calls_on_another_mesh_and_one_device(exported):
    produced = add_checks(exported(jnp.cos, X, mesh={"a": 2}, in_specs=(SPEC("a"),)), [])
    other, one = produced.manifest.checks
    assert (other.name, other.mesh, other.outputs) == ("other-mesh", {"other_a": 2}, "outputs.npz")
    assert (one.name, one.mesh, one.refused) == ("one-device", {"one": 1}, WRONG_DEVICES)


def test_option_spread_over_needs_an_export_for_one_device(exported):
    (check,) = add_checks(exported(jnp.cos, X, spread_over=4), []).manifest.checks
    assert (check.name, check.mesh, check.spread) == ("spread", {"spread": 4}, True)
    with pytest.raises(ExportError, match="spread_over=2: only a function that was exported for one device"):
        add_checks(exported(jnp.cos, X, mesh={"a": 2}, in_specs=(SPEC("a"),), spread_over=2), [])


def test_a_mesh_of_too_many_devices_is_an_error():
    with pytest.raises(ExportError, match=r"needs 4,096 devices; this process has \d+.* export_devices = 4096"):
        concrete_mesh("t", {"a": 4096})


def test_too_few_specs_are_an_error(exported):
    with pytest.raises(ExportError, match="in_specs: expected a value for each of the 2 positional arguments, found 1"):
        exported(jnp.add, X, X, mesh={"a": 2}, in_specs=(SPEC("a"),))


def test_a_static_argument_has_a_position_but_no_symbolic_shape(exported):
    function = jax.jit(lambda number, x: x * number, static_argnums=0)
    exported(function, 2, X, symbolic_shapes=("a, 2",))
    exported(function, 2, X, symbolic_shapes={1: "a, 2"})
    with pytest.raises(ExportError, match="each of the 1 positional arguments that are not static, found 2"):
        exported(function, 2, X, symbolic_shapes=(None, "a, 2"))


def test_float64_arrays_of_symbolic_shape_are_exported_as_float32(exported):
    produced = exported(lambda x: x + 1, np.arange(4.0), symbolic_shapes="b")  # jax's warning would be an error
    assert [str(aval) for aval in produced.artifact.envelope.in_avals] == ["float32[b]"]


def test_symbolic_shapes_apply_to_keyword_arguments(exported):
    produced = exported(lambda x: x + 1, kwargs={"x": X}, symbolic_shapes="b, 2")
    assert produced.manifest.signature.inputs == ("float32[b,2]",)


def test_an_unreduced_array_is_stored_as_its_sum():
    mesh = jax.make_mesh((4,), ("a",), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(mesh):
        value = jax.sharding.reshard(jax.device_put(X, SPEC()), SPEC(unreduced={"a"}))
    assert leaf_from(value).numpy().tolist() == X.tolist()
    assert shard_layout(value).endswith("3:[0:4,0:2] unreduced over a")
    assert placed_like(value, jnp.asarray(X)).sharding == value.sharding
    (copy,) = Arguments((value,), {}).copy().args
    assert copy.sharding == value.sharding


@pytest.mark.parametrize("kind", ["columns", "pinned_host"])
def test_a_copied_argument_has_the_same_memory_kind_and_layout(kind):
    device = SingleDeviceSharding(jax.devices()[0], memory_kind=None if kind == "columns" else kind)
    value = jax.device_put(X, Format(Layout((1, 0)), device) if kind == "columns" else device)
    arguments = Arguments((value,), {})
    for (other,) in (arguments.copy().args, arguments.with_leaves([leaf_from(value)]).args):
        assert other.format == value.format
        assert other.unsafe_buffer_pointer() != value.unsafe_buffer_pointer()


ABSTRACT = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
ON_ABSTRACT = NamedSharding(ABSTRACT, SPEC("x"))
OVER_X = {"mesh": {"x": 4}, "in_specs": (SPEC("x"),)}


def total(x):
    return jax.lax.psum(x.sum(), "x")


DOUBLED = jax.jit(lambda x: x * 2, in_shardings=ON_ABSTRACT)
SUMMED = jax.jit(jax.shard_map(total, mesh=ABSTRACT, in_specs=SPEC("x"), out_specs=SPEC()))


@pytest.mark.parametrize(
    ("function", "options", "outputs"),
    [
        (DOUBLED, {}, X * 2),
        (DOUBLED, {**OVER_X, "vjp_order": 1}, X * 2),
        (SUMMED, {**OVER_X, "vjp_order": 1}, X.sum()),
    ],
    ids=["in_shardings", "in_shardings, a derivative", "shard_map, a derivative"],
)
def test_a_function_on_an_abstract_mesh_runs_on_devices(exported, function, options, outputs):
    produced = add_checks(exported(function, X, **options), [ExtraCall((X + 1,), {})])
    assert produced.manifest.options.mesh == {"x": 4}
    assert np.array_equal(produced.outputs[0].numpy(), outputs)
    names = [check.name for check in produced.manifest.checks]
    assert names == [*(["vjp1", "vjp2"] if "vjp_order" in options else []), "call1", "other-mesh", "one-device"]


def test_a_shard_map_for_one_device_is_refused(exported):
    """Such an artifact would run nowhere, although jax exports it."""

    def f(x):
        return jax.shard_map(total, mesh=ABSTRACT, in_specs=SPEC("x"), out_specs=SPEC())(x)  # over four

    with pytest.raises(ExportError, match=r"arguments on the mesh of this shard_map.* in f: .*# over four(?s:.*)mesh="):
        exported(f, X)


def test_a_sharding_constraint_on_an_abstract_mesh_needs_a_mesh(exported):
    """Without `mesh=`, jax exports it for one device. With a concrete mesh, it would be for four."""

    def f(x):
        return jax.lax.with_sharding_constraint(x * 2, ON_ABSTRACT)  # over four

    with pytest.raises(ExportError, match=r"mesh of this sharding_constraint.* in f: .*# over four(?s:.*)mesh="):
        exported(f, X)
    assert exported(f, X, **OVER_X).manifest.options.mesh == {"x": 4}


def test_arguments_of_a_declared_refusal_are_put_on_the_mesh(exported):
    """As in a reader: arguments on one device would be refused for another reason."""
    with pytest.raises(
        ExportError,
        match=r"refused1: expected this call .* to be refused, and it was not\. The function accepted float32\[",
    ):
        add_checks(exported(DOUBLED, X, **OVER_X), [ExtraCall((X,), {}, WRONG_DEVICES)])


@pytest.fixture
def on_other_meshes(exported):
    """A golden for four devices with a call on a 2 × 2 mesh, and one on two devices that must be refused."""
    produced = exported(lambda x: x @ x.T, X, **OVER_X)
    calls = [
        ExtraCall((jax.device_put(X + 1, NamedSharding(ON_2_BY_2, SPEC("a", "b"))),), {}),
        ExtraCall((jax.device_put(X, NamedSharding(ON_2, SPEC("x"))),), {}, WRONG_DEVICES),
        ExtraCall((jax.device_put(X + 2, NamedSharding(ON_4, SPEC("x"))),), {}),
    ]
    return add_checks(produced, calls)


def test_the_mesh_of_a_further_call_is_recorded(on_other_meshes):
    meshes = {check.name: check.mesh for check in on_other_meshes.manifest.checks}
    meshes = {name: mesh for name, mesh in meshes.items() if name[-1].isdecimal()}
    assert meshes == {"call1": {"a": 2, "b": 2}, "refused2": {"x": 2}, "call3": {}}


def test_a_further_call_is_replayed_on_its_own_mesh(on_other_meshes):
    """On the golden's own mesh, the call that must be refused would run."""
    with (
        staged_goldens((on_other_meshes.manifest, on_other_meshes.files)) as (golden,),
        contextlib.closing(UserCode()) as user_code,
        closing(OwnReader(Policy(), RunOptions(results=None), user_code)) as reader,
    ):
        (result,) = reader.replay([golden])
    assert (result.verdict, result.message) == ("pass", "")


def test_a_reader_shards_arguments_as_the_test_did(exported):
    call = ExtraCall((jax.device_put(X, NamedSharding(ON_2_BY_2, SPEC("b"))),), {})
    produced = add_checks(exported(jnp.cos, X, **OVER_X), [call])
    with staged_goldens((produced.manifest, produced.files)) as (golden,):
        cell = Cell(golden, load_calendar().release(golden.manifest.writer.jaxlib), "cpu")
        request = msgspec.to_builtins(request_of(cell, golden.folder, CellLimits()))
        (check,) = (check for check in request["checks"] if check["name"] == "call1")
        (sharding,) = jaxlib_worker.shardings_on(jax.devices(), produced.exported, [X], check)
    assert (dict(sharding.mesh.shape), sharding.spec) == ({"a": 2, "b": 2}, SPEC("b"))


def test_an_accepted_call_that_must_be_refused_is_an_error(exported):
    call = ExtraCall((jax.device_put(X, NamedSharding(ON_2_BY_2, SPEC("a"))),), {}, WRONG_DEVICES)
    with pytest.raises(ExportError, match="expected this call of the exported function to be refused, and it was not"):
        add_checks(exported(jnp.cos, X, **OVER_X), [call])

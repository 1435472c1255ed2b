"""Functions over several devices: exported without them where jax can, called on them, and told where a mesh cannot be had."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from export_core.export import ExportError, add_checks, api
from export_core.export.meshes import concrete_mesh, shard_layout

X = np.arange(8, dtype=np.float32).reshape(4, 2)
SPEC = PartitionSpec


def test_parts_are_told_by_place_in_the_mesh_whichever_devices_it_has():
    devices = np.array(jax.devices()[:4])
    for order in (devices, devices[::-1]):
        mesh = Mesh(order.reshape(2, 2), ("a", "b"))
        value = jax.device_put(X, NamedSharding(mesh, SPEC("a", None)))
        assert shard_layout(value) == "0:[0:2,0:2] 1:[0:2,0:2] 2:[2:4,0:2] 3:[2:4,0:2]"


def test_the_manifest_says_the_mesh_and_where_outputs_lie(exported):
    produced = add_checks(exported(lambda x: (x * 2, x.sum()), X, mesh={"a": 2}, in_specs=(SPEC("a"),)), [])
    assert produced.exported.nr_devices == 2
    assert produced.manifest.options.mesh == {"a": 2}
    assert produced.manifest.out_shardings == ("0:[0:2,0:2] 1:[2:4,0:2]", "0:[] 1:[]")


def test_an_artifact_is_compiled_only_after_it_was_exported_and_could_be_audited(exported, monkeypatch):
    compiled = []
    monkeypatch.setattr(api, "call_of", lambda each, real=api.call_of: compiled.append(each) or real(each))
    produced = exported(jnp.cos, X, mesh={"a": 2}, in_specs=(SPEC("a"),))
    assert compiled == []
    add_checks(produced, [])
    assert compiled


def test_the_mesh_of_arguments_on_devices_is_found(exported):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("p", "q"))
    produced = exported(lambda x: x.T, jax.device_put(X, NamedSharding(mesh, SPEC("p", "q"))))
    assert produced.manifest.options.mesh == {"p": 2, "q": 2}


def test_another_mesh_of_the_same_form_and_a_single_device_are_checked(exported):
    produced = add_checks(exported(jnp.cos, X, mesh={"a": 2}, in_specs=(SPEC("a"),)), [])
    other, one = produced.manifest.checks
    assert (other.name, other.mesh, other.outputs) == ("other-mesh", {"other_a": 2}, "outputs.npz")
    assert (one.name, one.mesh, one.refused) == ("one-device", {"one": 1}, r"(exported|lowered) for \d+ devices")


def test_only_a_one_device_artifact_can_be_spread(exported):
    (check,) = add_checks(exported(jnp.cos, X, spread_over=4), []).manifest.checks
    assert (check.name, check.mesh, check.spread) == ("spread", {"spread": 4}, True)
    with pytest.raises(ExportError, match="spread_over=2: only a function that was exported for one device"):
        add_checks(exported(jnp.cos, X, mesh={"a": 2}, in_specs=(SPEC("a"),), spread_over=2), [])


def test_a_mesh_of_more_devices_than_there_are_says_how_to_get_them():
    with pytest.raises(ExportError, match=r"needs 4096 devices; this process has \d+.* export_devices = 4096"):
        concrete_mesh("t", {"a": 4096})


def test_specs_must_be_as_many_as_arguments(exported):
    with pytest.raises(ExportError, match="in_specs: expected one for each of the 2 positional arguments, found 1"):
        exported(jnp.add, X, X, mesh={"a": 2}, in_specs=(SPEC("a"),))

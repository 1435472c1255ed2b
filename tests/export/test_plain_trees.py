"""Trees that jax.export cannot serialize become tuples in the artifact, and the manifest describes them."""

from collections import OrderedDict, namedtuple

import jax
import jax.numpy as jnp
import numpy as np

from export_core.export.arguments import plain
from export_core.export.golden_checks import ExtraCall, add_checks

State = namedtuple("State", ["mean", "count"])
X = np.arange(3, dtype=np.float32)


def averaged(state, x, *, rate):
    return State(state.mean + rate["of"] * x, state.count + 1), x


def produced(exported, **options):
    return exported(averaged, State(X, 0), X, kwargs={"rate": {"of": 0.5}}, **options)


def test_only_unserializable_nodes_become_tuples():
    tree = {"a": [State(1, {"b": 2}), None], "c": {1: 3, 2: 4}, "d": OrderedDict(e=5)}
    assert plain(tree) == {"a": [(1, 2), None], "c": (3, 4), "d": OrderedDict(e=5)}
    assert plain(State(1, State(2, 3))) == (1, 2, 3)


def test_the_manifest_records_the_trees_that_became_tuples(exported):
    manifest = produced(exported).manifest
    assert manifest.signature.in_tree == "PyTreeDef((((*, *), *), {'rate': {'of': *}}))"
    assert manifest.signature.out_tree == "PyTreeDef(((*, *), *))"
    flattened = manifest.flattened
    assert flattened.inputs == ("args[0].mean", "args[0].count", "args[1]", "kwargs['rate']['of']")
    assert flattened.outputs == ("result[0].mean", "result[0].count", "result[1]")
    assert flattened.nodes == (f"{__name__}.State",)


def test_the_artifact_is_called_with_tuples(exported):
    artifact = jax.export.deserialize(bytearray(produced(exported).files["artifact.jaxexport"]))
    (mean, count), _ = artifact.call((X, 1), X, rate={"of": 2.0})
    np.testing.assert_array_equal(mean, X * 3)
    assert count == 2


def test_serializable_trees_are_unchanged(exported):
    manifest = exported(lambda tree: OrderedDict(b=tree["a"]), {"a": X}).manifest
    assert manifest.flattened is None
    assert "OrderedDict" in manifest.signature.out_tree


def test_an_unserializable_result_is_flattened_though_no_argument_is(exported):
    manifest = exported(lambda x: {2: x, 1: x * 2}, X).manifest
    assert manifest.flattened.nodes == ("dict with keys of type int",)
    assert manifest.flattened.outputs == ("result[1]", "result[2]")


def test_each_derivative_of_a_flattened_function_is_checked(exported):
    golden = exported(lambda s, x: State(jnp.sum(s.mean * x), s.count), State(X, np.float32(2)), X, vjp_order=2)
    assert golden.artifact.envelope.vjp_order == 2
    assert [check.name for check in add_checks(golden, []).manifest.checks] == ["vjp1", "vjp2", "vjp3"]


def test_further_calls_take_the_trees_of_the_function(exported):
    golden = exported(lambda s: s.mean * s.count, State(X, np.float32(2)))
    calls = [ExtraCall((State(X, np.float32(5)),), {}), ExtraCall((State(X[:2], np.float32(2)),), {}, "(?i)mismatch")]
    assert [check.name for check in add_checks(golden, calls).manifest.checks] == ["call1", "refused2"]


def test_donated_arguments_stay_donated(exported):
    golden = exported(jax.jit(lambda s: State(s.mean + 1, s.count), donate_argnums=0), State(X, 0))
    text = golden.files["module.mlir"].decode()
    assert "jax.buffer_donor" in text or "tf.aliasing_output" in text

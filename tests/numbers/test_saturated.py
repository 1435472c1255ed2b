"""Remarks on saturated outputs: all elements are at the bounds of a softmax, sigmoid, tanh or clamp."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from export_core.artifact import read_bytes, tracing
from export_core.artifact.bounded_outputs import bounded_outputs
from export_core.artifact.bytecode.listing import Line
from export_core.export import api
from export_core.goldens.arrays import leaf_of
from export_core.numbers.shows_nothing import Seen

X = np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32)
BIG = 2.0**100
MASK = np.tril(np.ones((4, 10), bool), 5)


def artifact_of(function, *arrays):
    exported = api.export_function(jax.jit(function), arrays, {}, platforms=("cpu",))
    return read_bytes(api.serialize(exported, 0), "an artifact")


def remarks_on(function, *arrays):
    """Return the remarks on the only output of a function, from the plain run and the module alone."""
    output = leaf_of(np.asarray(jax.jit(function)(*arrays)))
    artifact = artifact_of(function, *arrays)
    seen = Seen([], [], [output], [], bounded=lambda numbers: bounded_outputs(artifact, numbers))
    return [remark.text for remark in seen.remarks()]


SOFTMAX = "are 0 or 1, the bounds of a softmax: choose smaller inputs, or a larger temperature"
SIGMOID = "all 40 elements are 0 or 1, the bounds of a sigmoid: choose smaller inputs, or a smaller gain"
TANH = "all 40 elements are -1 or 1, the bounds of tanh: choose smaller inputs, or a smaller gain"
CLAMP = "the bounds of a clamp: choose inputs or bounds for which some are between them"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: jax.nn.softmax(BIG * x), f"all 40 elements {SOFTMAX}"),
        (lambda x: jax.nn.softmax(BIG * x, where=MASK), f"all 40 elements {SOFTMAX}"),
        (lambda x: jnp.exp(jax.nn.log_softmax(BIG * x)), f"all 40 elements {SOFTMAX}"),
        (lambda x: jnp.exp(BIG * x - jax.nn.logsumexp(BIG * x, -1, keepdims=True)), f"all 40 elements {SOFTMAX}"),
        (lambda x: jax.nn.softmax((BIG * x).astype(jnp.bfloat16)).T[None], f"all 40 elements {SOFTMAX}"),
        (
            lambda x: jax.nn.softmax(jnp.repeat(x, 9, 0) * np.asarray([1] + 35 * [BIG])[:, None]),
            f"350 of 360 elements {SOFTMAX}",
        ),
        (lambda x: jax.nn.sigmoid(BIG * x), SIGMOID),
        (lambda x: lax.logistic((BIG * x).astype(jnp.bfloat16)).astype(jnp.float32), SIGMOID),
        (lambda x: jnp.tanh(BIG * x).reshape(10, 4), TANH),
        (lambda x: jax.jit(jnp.tanh)(BIG * x), TANH),
        (lambda x: jax.vmap(jax.checkpoint(jnp.tanh))(BIG * x), TANH),
        (lambda x: jnp.where(MASK, jnp.tanh(BIG * x), 0), "30 of 40 elements are -1 or 1, the bounds of tanh"),
        (lambda x: lax.erf(BIG * x), TANH.replace("tanh", "erf")),
        (lambda x: jnp.clip(BIG * x, -2, 3), f"all 40 elements are -2 or 3, {CLAMP}"),
        (lambda x: jnp.clip(x.astype(jnp.bfloat16), -1e-9, 1e-9), CLAMP),
        (lambda x: lax.clamp(0.1, BIG * x, 6.0), f"all 40 elements are 0.1 or 6, {CLAMP}"),
        (lambda x: jnp.maximum(-1, jnp.minimum(1, BIG * x)), f"all 40 elements are -1 or 1, {CLAMP}"),
        (lambda x: jax.nn.relu6(x + 99), "all 40 elements are 6, a bound of a clamp: choose"),
    ],
)
def test_a_saturated_output_is_named(function, text):
    (remark,) = remarks_on(function, X)
    assert text in remark


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.nn.one_hot(x.argmax(-1), 10),
        lambda x: (x > 0).astype(jnp.float32),
        lambda x: jnp.where(x > 0, 1.0, -1.0),
        lambda x: jnp.clip(jnp.where(x > 0, 1.0, -1.0), -1, 1),
        lambda x: jnp.clip((x > 0).astype(jnp.float32), 0, 1),
        lambda x: jnp.clip(jnp.round(99 * x) + 0.0, -1, 1) * 1.0,
        lambda x: jnp.clip(jnp.sign(x), -1, 1),
        lambda x: jnp.round(jax.nn.sigmoid(x)),
        lambda x: jnp.sign(jnp.tanh(x)),
        lambda x: jnp.where(MASK, 1.0, jnp.zeros_like(x)),
        lambda x: jnp.where(np.arange(10) == 3, jax.nn.sigmoid(x), 0),
        lambda x: jnp.where(np.eye(40) == 1, jax.nn.sigmoid(x.reshape(-1)), 0),
        lambda x: jax.nn.softmax(jnp.where(np.abs(np.subtract.outer(range(99), range(99))) < 2, x[0, 0], -jnp.inf)),
        lambda x: jax.nn.softmax(x * jnp.asarray([[1], [BIG], [BIG], [BIG]])),
        lambda x: jax.nn.log_softmax(BIG * x),
        lambda x: jnp.clip(x, -0.5, 0.5),
        lambda x: jnp.clip(jnp.where(np.arange(40).reshape(4, 10), BIG, 0.1) * x, -1, 1),
        lambda x: jnp.tanh(jnp.where(np.arange(40).reshape(4, 10) < 39, 0 * x, x)),
        lambda x: jnp.tanh(BIG * x[0, :7]),
        lambda x: jnp.tanh(x),
    ],
)
def test_outputs_that_are_not_saturated_have_no_remark(function):
    assert not [text for text in remarks_on(function, X) if "bound" in text]


def test_the_module_is_read_only_for_outputs_of_few_values():
    asked = []

    def bounded(numbers):
        asked.append(numbers)
        return {}

    at_bounds = leaf_of(np.sign(X))
    Seen([], [], [leaf_of(X), at_bounds, leaf_of(X > 0)], [], bounded=bounded).remarks()
    Seen([], [], [leaf_of(X)], [], bounded=bounded).remarks()
    Seen([], [], [at_bounds], [], calls=[[leaf_of(X)]], bounded=bounded).remarks()
    assert asked == [[1]]


def test_no_bounds_are_found_where_the_module_is_not_understood(monkeypatch):
    artifact = artifact_of(jnp.tanh, X)
    assert bounded_outputs(artifact, [0])[0].by == "tanh"
    assert bounded_outputs(artifact, [7]) == {}
    main = SimpleNamespace(name="main", inputs=[], outputs=["tensor<f32>"])
    for name in ("call", "divide", "select", "minimum", "clamp", "convert", "unheard_of"):
        made = Line(name, (), ("main",), ("tensor<f32>",), (), tracing.BODY, ())
        returned = Line("return", (), (), (), (0,), tracing.BODY, ())
        monkeypatch.setattr(tracing, "listing", lambda module, lines=(made, returned): {"main": lines})
        assert bounded_outputs(SimpleNamespace(module=SimpleNamespace(main=main, functions=[main])), [0]) == {}

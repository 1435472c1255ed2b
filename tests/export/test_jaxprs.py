"""A jaxpr as text and counts: every inner jaxpr is included, and no address, path or hash of the process."""

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from export_core.export.jaxprs import describe_jaxpr, value_text
from export_core.goldens.manifest import JaxprSummary

JIT = jax.make_jaxpr(jax.jit(lambda x: x))(1.0).eqns[0].primitive.name
"""The name of the primitive of `jax.jit`: jit, or pjit up to jax 0.6."""


class Described(NamedTuple):
    text: str
    summary: JaxprSummary


def described(function, *args):
    return Described(*describe_jaxpr(jax.make_jaxpr(function)(*args)))


def primitives(function, *args):
    return described(function, *args).summary.primitives


@jax.custom_vjp
def halving(x):
    return jnp.sin(x)


halving.defvjp(lambda x: (halving(x), x), lambda stored, g: (g * jnp.cos(stored) / 2,))


@jax.custom_jvp
def doubling(x):
    return jnp.sin(x)


doubling.defjvp(lambda primals, tangents: (doubling(primals[0]), 2 * tangents[0]))


def sharded(x):
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    mesh = Mesh(np.array(jax.devices()[:1]), ("i",))
    return shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=PartitionSpec("i"), out_specs=PartitionSpec())(x)


def every_kind(x):
    """Compute with everything that jax prints by address, by hash or by path."""
    x = lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
    x = lax.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)
    x, _ = lax.scan(lambda carry, row: (carry + row, carry), x, jnp.stack([x, x]))
    x = halving(x) + jax.vmap(doubling)(x) + jax.nn.relu(x)
    x = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=jax.checkpoint_policies.dots_saveable)(x)
    x = jax.pure_callback(functools.partial(np.multiply, 2), jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    jax.debug.print("x {}", x)
    return sharded(x) + np.arange(1000.0)[:3] + jax.random.normal(jax.random.key(0), (3,))


def test_a_jaxpr_is_printed_as_jax_documents_it():
    def function(first, second):
        return jnp.sum(first + jnp.sin(second) * 3.0)

    text = described(function, np.zeros(8, np.float32), np.ones(8, np.float32)).text
    assert text.splitlines()[:5] == [
        "{ lambda ; a:f32[8] b:f32[8]. let",
        "    c:f32[8] = sin b",
        "    d:f32[8] = mul c 3.0:f32[]",
        "    e:f32[8] = add a d",
        next(line for line in text.splitlines() if "f:f32[] = reduce_sum[axes=(0,)" in line),
    ]
    assert text.endswith("  in (f,) }\n")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), {"cond": 1, "sin": 1, "cos": 1, "gt": 1}),
        (lambda x: lax.switch(1, [jnp.sin, jnp.cos, jnp.tanh], x), {"sin": 1, "cos": 1, "tanh": 1}),
        (lambda x: lax.while_loop(lambda x: x > 1, lambda x: jnp.sin(x), x), {"while": 1, "gt": 1, "sin": 1}),
        (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, 3)[0], {"scan": 1, "sin": 1}),
        (jax.jit(lambda x: jax.jit(jnp.sin)(x) + jax.jit(jnp.sin)(x)), {JIT: 3, "sin": 2, "add": 1}),
        (lambda x: jax.checkpoint(lambda y: jnp.sin(y))(x), {"sin": 1}),
        (halving, {"sin": 1}),
        (doubling, {"sin": 1}),
        (jax.grad(halving), {"cos": 1, "div": 1}),
        (jax.vmap(lambda x: lax.cond(True, jnp.sin, jnp.cos, x)), {"sin": 1, "cos": 1}),
        (lambda x: lax.custom_root(lambda y: y - x, x, lambda f, y: jnp.sin(y), lambda g, y: y), {"sin": 1}),
        (lambda x: lax.reduce(x, 0.0, lambda a, b: a * b, (0,)), {"reduce": 1, "mul": 1}),
        (sharded, {"shard_map": 1}),
    ],
    ids=["cond", "switch", "while", "scan", "jit", "remat", "vjp", "jvp", "grad", "vmap", "root", "reduce", "sharded"],
)
def test_primitives_of_inner_jaxprs_are_counted(function, expected):
    over_a_row = expected.keys() & {"reduce", "shard_map"} or expected == {"sin": 1, "cos": 1}
    found = primitives(function, np.ones(3, np.float32) if over_a_row else np.float32(1))
    assert found.items() >= expected.items()
    assert list(found) == sorted(found)


def test_custom_rules_and_psums_are_counted_as_primitives():
    found = primitives(lambda x: halving(x) + doubling(x) + sharded(x), np.ones(4, np.float32))
    assert any(name.startswith("custom_vjp_call") for name in found)
    assert any(name.startswith("psum") for name in found)
    assert found["custom_jvp_call"] == 1


def layer(x):
    return jnp.tanh(jnp.sin(x) + 1)


def test_a_shared_inner_jaxpr_is_printed_once():
    jitted = jax.jit(layer)
    found = described(lambda x: jitted(jitted(jitted(x))), np.float32(1))
    assert found.text.startswith("let layer = { lambda ; a:f32[]. let\n")
    assert found.text.count("tanh") == 1
    assert found.text.count("jaxpr=layer]") == 3
    assert found.summary.primitives["tanh"] == 3


def test_equal_inner_jaxprs_are_printed_once():
    assert described(lambda x: jax.jit(layer)(jax.jit(lambda y: layer(y))(x)), 1.0).text.count("tanh") == 1


@pytest.mark.skipif(jax.__version_info__ < (0, 5), reason="jax itself doubles its work at each level")
def test_calls_that_double_at_each_level_are_printed_once():
    function = jnp.sin
    for _ in range(24):
        function = jax.jit(lambda x, below=function: below(x) * below(x))
    found = described(function, np.float32(1))
    assert found.summary.primitives["sin"] == 2**24
    assert len(found.text) < 10_000


def test_constants_are_listed_by_type_and_never_printed():
    weights = np.arange(1000, dtype=np.float32)
    found = described(lambda x: (x * weights).sum() + np.array([1, 2, 3], np.int32), np.float32(1))
    assert sorted(found.summary.constants) == ["float32[1000]", "int32[3]"]
    assert found.text.startswith("{ lambda a:f32[1000] b:i32[3] ; c:f32[]. let"), "before the inputs"
    assert len(found.text) < 2000


def test_effects_are_reported_by_name():
    def printing(x):
        jax.debug.print("{}", x)
        jax.debug.print("{}", x, ordered=True)
        return x

    assert described(printing, 1.0).summary.effects == ("Debug", "OrderedDebug")
    assert described(jnp.sin, 1.0).summary.effects == ()


def test_prng_keys_have_a_key_type():
    text = described(lambda key: jax.random.uniform(key, (3,)), jax.random.key(0)).text
    assert "key<fry>[]" in text.splitlines()[0]


def test_symbolic_dimensions_are_printed():
    shape = jax.export.symbolic_shape("b, 2*b")
    found = described(lambda x: jnp.sin(x), jax.ShapeDtypeStruct(shape, np.float32))
    assert found.text == "{ lambda ; a:f32[b,2*b]. let b:f32[b,2*b] = sin a in (b,) }\n"


def test_unused_results_are_printed_as_underscores():
    assert described(lambda x: lax.sort((x, x), num_keys=1)[0], np.ones(3)).text.count("_:f32[3]") == 1


def test_no_variable_has_the_name_of_a_primitive_or_keyword():
    def long(x):
        for _ in range(300):
            x = jnp.sin(x)
        return lax.eq(x, x)

    binders = [line.split(":")[0].strip() for line in described(long, 1.0).text.splitlines()]
    assert "er" in binders
    assert not {"eq", "in"} & set(binders)


def test_a_second_export_gives_the_same_text():
    x = np.ones(3, np.float32)
    first = described(every_kind, x)
    np.set_printoptions(precision=3)
    try:
        jax.clear_caches()
        assert described(every_kind, x) == first
    finally:
        np.set_printoptions(precision=8)


def test_another_process_gives_the_same_text():
    program = (
        "import numpy as np; from export.test_jaxprs import described, every_kind; "
        "found = described(every_kind, np.ones(3, np.float32)); print(found.text, found.summary)"
    )
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(root)}
    command = [sys.executable, "-W", "ignore", "-c", program]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    here = described(every_kind, np.ones(3, np.float32))
    assert text == f"{here.text} {here.summary}\n"
    assert not any(part in text for part in ("0x", ".py", str(root)))


class Opaque:
    """An object without a `repr` of its own."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (jnp.sin, "sin"),
        (functools.partial(divmod, 1, b=2), "partial(divmod, 1, b=2)"),
        (Opaque(), "Opaque"),
        ((Opaque(),), "(Opaque,)"),
        ({"b": 1, "a": frozenset({"y", "x"})}, "{a: {x, y}, b: 1}"),
        (np.dtype("float32"), "float32"),
        (np.array([1.0, 2.0], np.float32), "[1.0, 2.0]:float32[2]"),
        ("kernel at /home/me/model.py:12", "'kernel at <file>'"),
        ("two words", "'two words'"),
        (lax.GatherScatterMode.CLIP, "GatherScatterMode.CLIP"),
    ],
)
def test_a_parameter_is_printed_the_same_in_each_process(value, text):
    assert value_text(value) == text


@pytest.mark.parametrize(
    ("first", "other", "start"),
    [(np.zeros(1000), np.ones(1000), "float64[1000] SHA-256 "), ("a " * 1000 + "b", "a " * 1000 + "c", "'a a a ")],
)
def test_long_values_with_equal_beginnings_are_printed_differently(first, other, start):
    assert value_text(first).startswith(start)
    assert len(value_text(first)) < 500
    assert value_text(first) != value_text(other)

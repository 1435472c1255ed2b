"""Functions that jax refuses to export, call or differentiate, with the messages that docs/reference/cases.md quotes.

A refusal names the line of the user's code.
"""

import linecache
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify, io_callback
from jax.experimental import pallas as pl
from jax.experimental.custom_partitioning import custom_partitioning
from jax.experimental.layout import Layout, with_layout_constraint
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from export_core.export import api
from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.export.produce import export_again
from export_core.export.refusals import describe_callbacks, lost_kind

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "reference" / "cases.md").read_text(encoding="utf-8").split())
X = np.ones((4, 2), np.float32)


def exported(function, *args):
    return jax.export.export(jax.jit(function))(*args)


def rehydrated(vjp_order=0):
    return jax.export.deserialize(exported(jnp.sin, X).serialize(vjp_order=vjp_order)).call


def over_four_devices():
    return Mesh(np.array(jax.devices()[:4]), ("a",))


def custom_partitioning_over_devices():
    doubled = custom_partitioning(lambda x: x * 2)
    doubled.def_partition(
        infer_sharding_from_operands=lambda *_: None, partition=lambda *_: None, sharding_rule="i j -> i j"
    )
    jax.export.export(jax.jit(doubled, in_shardings=NamedSharding(over_four_devices(), P("a"))))(X)


def an_error_of_checkify():
    exported(checkify.checkify(lambda x: checkify.check(x.sum() > 0, "no sum")), X).serialize()


def a_ragged_exchange():
    def exchange(x):
        return lax.ragged_all_to_all(x[0], jnp.zeros(2, np.float32), *[jnp.zeros(4, jnp.int32)] * 4, axis_name="a")

    exported(jax.shard_map(exchange, mesh=over_four_devices(), in_specs=P("a"), out_specs=P("a")), X)


def a_key_of_a_newer_generator():
    try:
        key = jax.random.key(0, impl="philox4x32")
    except ValueError:
        pytest.skip(f"jax {jax.__version__} has no philox4x32")
    exported(lambda key: key, key).serialize()


def a_reference_that_is_closed_over():
    ref = jax.new_ref(X)
    exported(lambda x: x + ref[...], X)


def a_layout_constraint():
    exported(lambda x: with_layout_constraint(x, Layout((1, 0))), X)


def a_size_without_a_bound():
    sizes = jax.export.symbolic_shape("n, 2")
    exported(lambda x: x if x.shape[0] >= 2 else -x, jax.ShapeDtypeStruct(sizes, np.float32))


def a_size_as_a_number():
    exported(lambda x: x * len(x), jax.ShapeDtypeStruct(jax.export.symbolic_shape("n"), np.float32))


MESSAGES = [
    (NotImplementedError, "", lambda: exported(lambda ref: ref[...], jax.new_ref(X))),
    (ValueError, "Too many leaves for PyTreeDef", a_reference_that_is_closed_over),
    (ValueError, "mutable array references cannot be returned", lambda: exported(jax.new_ref, X)),
    (ValueError, "no compatibility guarantees.*LayoutConstraint", a_layout_constraint),
    (NotImplementedError, "serialization of host_callbacks is not yet implemented", custom_partitioning_over_devices),
    (TypeError, "Serialization is supported only for dictionaries with string keys", an_error_of_checkify),
    (ValueError, "no compatibility guarantees.*ragged_all_to_all", a_ragged_exchange),
    (NotImplementedError, "Batching rule for 'call_exported' not implemented", lambda: jax.vmap(rehydrated())(X[None])),
    (TypeError, "can't apply forward-mode autodiff", lambda: jax.jvp(rehydrated(vjp_order=1), (X,), (X,))),
    (ValueError, "No VJP is available", lambda: jax.grad(lambda x: rehydrated()(x).sum())(X)),
    (Exception, "Symbolic dimension comparison 'n' >= '2' is inconclusive", a_size_without_a_bound),
    (TypeError, "'_DimExpr' object cannot be interpreted as an integer", a_size_as_a_number),
    (KeyError, "key<phx4>", a_key_of_a_newer_generator),
]


@pytest.mark.parametrize(("kind", "message", "refused"), MESSAGES)
def test_jax_refuses_with_the_documented_message(kind, message, refused):
    with pytest.raises(kind) as error:
        refused()
    assert re.search(message or "^$", str(error.value), re.DOTALL)
    for part in message.split(".*"):
        assert part in PAGE


THREE = np.arange(3, dtype=np.float32)


def own_call(x):
    y = jnp.sin(x)
    return jax.ffi.ffi_call("a_call_of_ours", jax.ShapeDtypeStruct(x.shape, x.dtype))(y)  # refused


def without_a_lowering(x):
    return jax.lax.scan(lambda c, _: (jax.lax.platform_dependent(c, tpu=jnp.sin), None), x, length=3)[0]  # refused


def kernel(x):
    return pl.pallas_call(lambda a, o: o.__setitem__(..., a[...]), out_shape=x)(x)  # refused


@pytest.mark.parametrize("function", [own_call, without_a_lowering, kernel])
def test_a_refusal_names_the_line_of_user_code(exported, function):
    with pytest.raises(ExportError, match=r" at \S*test_refused_by_jax\.py:\d+ in \S+: .*# refused"):
        exported(function, THREE)


@pytest.mark.parametrize(
    ("function", "bound"),
    [
        (lambda x: x if x.shape[0] >= 2 else -x, "n >= 2"),
        (lambda x: x[: max(x.shape[0], 3)], "n >= 3"),
        (lambda x: x if x.shape[0] > 3 else -x, "n >= 4"),
        (lambda x: x if x.shape[0] <= 1 else -x, "n >= 2"),
        (lambda x: lax.slice(x, (2, 0), x.shape), "n >= 2"),
        (lambda x: jnp.diff(x, n=2, axis=0), "n >= 2"),
    ],
    ids=["at least", "max", "more", "at most", "in a function of jax", "shapes for large sizes only"],
)
def test_an_unbounded_symbolic_size_error_has_a_remedy(exported, function, bound):
    with pytest.raises(ExportError, match=re.escape(f'constraints=("{bound}",) beside symbolic_shapes')) as refused:
        exported(function, X, symbolic_shapes="n, 2")
    if "inconclusive" in str(refused.value):
        assert re.search(r"\nIt is compared at \S*test_refused_by_jax\.py:\d+ in <lambda>: ", str(refused.value))
    exported(function, X, symbolic_shapes="n, 2", constraints=(bound,))


@pytest.mark.parametrize(
    "function",
    [lambda x: x.reshape((2, -1, 2)), lambda x: x[: x.shape[0] // 2] + x[x.shape[0] // 2 :]],
    ids=["divided", "halves"],
)
def test_a_divided_symbolic_size_error_has_a_remedy(exported, function):
    with pytest.raises(ExportError, match=re.escape('write "2*n" in symbolic_shapes, in the place of "n"')):
        exported(function, X, symbolic_shapes="n, 2")
    exported(function, X, symbolic_shapes="2*n, 2")


def loops_over_a_size(x):
    for _ in range(x.shape[0]):
        x = x + 1
    return x


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * len(x),
        loops_over_a_size,
        lambda x: x + np.zeros(x.shape[0]),
        lambda x: x * float(x.shape[0]),
    ],
)
def test_a_symbolic_size_used_as_a_number_is_an_error_with_a_remedy(exported, function):
    with pytest.raises(ExportError, match=r"\nIt is raised at \S*test_refused_by_jax\.py:\d+ in \S+: ") as refused:
        exported(function, X[:, 0], symbolic_shapes="n")
    assert "A symbolic size is no Python number" in str(refused.value)
    exported(lambda x: x * x.shape[0], X[:, 0], symbolic_shapes="n")


def test_an_error_of_the_users_function_is_raised_unchanged(exported):
    def fails(_):
        raise AssertionError("mine")

    with pytest.raises(AssertionError, match="mine"):
        exported(fails, X)


# --- callbacks --------------------------------------------------------------------------------------------------------


def prints(x: Any) -> Any:
    jax.debug.print("x {}", x)
    return x


@jax.custom_vjp
def rule(x: Any) -> Any:
    return jax.pure_callback(np.sin, x, x)


rule.defvjp(lambda x: (rule(x), x), lambda _, cotangent: (cotangent,))


def in_scan(x: Any) -> Any:
    return jax.lax.scan(lambda carry, _: (prints(carry), None), x, None, length=2)[0]


def checked(x: Any) -> Any:
    checkify.check(x > 0, "x is {}", x)
    return x


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (in_scan, r'debug_(print|callback) at {} in prints: jax.debug.print\("x {{}}", x\)'),
        (jax.grad(in_scan), r"debug_(print|callback) at {} in prints: jax.debug.print\("),
        (lambda x: jax.vmap(prints)(x[None]), r"debug_(print|callback) at {} in prints: jax.debug.print\("),
        (lambda x: jax.lax.cond(x > 0, rule, abs, x), r"pure_callback at {} in rule: return jax.pure_callback\("),
        (jax.jit(lambda x: io_callback(print, None, x)), r"io_callback at {} in <lambda>: .*io_callback\("),
        (checked, r"check at {} in checked: checkify.check\(.*\nExport jax.jit"),
    ],
    ids=["scan", "gradient", "vmap", "custom_vjp in cond", "jit", "checkify"],
)
def test_a_callback_is_reported_with_its_line(function: Callable[..., Any], expected: str) -> None:
    text = describe_callbacks(jax.jit(function).trace(jnp.float32(1)).jaxpr)
    assert re.fullmatch(expected.format(r".*test_refused_by_jax.py:\d+") + ".*", text), text


def test_a_debug_callback_is_reported_without_advice() -> None:
    assert "\n" not in describe_callbacks(jax.make_jaxpr(prints)(1.0))


def test_two_callbacks_in_one_line_are_reported_once() -> None:
    def twice(x: Any) -> Any:
        return prints(prints(x))

    assert describe_callbacks(jax.make_jaxpr(twice)(1.0)).count("debug_") == 1


def compiled(body: str, file: str, **names: Any) -> Any:
    """Compile a function `call` as if a file of a library defined it, and return it."""
    found = {"jax": jax, **names}
    exec(compile(f"def call(x):\n{body}", file, "exec"), found)
    return found["call"]


def test_callbacks_beyond_the_fifth_are_only_counted() -> None:
    body = "".join(f"    jax.debug.callback(print, {number})\n" for number in range(7)) + "    return x\n"
    linecache.cache["many.py"] = (1, None, ["def call(x):\n", *body.splitlines(keepends=True)], "many.py")
    text = describe_callbacks(jax.make_jaxpr(compiled(body, "many.py"))(1.0))
    assert text.splitlines()[4:] == ["debug_callback at many.py:6 in call: jax.debug.callback(print, 4)", "and 2 more"]


CALLS_BACK = "    return jax.pure_callback(abs, x, x)\n"


def test_the_line_of_a_callback_in_a_library_is_named() -> None:
    error_if = compiled(CALLS_BACK, "/lib/site-packages/equinox/_errors.py")

    def step(x: Any) -> Any:
        return error_if(x)

    text = describe_callbacks(jax.make_jaxpr(step)(1.0))
    assert re.match(
        r"pure_callback \(equinox/_errors.py:2\) at .*test_refused_by_jax.py:\d+ in step: return error_if", text
    )
    assert "EQX_ON_ERROR=nan" in text


@pytest.mark.parametrize("file", ["/lib/site-packages/equinox/_module.py", "<string>"], ids=["equinox", "init"])
def test_a_library_that_only_passes_a_call_on_is_not_named(file: str) -> None:
    outer = compiled("    return inner(x)\n", file, inner=compiled(CALLS_BACK, "/lib/site-packages/gp/solver.py"))
    text = describe_callbacks(jax.make_jaxpr(lambda x: outer(x))(1.0))
    assert re.match(r"pure_callback \(gp/solver.py:2\) at .*test_refused_by_jax.py:", text)
    assert "EQX_ON_ERROR" not in text


def test_a_callback_that_no_equation_makes_is_reported(monkeypatch):
    monkeypatch.delitem(sys.modules, "equinox", raising=False)
    text = describe_callbacks(jax.make_jaxpr(jnp.sin)(1.0))
    assert text.startswith("No equation of the function makes the call")
    assert "EQX_ON_ERROR" not in text
    monkeypatch.setitem(sys.modules, "equinox", object())
    assert "EQX_ON_ERROR=nan" in describe_callbacks(jax.make_jaxpr(jnp.sin)(1.0))


def test_a_triton_kernel_without_a_gpu_is_an_error(monkeypatch):
    """The message is that of jax 0.11 and later."""
    refusal = "No supported GPU devices found, please specify an abstract GPU device using AbstractDevice."

    def refuse(*_, **__):
        raise RuntimeError(refusal)

    monkeypatch.setattr(api, "export_function", refuse)
    case = Case("t.f", "test_t.py::test_f", None, jax.jit(jnp.sin), (X,), {})
    with pytest.raises(
        ExportError, match=r"No supported GPU .*\n(?:It is .*\n)?A Triton kernel is .*use_abstract_mesh\(jax\.sharding"
    ):
        export_again(case)
    refusal = "out of memory"
    with pytest.raises(RuntimeError, match=r"^out of memory$"):
        export_again(case)


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="needs jax 0.12: arrays that are unreduced by max")
def test_a_result_that_is_unreduced_by_max_is_refused():
    from jax.sharding import UnreducedKind

    with jax.set_mesh(jax.make_mesh((4,), ("a",))):
        for kind, expected in ((UnreducedKind.max, "result 0 is unreduced over a by max"), (UnreducedKind.sum, "")):
            spec = P(None, unreduced={"a"}, unreduced_kind=kind)
            reduce = lax.reduce_max if kind is UnreducedKind.max else lax.reduce_sum
            whole = jax.export.export(jax.jit(lambda x, r=reduce, s=spec: r(x, axes=(0,), out_sharding=s)))(
                jax.device_put(np.ones((8, 4), np.float32), P("a"))
            )
            assert expected in (found := lost_kind("t", whole))
            assert bool(found) == bool(expected)

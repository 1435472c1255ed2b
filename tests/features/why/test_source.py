"""A reduced module as a program of JAX: its outputs are those of the artifact, bit for bit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from export_core.artifact import read_bytes
from export_core.features.why.reduce.editor import ModuleEditor
from export_core.features.why.reduce.reduced_program import flat_program
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import INPUTS
from export_core.readers.environment import this_interpreter

F32 = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
POSITIVE = np.abs(F32) + np.float32(0.25)
LONG = np.linspace(0, 1, 40, dtype=np.float32)
BF16 = F32.astype(jnp.bfloat16)
I32 = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)
C64 = F32 + np.complex64(1j)
TARGET = "nobody's\\call"
UNCHECKED = [jax.export.DisabledSafetyCheck.custom_call(TARGET)]


def elementwise(x):
    y = lax.select(x > 0, lax.exp(x), lax.sin(x)) - lax.rsqrt(x * x + 1)
    return lax.max(y, lax.tanh(x)), lax.round(x), lax.is_finite(y), lax.clamp(np.float32(-1), x, np.float32(1)), x**3


def integers(x, u):
    return (x << 2) ^ ~x, lax.rem(x, jnp.full_like(x, 4)), lax.population_count(u), u // 3, (x > 1) & (x < 4), -x


def products(x, y):
    batched = lax.dot_general(x[None], y[None], (((2,), (1,)), ((0,), (0,))), precision=lax.Precision.HIGHEST)
    return batched, jnp.dot(x, y), jnp.einsum("ij,kj->ik", x, x, preferred_element_type=jnp.float32)


def shapes(x):
    padded = lax.pad(x, np.float32(7), ((1, 0, 1), (0, -1, 0)))
    parts = lax.concatenate([x.T, lax.rev(x.T, (0,))], 1)
    return padded, parts, x[1:, ::2], x.reshape(2, 6), lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)), lax.iota(np.int32, 5)


def reductions(x, k):
    return (
        x.sum(0),
        x.max(),
        lax.reduce_min(k, (1,)),
        (x > 0).all(1),
        lax.reduce_prod(x, (0, 1)),
        lax.reduce_or(k, (0,)),
    )


def dtypes(x):
    narrow = x.astype(jnp.bfloat16) * 2
    return (
        narrow,
        x.astype(jnp.int4),
        x.astype(jnp.float8_e4m3fn),
        lax.bitcast_convert_type(x, np.int32),
        x.astype(bool),
    )


def constants(x):
    table = np.array([[0.1, -0.0, np.nan], [np.inf, -np.inf, 3.4e38]], np.float32)
    return (
        x + np.float32(0.1),
        table,
        np.array([1, 2], jnp.int4),
        np.full((30,), True),
        np.array([1 - 2j], np.complex64),
    )


def in_place(x, i):
    row = lax.dynamic_slice(x, (i, 0), (1, 4))
    return lax.dynamic_update_slice(x, row * 2, (1, i)), lax.optimization_barrier(row), lax.reduce_precision(x, 5, 3)


def complexes(z):
    return z.real, lax.conj(z), lax.complex(z.imag, z.real) * z, abs(z)


def composites(x):
    return (*lax.top_k(x, 2), lax.erf(x), lax.sinh(x))


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (elementwise, (F32,)),
    (integers, (I32, I32.astype(np.uint8))),
    (products, (F32, POSITIVE.T)),
    (products, (BF16, BF16.T)),
    (shapes, (F32,)),
    (reductions, (F32, I32)),
    (dtypes, (F32,)),
    (constants, (np.ones((2, 50), np.float32),)),
    (in_place, (F32, np.int32(-1))),
    (complexes, (C64,)),
    (composites, (F32,)),
    (lambda x, y: (x * 2, y.astype(jnp.float32)), (LONG, LONG.astype(jnp.bfloat16))),
]


@pytest.fixture(scope="module")
def editor(here, tmp_path_factory) -> Iterator[ModuleEditor]:
    with ModuleEditor(this_interpreter(here)) as made:
        yield made


@pytest.fixture
def source(editor) -> Callable[..., tuple[jax.export.Exported, bytes, str]]:
    """Export a function; the source of its module, once its functions are inlined, or why there is none."""

    def source(function: Callable[..., Any], *args: Any) -> tuple[jax.export.Exported, bytes, str]:
        exported = jax.export.export(jax.jit(function), disabled_checks=UNCHECKED)(*args)
        artifact = read_bytes(bytes(exported.serialize()), "artifact")
        program = flat_program(artifact, 0, [leaf_of(array) for array in args])
        summary, code, text = editor.edited(program.module, [("inline",)])
        assert not summary.refused, summary.refused
        inlined = program.edited(summary, code, text, {})
        return exported, *editor.source(inlined.module, inlined.arrays)

    return source


def run(text: bytes, folder: Path, args: tuple[Any, ...]) -> list[np.ndarray]:
    """The outputs of a source, in a folder as `jaxexport reduce` leaves it."""
    (folder / INPUTS).write_bytes(to_npz(map(leaf_of, args)))
    names: dict[str, Any] = {"__name__": "source", "__file__": str(folder / "source.py")}
    exec(text, names)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(names["function"])(*names["ARGS"]))]


@pytest.mark.parametrize(("function", "args"), PROGRAMS)
def test_a_source_gives_what_the_artifact_gives(function, args, source, tmp_path):
    exported, text, refused = source(function, *args)
    assert not refused
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(exported.call(*args))]
    found = run(text, tmp_path, args)
    assert [(one.dtype, one.shape, one.tobytes()) for one in found] == [
        (one.dtype, one.shape, one.tobytes()) for one in expected
    ]


@pytest.fixture
def same_64_bits() -> Iterator[None]:
    """A source of 64-bit numbers turns them on."""
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def with_64_bits(same_64_bits: None) -> None:
    jax.config.update("jax_enable_x64", True)


def test_a_source_with_64_bits_asks_for_them(with_64_bits, source, tmp_path):
    exported, text, refused = source(lambda x: (x * 0.1, x.astype(np.int64)), np.float64([1.5, 2.5]))
    assert not refused
    jax.config.update("jax_enable_x64", False)
    found = run(text, tmp_path, (np.float64([1.5, 2.5]),))
    assert [leaf.tolist() for leaf in found] == [leaf.tolist() for leaf in exported.call(np.float64([1.5, 2.5]))]
    assert [leaf.dtype.name for leaf in found] == ["float64", "int64"]


def calls(x, y):
    kinds = [jax.ShapeDtypeStruct((3, 4), np.float32), jax.ShapeDtypeStruct((2, 3), np.int32)]
    layouts = {"input_layouts": [(1, 0), None], "output_layouts": [None, (0, 1)], "input_output_aliases": {1: 0}}
    call = jax.ffi.ffi_call(TARGET, kinds, has_side_effect=True, **layouts)
    return call(x.T, y, uplo=np.uint8(76), rank=3, lower=True, mode="a'b\\", wide=np.int64(-1))


def test_a_call_of_the_ffi_keeps_all_that_it_says(source, same_64_bits):
    """Nobody has registered it, so that the lowered calls are compared."""
    _, text, refused = source(calls, F32, F32)
    assert not refused
    names: dict[str, Any] = {"__name__": "source"}
    exec(text, names)
    (call,), (original,) = (
        [line.strip() for line in module.splitlines() if "custom_call" in line]
        for module in (
            jax.jit(names["function"]).lower(*names["ARGS"]).as_text(),
            jax.jit(calls).lower(F32, F32).as_text(),
        )
    )
    assert call == original


@pytest.mark.parametrize(
    ("function", "args", "why"),
    [
        (lambda x: lax.while_loop(lambda x: x[0, 0] < 9, lambda x: x + 1, x), (F32,), "stablehlo.while has no line"),
        (lambda x: x @ jnp.arange(80, dtype=np.float32).reshape(4, 20).at[0].set(1), (F32,), "stablehlo.scatter"),
        (lambda x: x + np.arange(24, dtype=np.float32).reshape(2, 3, 4), (F32,), "constant of tensor<2x3x4xf32>"),
        (lambda x: jnp.argmax(x, 0), (F32,), "stablehlo.reduce by more than one function has no line of its own"),
        (lambda x: functools.reduce(lambda x, _: jnp.sin(x), range(101), x), (F32,), "more than 100 operations"),
        (lambda x: lax.sort(x), (F32,), "stablehlo.sort has no line of its own"),
        (lambda x: lax.linalg.qr(x), (F32,), "a call of LAPACK by jax.ffi crashes in every release"),
    ],
)
def test_what_has_no_line_of_its_own_has_no_source(function, args, why, source):
    _, text, refused = source(function, *args)
    assert not text
    assert why in refused


def test_a_program_of_two_platforms_has_a_source_where_it_does_not_ask_for_them(editor):
    def refused(function: Callable[..., Any]) -> str:
        exported = jax.export.export(jax.jit(function), platforms=("cpu", "cuda"))(F32)
        program = flat_program(read_bytes(bytes(exported.serialize()), "artifact"), 0, [leaf_of(F32)])
        return editor.source(program.module, program.arrays)[1]

    assert refused(lambda x: x + x) == ""
    assert refused(lambda x: lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos)).startswith(
        "its operations depend on"
    )


def test_a_donated_argument_has_no_line_of_its_own(editor):
    exported = jax.export.export(jax.jit(lambda x: x + 1, donate_argnums=0))(F32)
    program = flat_program(read_bytes(bytes(exported.serialize()), "artifact"), 0, [leaf_of(F32)])
    assert editor.source(program.module, program.arrays)[1] == "tf.aliasing_output has no line of its own"

"""A reduced module as a program of JAX: its outputs are those of the artifact, bit for bit."""

from __future__ import annotations

import sys
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
from export_core.environments.environment import this_interpreter
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import INPUTS
from export_core.why.reduction.editor import ModuleEditor
from export_core.why.reduction.reduced_program import flat_program

F32 = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
POSITIVE = np.abs(F32) + np.float32(0.25)
LONG = np.linspace(0, 1, 40, dtype=np.float32)
BF16 = F32.astype(jnp.bfloat16)
I32 = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)
C64 = F32 + np.complex64(1j)
SQUARE = np.random.default_rng(21).normal(size=(3, 3)).astype(np.float32)
UNCHECKED = [jax.export.DisabledSafetyCheck.custom_call(target) for target in ("nobody_has_registered_this",)]


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
    return x.sum(0), x.max(), lax.reduce_min(k, (1,)), (x > 0).all(1), lax.reduce_prod(x, (0, 1)), lax.reduce_or(k, (0,))


def dtypes(x):
    narrow = x.astype(jnp.bfloat16) * 2
    return narrow, x.astype(jnp.int4), x.astype(jnp.float8_e4m3fn), lax.bitcast_convert_type(x, np.int32), x.astype(bool)


def constants(x):
    table = np.array([[0.1, -0.0, np.nan], [np.inf, -np.inf, 3.4e38]], np.float32)
    return x + np.float32(0.1), table, np.array([1, 2], jnp.int4), np.full((30,), True), np.array([1 - 2j], np.complex64)


def in_place(x, i):
    row = lax.dynamic_slice(x, (i, 0), (1, 4))
    return lax.dynamic_update_slice(x, row * 2, (1, i)), lax.optimization_barrier(row), lax.reduce_precision(x, 5, 3)


def complexes(z):
    return z.real, lax.conj(z), lax.complex(z.imag, z.real) * z, abs(z)


def composites(x):
    return (*lax.top_k(x, 2), lax.erf(x), lax.sinh(x))


def wide(x):
    return x * np.float64(0.1), x.astype(np.int64)


def triangular(x):
    return lax.linalg.lu(x)[:2], lax.linalg.geqrf(x) if hasattr(lax.linalg, "geqrf") else x


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
    (triangular, (SQUARE,)),
]


@pytest.fixture(scope="module")
def editor(here, tmp_path_factory) -> Iterator[ModuleEditor]:
    with ModuleEditor(this_interpreter(here), tmp_path_factory.mktemp("editing")) as made:
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
    assert not refused, exported.mlir_module()
    print(text.decode(), file=sys.stderr)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(exported.call(*args))]
    found = run(text, tmp_path, args)
    assert [(one.dtype, one.shape, one.tobytes()) for one in found] == [
        (one.dtype, one.shape, one.tobytes()) for one in expected
    ]

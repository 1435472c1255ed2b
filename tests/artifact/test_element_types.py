"""Operations with the element types that they are used with, as jaxlib's own parser sees them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from export_core.artifact import read_bytes
from export_core.artifact.bytecode.element_types import FLOW, element_types

F32, I32, F16 = (jax.ShapeDtypeStruct((8,), dtype) for dtype in (np.float32, np.int32, np.float16))


def artifact_of(function, *arguments):
    return read_bytes(bytes(export.export(jax.jit(function), platforms=("cpu",))(*arguments).serialize()))


def types_of(function, *arguments):
    return element_types(artifact_of(function, *arguments).module)


def symbolic(dtype=np.float32):
    return jax.ShapeDtypeStruct(export.symbolic_shape("b"), dtype)


def test_an_operation_has_its_operand_and_result_types():
    types = types_of(lambda x, y: jnp.where(x < 0, x, y.astype(np.float32)), F32, I32)
    assert types["stablehlo.compare"] == {"f32->i1"}
    assert types["stablehlo.convert"] == {"i32->f32"}
    assert types["stablehlo.select"] == {"i1,f32->f32"}


def test_a_dot_has_the_type_in_which_it_sums():
    assert types_of(lambda x: lax.dot(x, x), F16)["stablehlo.dot_general"] == {"f16->f16"}
    wide = types_of(lambda x: lax.dot(x, x, preferred_element_type=jnp.float32), F16)
    assert wide["stablehlo.dot_general"] == {"f16->f32"}


def test_the_body_of_a_reduction_is_part_of_its_name():
    types = types_of(lambda x: lax.reduce(x, np.float32(0), lax.max, (0,)), F32)
    assert types["stablehlo.reduce(maximum)"] == {"f32->f32"}
    assert "stablehlo.maximum" not in types


def test_operations_inside_a_loop_are_found():
    types = types_of(lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y), x), F32)
    assert types["stablehlo.sine"] == {"f32->f32"}
    assert types["stablehlo.while"] == frozenset()


def test_a_type_with_a_symbolic_dimension_has_a_question_mark():
    assert types_of(lambda x: x * x, symbolic())["stablehlo.multiply"] == {"?f32->?f32"}


def test_a_complex_type_is_named_by_the_type_of_its_parts():
    complex64 = jax.ShapeDtypeStruct((2,), np.complex64)
    assert types_of(lambda x: jnp.real(x) > 0, complex64)["stablehlo.real"] == {"complex<f32>->f32"}


def loop(x):
    return lax.while_loop(lambda carry: carry[0] < 4, lambda carry: (carry[0] + 1, jnp.cumsum(carry[1])), (0, x))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (loop, (F32,)),
        (lambda x, i: x.at[i].add(1), (F32, I32)),
        (lambda x: lax.cond(x[0] > 0, lambda y: jnp.sort(y), lambda y: lax.top_k(y, 8)[0], x), (F32,)),
        (lambda x, y: jnp.fft.fft(x) + y, (F32, F16)),
        (lambda x: jax.nn.softmax(x) + jnp.arange(x.shape[0]), (symbolic(),)),
        (jax.grad(lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "SAME").sum()), (F32,)),
    ],
    ids=["loop", "scatter", "branches", "complex", "symbolic", "windows"],
)
def test_element_types_equal_those_that_jaxlib_finds(function, arguments):
    artifact = artifact_of(function, *arguments)
    with ir.Context() as context:
        stablehlo.register_dialect(context)
        module = stablehlo.deserialize_portable_artifact(context, artifact.module.serialized())
        expected: dict[str, set[str]] = {}
        for operation in module.body.operations:
            gather(operation, expected)
    found = element_types(artifact.module)
    assert {name: set(types) for name, types in found.items() if name not in FLOW} == expected


def gather(operation, expected):
    """Add to `expected` the element types of an operation, and of those inside it, by name, as jaxlib prints them."""
    own, inside = operation.operation, set()
    blocks = [block for region in own.regions for block in region.blocks]
    name = own.name.replace("func.func", "stablehlo.func").replace("func.", "stablehlo.")
    has_body = bool(blocks) and name not in FLOW
    for block in blocks:
        for inner in block.operations:
            if not has_body:
                gather(inner, expected)
            elif inner.operation.name not in ("stablehlo.return", "stablehlo.constant"):
                inside.add(inner.operation.name.removeprefix("stablehlo."))
    if name in FLOW:
        return
    sides = [dict.fromkeys(element(str(value.type)) for value in side) for side in (own.operands, own.results)]
    types = "->".join(map(",".join, sides))
    expected.setdefault(name + (f"({','.join(sorted(inside))})" if has_body else ""), set()).add(types)


def element(text):
    match = re.fullmatch(r"tensor<([\dx?]*x)?([^,]*)(,.*)?>", text)
    return ("?" if "?" in text else "") + match[2] if match else text.removeprefix("!stablehlo.")

"""Every dtype that an artifact can hold, and what of an argument's kind is no dtype: keys, Python numbers, static, donated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

WIDE = ("int64", "uint64", "float64", "complex128")
NARROW = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "bfloat16", "complex64")
TINY = (
    "int4",
    "uint4",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
)


def of_dtype(name):
    if not hasattr(jnp, name if name != "bool" else "bool_"):
        pytest.skip(f"jax {jax.__version__} has no {name}")
    return np.array([1, 2, 0, 1, 4, 2]).astype(jnp.dtype(name))


@pytest.fixture
def x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.export_compat
@pytest.mark.parametrize("name", NARROW)
def test_dtype(export_golden, name):
    export_golden(jax.jit(lambda x: (x[::-1], x + x, jnp.where(x == 0, x, x * x))), of_dtype(name))


@pytest.mark.export_compat
@pytest.mark.parametrize("name", WIDE)
def test_wide_dtype(export_golden, name, x64):
    export_golden(jax.jit(lambda x: (x[::-1], x * x)), of_dtype(name))


@pytest.mark.export_compat
@pytest.mark.parametrize("name", TINY)
def test_tiny_dtype(export_golden, name):
    export_golden(jax.jit(lambda x: (x.reshape(2, 3).T, x.astype(jnp.float32) * 2)), of_dtype(name))


@pytest.mark.export_compat
@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_key(export_golden, implementation):
    key = jax.random.key(3, impl=implementation)
    export_golden(jax.jit(lambda key: (jax.random.bits(key, (3,)), jax.random.split(key), key)), key)


@pytest.mark.export_compat
def test_python_numbers(export_golden, numbers):
    """A Python number takes the type of an array that it is combined with, and keeps its own type without one."""
    export_golden(
        jax.jit(lambda x, a, b, c: (x * a, a * 2, b, x.astype(jnp.bfloat16) * a, c)), numbers(3), 2.5, 3, True
    )


@pytest.mark.export_compat
def test_static(export_golden, numbers):
    def chosen(x, what, times=1):
        return {"sum": x.sum, "max": x.max}[what]() * times

    function = jax.jit(chosen, static_argnums=1, static_argnames="times")
    export_golden(function, numbers(4), "sum", times=3)


@pytest.mark.export_compat
def test_donated(export_golden, numbers):
    export_golden(jax.jit(lambda x, y: x + y, donate_argnums=0), jnp.asarray(numbers(64)), numbers(64, offset=3))


@pytest.mark.export_compat
def test_scalar(export_golden):
    export_golden(jax.jit(lambda x: x * 2), np.float32(1.5))

"""Dimensions that are known only when the artifact is called: expressions, constraints, several shapes, refused shapes."""

import jax
import jax.numpy as jnp
import pytest


@pytest.mark.export_compat(symbolic_shapes=("b, 3",))
def test_one_dimension(export_golden, numbers):
    exported = export_golden(jax.jit(lambda x: x.sum(0) / x.shape[0]), numbers(2, 3))
    exported.also(numbers(5, 3))
    exported.refused(numbers(2, 4))
    exported.refused(numbers(2, 3).astype("int32"))


@pytest.mark.export_compat(symbolic_shapes=("b", "2*b", "b+1"))
def test_expressions(export_golden, numbers):
    exported = export_golden(
        jax.jit(lambda x, y, z: jnp.concatenate([x, y, z[1:]])), numbers(2), numbers(4), numbers(3)
    )
    exported.also(numbers(5), numbers(10), numbers(6))
    exported.refused(numbers(2), numbers(5), numbers(3))


@pytest.mark.export_compat(symbolic_shapes=("b, _",))
def test_quotient_and_remainder(export_golden, numbers):
    exported = export_golden(jax.jit(lambda x: (x[: x.shape[0] // 2], x[: x.shape[0] % 3])), numbers(5, 2))
    exported.also(numbers(4, 2))
    exported.also(numbers(9, 2))


@pytest.mark.export_compat(symbolic_shapes=("b",), constraints=("b >= 2", "b <= 8", "mod(b, 2) == 0"))
def test_constraints(export_golden, numbers):
    exported = export_golden(jax.jit(lambda x: x * x.shape[0]), numbers(4))
    exported.also(numbers(8))
    exported.refused(numbers(1), match="b >= 2")
    exported.refused(numbers(10), match="b <= 8")
    exported.refused(numbers(3), match="mod|floordiv")


@pytest.mark.export_compat(symbolic_shapes=("m, k", "k, n"))
def test_several_dimensions(export_golden, numbers):
    exported = export_golden(jax.jit(jnp.matmul), numbers(2, 3), numbers(3, 4))
    exported.also(numbers(1, 5), numbers(5, 1))
    exported.refused(numbers(2, 3), numbers(4, 4))


@pytest.mark.export_compat(symbolic_shapes=("b, ...", None))
def test_one_argument_of_two(export_golden, numbers):
    exported = export_golden(jax.jit(lambda x, weights: x @ weights), numbers(2, 3), numbers(3, 2))
    exported.also(numbers(7, 3), numbers(3, 2, offset=1))
    exported.refused(numbers(2, 3), numbers(3, 3))


@pytest.mark.export_compat(symbolic_shapes=("b, 3",), vjp_order=1)
def test_with_derivative(export_golden, numbers):
    export_golden(jax.jit(lambda x: jnp.sin(x).sum(0)), numbers(2, 3)).also(numbers(4, 3))


@pytest.mark.export_compat(symbolic_shapes=("b, n",), platforms=["cpu", "tpu"])
def test_on_several_platforms(export_golden, numbers):
    exported = export_golden(jax.jit(lambda x: jnp.cumsum(x, axis=0).reshape(-1)), numbers(2, 3))
    exported.also(numbers(3, 1))
    exported.refused(numbers(2))

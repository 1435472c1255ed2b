"""Programs whose results are moved inside: which move, by how much, and what stays as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from export_core.numbers.elements import ulp_distance
from export_core.readers.worker.moved_inside import (
    NotMovedError,
    UnreducedError,
    doublings,
    lower_moved,
    moves,
    refined,
)

X = np.random.RandomState(0).uniform(0.5, 2, (6, 5)).astype(np.float32)


def program(function, *args):
    """Runs an artifact of a function with its results moved: takes a seed and a number of units."""
    call = export.export(jax.jit(function))(*args).call
    compiled = lower_moved(call, args, {}).compile()
    return lambda seed, ulps: jax.tree.leaves(compiled(np.array(moves(seed, ulps), np.uint32), args, {}))


def units(one, other):
    return ulp_distance(np.asarray(one), np.asarray(other)).astype(np.int64)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_results_move_by_at_most_so_many_units_and_in_both_directions(dtype):
    x = jnp.asarray(np.random.RandomState(1).uniform(0.5, 2, 4000), dtype)
    run = program(jnp.exp, x)
    (still,), (moved,), (far,) = run(3, 0), run(3, 1), run(3, 64)
    one, many = np.asarray(moved) > np.asarray(still), units(far, still)
    assert units(moved, still).max() == 1
    changed = units(moved, still) == 1
    assert 0.3 < changed.mean() < 0.6
    assert 0.3 < one[changed].mean() < 0.7
    assert 32 < many.max() <= 64
    # All sizes are as frequent, up to the bits of the dtype.
    assert 20 < np.median(many) < 44


@pytest.mark.parametrize(("terms", "units_up_to"), [(63, 1), (64, 2)])
@pytest.mark.parametrize(
    "of_terms",
    [
        lambda x: x @ x.T,
        lambda x: x.sum(1),
        lambda x: jnp.cumsum(x, 1),
        lambda x: jax.ops.segment_sum(x.T, jnp.zeros(x.shape[1], int), 1),
        lambda x: jnp.dot(x, jnp.ones(x.shape[1])),
        lambda x: lax.conv_general_dilated(x[:, None], x[:3, None, ::-1], (1,), [(8, 8)]),
        lambda x: lax.conv_general_dilated(
            x[None], jnp.ones((40, 1, x.shape[1])), (1,), "VALID", feature_group_count=40
        ),
    ],
)
def test_a_sum_moves_farther_the_more_terms_it_has(of_terms, terms, units_up_to):
    x = np.random.RandomState(0).uniform(0.5, 2, (40, terms)).astype(np.float32)
    run = program(of_terms, x)
    (still,), (moved,) = run(0, 0), run(1, 1)
    assert units_up_to / 2 < units(still, moved).max() <= units_up_to


def test_a_sum_in_16_bits_is_rounded_once():
    x = jnp.asarray(np.random.RandomState(0).uniform(0.5, 2, (50, 1000)), jnp.bfloat16)
    (still,), (moved,) = (program(lambda x: x @ x.T, x)(1, ulps) for ulps in (0, 1))
    assert units(still, moved).max() == 1


def test_a_sum_moves_by_a_quarter_of_the_square_root_of_its_terms():
    assert [2 ** doublings(terms) for terms in (1, 63, 64, 255, 256, 1024, 2**16)] == [1, 1, 2, 2, 4, 8, 64]


def test_another_seed_moves_in_another_way_and_the_same_seed_in_the_same():
    run = program(lambda: jnp.sin(jnp.arange(1000) * 0.3))  # no input at all
    assert not (np.asarray(run(1, 1)[0]) == np.asarray(run(2, 1)[0])).all()
    assert (np.asarray(run(1, 1)[0]) == np.asarray(run(1, 1)[0])).all()


def test_two_places_of_one_value_move_differently():
    x = np.full(2000, 1.1, np.float32) + np.arange(2000, dtype=np.float32) / 4096
    run = program(lambda x: (jnp.exp(x), jax.lax.optimization_barrier(jnp.exp(jax.lax.optimization_barrier(x)))), x)
    one, other = run(1, 1)
    assert (np.asarray(one) != np.asarray(other)).any()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.exp(x),
        lambda x: x @ x.T,
        lambda x: x.sum(0),
        lambda x: x * x + jnp.float32(0.3),
        lambda x: x / jnp.float32(3),
        lambda x: jnp.fft.fft(x).real,
        lambda x: jnp.linalg.cholesky(x.T @ x + jnp.eye(5, dtype=x.dtype)),
        lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y), x),
        lambda x: jax.lax.cond(x[0, 0] > 0, jnp.log, jnp.exp, x),
        lambda x: jax.jit(lambda y: jax.jit(jnp.cos)(y))(x),
        lambda x: jax.vmap(lambda y: jnp.zeros(5, y.dtype).at[jnp.arange(5) % 2].add(y))(x),
    ],
)
def test_what_is_rounded_moves(function):
    run = program(function, X)
    (still,), (moved,), (far,) = run(0, 0), run(1, 1), run(1, 64)
    assert (np.asarray(still) != np.asarray(moved)).any()
    assert np.allclose(still, far, rtol=1e-3)
    assert np.abs(np.asarray(still) - np.asarray(far)).max() > np.abs(np.asarray(still) - np.asarray(moved)).max()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.max(0),
        lambda x: jnp.sort(x),
        lambda x: jnp.argmax(x),
        lambda x: x + jnp.float32(1),
        lambda x: x * jnp.float32(3),
        lambda x: jnp.sqrt(x),
        lambda x: jnp.where(x > 1, x, 0.0),
        lambda x: jnp.zeros(6).at[jnp.arange(5)].set(x[0]),
        lambda x: jnp.cumsum(jnp.arange(5)),
    ],
)
def test_what_ieee_754_fixes_does_not_move(function):
    with pytest.raises(NotMovedError):
        program(function, X)


def test_exact_values_stay():
    """Masks, counts and halves are exact; what is not finite has no neighbour; tiny ones would change their sign."""
    values = np.asarray([0.0, 1.0, 0.5, 3.0, np.inf, -np.inf, np.nan, 1e-44], np.float32)
    run = program(lambda x: jax.lax.dot(x[:, None], jnp.ones((1, 1), jnp.float32)), values)
    assert np.asarray(run(1, 64)[0]).tobytes() == np.asarray(run(1, 0)[0]).tobytes()


def test_both_parts_of_complex_numbers_move():
    x = (X + 1j * X[::-1]).astype(np.complex64)
    run = program(lambda x: (jnp.exp(x), 1j * x + 1), x)  # with a constant that some bindings cannot read
    still, moved = np.asarray(run(1, 0)[0]), np.asarray(run(1, 1)[0])
    assert (still.real != moved.real).any()
    assert (still.imag != moved.imag).any()
    assert units(still, moved).max() <= 4  # XLA makes it of several results


def test_symbolic_dimensions_are_those_of_the_arguments():
    shape = export.symbolic_shape("b, 5")
    call = export.export(jax.jit(lambda x: jnp.exp(x @ x.T)))(jax.ShapeDtypeStruct(shape, np.float32)).call
    compiled = lower_moved(call, (X,), {}).compile()
    still, moved = (np.asarray(compiled(np.array(moves(1, ulps), np.uint32), (X,), {})) for ulps in (0, 1))
    assert still.shape == (6, 6)
    assert (still != moved).any()


def test_derivatives_move_inside_too():
    exported = export.export(jax.jit(jnp.tanh), platforms=["cpu"])(X)
    args = (X, np.ones_like(X))
    compiled = lower_moved(exported.vjp().call, args, {}).compile()
    still, moved = (np.asarray(compiled(np.array(moves(1, ulps), np.uint32), args, {})[0]) for ulps in (0, 1))
    assert (still != moved).any()


def test_parts_of_sums_are_refused():
    class Lowered:
        def compiler_ir(self, dialect):
            text = 'func.func @main() { "x"() {s = "unreduced={\\"a\\"}"} : () -> () return }'
            return type("M", (), {"operation": type("O", (), {"get_asm": lambda self, **_: text})()})()

    with pytest.raises(UnreducedError, match="sums over devices"):
        refined(Lowered())

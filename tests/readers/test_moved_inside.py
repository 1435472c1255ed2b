"""Programs whose intermediate results are moved by rounding: which move, by how much, and which stay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from export_core.numbers.elements import ulp_distance
from export_core.readers.worker.moved_inside import (
    NotMovedError,
    Rewriting,
    UnreducedError,
    doublings,
    lower_moved,
    refined,
)
from export_core.readers.worker.protocol import moves

X = np.random.RandomState(0).uniform(0.5, 2, (6, 5)).astype(np.float32)


def program(function, *args):
    """Build a function of a seed and a number of units that runs this function with its results moved."""
    call = export.export(jax.jit(function))(*args).call
    compiled = lower_moved(call, args, {}).compile()
    return lambda seed, ulps: jax.tree.leaves(compiled(np.array(moves(seed, ulps), np.int32), args, {}))


def units(one, other):
    return ulp_distance(np.asarray(one), np.asarray(other)).astype(np.int64)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_results_move_up_and_down_by_at_most_the_given_units(dtype):
    x = jnp.asarray(np.random.RandomState(1).uniform(0.5, 2, 4000), dtype)
    run = program(jnp.exp, x)
    (unmoved,), (moved,), (far,) = run(3, 0), run(3, 1), run(3, 64)
    one, many = np.asarray(moved) > np.asarray(unmoved), units(far, unmoved)
    assert units(moved, unmoved).max() == 1
    changed = units(moved, unmoved) == 1
    assert 0.3 < changed.mean() < 0.6
    assert 0.3 < one[changed].mean() < 0.7
    assert 32 < many.max() <= 64
    # All sizes are equally frequent, up to the bits of the dtype.
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
def test_a_sum_of_more_terms_moves_farther(of_terms, terms, units_up_to):
    x = np.random.RandomState(0).uniform(0.5, 2, (40, terms)).astype(np.float32)
    run = program(of_terms, x)
    (unmoved,), (moved,) = run(0, 0), run(1, 1)
    assert units_up_to / 2 < units(unmoved, moved).max() <= units_up_to


def test_a_moved_16_bit_sum_is_off_by_at_most_one_unit():
    x = jnp.asarray(np.random.RandomState(0).uniform(0.5, 2, (50, 1000)), jnp.bfloat16)
    (unmoved,), (moved,) = (program(lambda x: x @ x.T, x)(1, ulps) for ulps in (0, 1))
    assert units(unmoved, moved).max() == 1


def test_a_sum_moves_by_a_quarter_root_of_its_term_count():
    assert [2 ** doublings(terms) for terms in (1, 63, 64, 255, 256, 1024, 2**16)] == [1, 1, 2, 2, 4, 8, 64]


def test_moves_depend_only_on_the_seed():
    run = program(lambda: jnp.sin(jnp.arange(1000) * 0.3))  # no input at all
    assert not (np.asarray(run(1, 1)[0]) == np.asarray(run(2, 1)[0])).all()
    assert (np.asarray(run(1, 1)[0]) == np.asarray(run(1, 1)[0])).all()


def test_a_value_computed_twice_gets_two_different_moves():
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
def test_results_that_are_rounded_are_moved(function):
    run = program(function, X)
    (unmoved,), (moved,), (far,) = run(0, 0), run(1, 1), run(1, 64)
    assert (np.asarray(unmoved) != np.asarray(moved)).any()
    assert np.allclose(unmoved, far, rtol=1e-3)
    assert np.abs(np.asarray(unmoved) - np.asarray(far)).max() > np.abs(np.asarray(unmoved) - np.asarray(moved)).max()


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
def test_results_fixed_by_ieee_754_are_not_moved(function):
    with pytest.raises(NotMovedError):
        program(function, X)


def test_exact_and_nonfinite_values_are_not_moved():
    """Masks, counts and halves are exact, infinities and NaN have no neighbour, and tiny values would change sign."""
    values = np.asarray([0.0, 1.0, 0.5, 3.0, np.inf, -np.inf, np.nan, 1e-44], np.float32)
    run = program(lambda x: jax.lax.dot(x[:, None], jnp.ones((1, 1), jnp.float32)), values)
    assert np.asarray(run(1, 64)[0]).tobytes() == np.asarray(run(1, 0)[0]).tobytes()


def test_both_parts_of_complex_numbers_move():
    x = (X + 1j * X[::-1]).astype(np.complex64)
    run = program(lambda x: (jnp.exp(x), 1j * x + 1), x)  # with a constant that some bindings cannot read
    unmoved, moved = np.asarray(run(1, 0)[0]), np.asarray(run(1, 1)[0])
    assert (unmoved.real != moved.real).any()
    assert (unmoved.imag != moved.imag).any()
    assert units(unmoved, moved).max() <= 4  # XLA computes it from several results


def test_noise_moves_results_of_symbolic_shape_in_concrete_shapes():
    shape = export.symbolic_shape("b, 5")
    call = export.export(jax.jit(lambda x: jnp.exp(x @ x.T)))(jax.ShapeDtypeStruct(shape, np.float32)).call
    compiled = lower_moved(call, (X,), {}).compile()
    unmoved, moved = (np.asarray(compiled(np.array(moves(1, ulps), np.int32), (X,), {})) for ulps in (0, 1))
    assert unmoved.shape == (6, 6)
    assert (unmoved != moved).any()


def test_results_inside_derivatives_move_too():
    exported = export.export(jax.jit(jnp.tanh), platforms=["cpu"])(X)
    args = (X, np.ones_like(X))
    compiled = lower_moved(exported.vjp().call, args, {}).compile()
    unmoved, moved = (np.asarray(compiled(np.array(moves(1, ulps), np.int32), args, {})[0]) for ulps in (0, 1))
    assert (unmoved != moved).any()


def test_moving_results_of_sums_over_devices_is_refused():
    class Lowered:
        def compiler_ir(self, dialect):
            text = 'func.func @main() { "x"() {s = "unreduced={\\"a\\"}"} : () -> () return }'
            return type("M", (), {"operation": type("O", (), {"get_asm": lambda self, **_: text})()})()

    with pytest.raises(UnreducedError, match="a sum over devices"):
        refined(Lowered())


# --- unmoved terms: an error is bounded by them, not by a sum in which they cancel ------------------------------------

COUNTS = np.arange(30, dtype=np.int32).reshape(6, 5)
GREY = np.repeat(np.arange(10, 250, 20), 3).reshape(12, 3).astype(np.uint8)
CHROMA = np.float32([[-0.168736, 0.5], [-0.331264, -0.418688], [0.5, -0.081312]])  # its columns have no sum
NARROW = np.float32([[21 / 128], [43 / 128], [-64 / 128]])  # likewise, and exactly so in bfloat16
TONE = np.round(100 * np.cos(2 * np.pi * np.arange(64) / 8)).astype(np.int32)


def in_a_loop(x):
    return jax.lax.fori_loop(0, 2, lambda _, y: y + x.astype(jnp.float32) @ CHROMA, jnp.zeros((12, 2)))


def moved_by_one_unit(function, *args):
    """Return the largest move of each element of the first output over twelve runs, whose results move by one unit."""
    run = program(function, *args)
    unmoved = np.asarray(run(0, 0)[0]).astype(np.complex128)
    return np.max([np.abs(np.asarray(run(seed, 1)[0]).astype(np.complex128) - unmoved) for seed in range(12)], axis=0)


@pytest.mark.parametrize(
    ("function", "given", "size"),
    [
        pytest.param(lambda x: x.astype(jnp.float32) @ CHROMA, GREY, 120, id="product of whole numbers and a matrix"),
        pytest.param(lambda x: jax.jit(jnp.matmul)(x.astype(jnp.float32), CHROMA), GREY, 120, id="in a function"),
        pytest.param(in_a_loop, GREY, 120, id="in a loop"),
        pytest.param(lambda x: jnp.sum(x.astype(jnp.float32)[:, None] * CHROMA.T, -1), GREY, 120, id="sum of products"),
        # Equal quotients move alike, so that the stored matrix has to move.
        pytest.param(lambda x: (x.astype(jnp.float32) / 255) @ CHROMA, GREY, 120 / 255, id="product of equal numbers"),
        pytest.param(
            lambda x: jnp.sum((x.astype(jnp.float32) / 255)[:, None] * CHROMA.T, -1),
            GREY,
            120 / 255,
            id="sum of products of equal numbers",
        ),
        pytest.param(lambda x: jnp.fft.fft(x.astype(jnp.float32)), TONE, 800, id="transform of a tone"),
        pytest.param(
            lambda x: x.astype(jnp.bfloat16) @ NARROW.astype(jnp.bfloat16), GREY, 120, id="narrow terms, narrow result"
        ),
        pytest.param(
            lambda x: jax.lax.dot(
                x.astype(jnp.bfloat16), CHROMA.astype(jnp.bfloat16), preferred_element_type=jnp.float32
            ),
            GREY,
            120,
            id="narrow terms, wide result",
        ),
        pytest.param(
            lambda x: jnp.imag((x * np.complex64(1 + 0.3j)) * jnp.conj(x * np.complex64(1 + 0.3j))),
            COUNTS[1:],
            800,
            id="product with the conjugate",
        ),
    ],
)
def test_a_sum_that_cancels_moves_by_units_of_its_terms(function, given, size):
    moved = moved_by_one_unit(function, given)
    unit = np.float32(size) * np.finfo(np.float32).eps
    assert (moved > 0).mean() > 0.7
    assert unit / 16 < np.median(moved) < 4 * unit


@pytest.mark.parametrize("divisor", [1, 255])
def test_a_transposed_matrix_that_moves_stays_transposed(divisor):
    def function(x):
        return (x.astype(jnp.float32) / np.float32(divisor)) @ jnp.asarray(CHROMA.T.copy()).T

    (unmoved,) = program(function, GREY)(0, 0)
    np.testing.assert_allclose(unmoved, function(GREY), atol=1e-4 / divisor)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.astype(jnp.float32) @ np.float32([[1, 0.5], [-1, 0], [0, 3], [1, 1], [2, 4]]),
        lambda x: jnp.sum(x.astype(jnp.float32), axis=1),
        lambda x: jax.nn.one_hot(x, 30) @ jnp.ones((30, 2), jnp.float32),
    ],
)
def test_exact_sums_of_few_bits_do_not_move(function):
    assert not moved_by_one_unit(function, COUNTS).any()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: x @ w,
        lambda x, w: jnp.maximum(x, 0)[:, ::-1] @ w,
        lambda x, w: jnp.where(x > 1, x, 0.5) @ w,
        lambda x, w: jnp.exp(jnp.arange(36, dtype=jnp.float32).reshape(12, 3) / 100) @ w,
        lambda x, w: jax.lax.scan(lambda carry, row: (jnp.sin(carry), row @ w), x[0], x)[1],
        lambda x, w: jnp.sum(2 * x, axis=1),
    ],
)
def test_terms_moved_by_earlier_operations_are_not_moved_again(function, monkeypatch):
    moved = []
    monkeypatch.setattr(Rewriting, "_move_operand", lambda rewriting, *operand: moved.append(operand))
    program(function, np.random.RandomState(0).uniform(0.5, 2, (12, 3)).astype(np.float32), CHROMA)
    assert moved == []

"""22 programs of other operations, written together with the first set, and run after the first set led to mends."""

import jax
import jax.nn
import jax.numpy as jnp
import jax.ops
import jax.scipy.linalg
import jax.scipy.special
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from studies.corpus.programs.inputs import normal

pytestmark = pytest.mark.filterwarnings("default")
marked = pytest.mark.export_compat


@marked
def test_grouped_and_dilated_convolution(export_golden):
    def convolved(x, kernel):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", rhs_dilation=(2, 2), dimension_numbers=numbers, feature_group_count=2
        )

    export_golden(jax.jit(convolved), normal(1, 1, 6, 6, 4), normal(2, 3, 3, 2, 4))


@marked
def test_transposed_convolution_in_bfloat16(export_golden):
    def upsampled(x, kernel):
        return lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    half = [jnp.asarray(x, jnp.bfloat16) for x in (normal(3, 1, 4, 4, 3), normal(4, 3, 3, 3, 2))]
    export_golden(jax.jit(upsampled), *half)


@marked
def test_embedding_with_unknown_words(export_golden):
    words = np.array([[0, 3, 99], [-1, 5, 2]], np.int32)
    taken = jax.jit(lambda table, words: jnp.take(table, words, axis=0, mode="fill", fill_value=0))
    export_golden(taken, normal(5, 6, 4), words)


@marked
def test_bits_of_floats(export_golden):
    def taken_apart(x):
        bits = lax.bitcast_convert_type(x, jnp.uint32)
        octets = lax.bitcast_convert_type(x, jnp.uint8)
        return (bits >> 23) & 0xFF, octets, jnp.frexp(x)[1], jnp.nextafter(x, jnp.inf)

    export_golden(jax.jit(taken_apart), normal(6, 5))


@marked
def test_special_functions(export_golden):
    def special(x):
        s = jax.scipy.special
        return s.gammaln(x), s.digamma(x), s.erfinv(x / 4), s.i0e(x), s.gammainc(x, x + 0.5), s.ndtri(x / 4)

    export_golden(jax.jit(special), np.array([0.3, 1.1, 2.0, 3.7], np.float32))


@marked
def test_quantiles_and_median(export_golden):
    parts = np.array([0.1, 0.5, 0.9], np.float32)
    export_golden(jax.jit(lambda x: (jnp.quantile(x, parts), jnp.median(x, axis=0))), normal(7, 9, 3))


@marked
def test_resized_image(export_golden):
    export_golden(jax.jit(lambda image: jax.image.resize(image, (9, 5, 3), "cubic")), normal(8, 6, 8, 3))


@marked
def test_pixels_of_uint8(export_golden):
    def brighter(image, gain):
        bright = jnp.clip(jnp.round(image.astype(jnp.float32) * gain), 0, 255).astype(jnp.uint8)
        return bright, jnp.maximum(image, 7) - jnp.minimum(image, 7), jnp.bitwise_xor.reduce(image, axis=0)

    image = np.random.RandomState(9).randint(0, 256, (4, 4)).astype(np.uint8)
    export_golden(jax.jit(brighter), image, np.float32(1.7))


@marked
def test_experts_by_ragged_dot(export_golden):
    if not hasattr(lax, "ragged_dot"):
        pytest.skip("needs ragged_dot")
    sizes = np.array([3, 1, 4], np.int32)
    export_golden(jax.jit(lax.ragged_dot), normal(10, 8, 5), normal(11, 3, 5, 2), sizes)


@marked
def test_int8_product_with_int32_sums(export_golden):
    rows, columns = (np.random.RandomState(seed).randint(-128, 128, (6, 6)).astype(np.int8) for seed in (12, 13))

    def product(x, y):
        return lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)

    export_golden(jax.jit(product), rows, columns)


@marked
def test_matrix_exponential(export_golden):
    export_golden(jax.jit(jax.scipy.linalg.expm), 0.3 * normal(14, 4, 4))


@marked
def test_tridiagonal_system(export_golden):
    lower, upper = normal(15, 6), normal(16, 6)
    lower[0] = upper[-1] = 0
    solve = jax.jit(lax.linalg.tridiagonal_solve)
    export_golden(solve, lower, 5 + np.abs(normal(17, 6)), upper, normal(18, 6, 2))


@marked
def test_shuffled_rows(export_golden):
    def shuffled(key, x):
        return jax.random.permutation(key, x), jax.random.categorical(key, x, axis=-1)

    export_golden(jax.jit(shuffled), jax.random.key(19), normal(20, 7, 3))


@marked
def test_bits_of_rbg(export_golden):
    export_golden(jax.jit(lambda key: jax.random.uniform(key, (3, 4))), jax.random.key(5, impl="rbg"))


@marked
def test_candidates_by_approximate_top_k(export_golden):
    export_golden(jax.jit(lambda x: lax.approx_max_k(x, 3)), normal(21, 2, 40))


@marked
def test_padding_inside_and_reversal(export_golden):
    def padded(x):
        return lax.pad(x, jnp.float32(0), ((1, -1, 2), (0, 2, 0))), lax.rev(x, (1,)), jnp.roll(x, 2, axis=1)

    export_golden(jax.jit(padded), normal(22, 3, 4))


@marked
def test_places_in_sorted_edges(export_golden):
    edges = np.sort(normal(23, 8))
    places = jax.jit(lambda edges, x: (jnp.searchsorted(edges, x), jnp.interp(x, edges, edges**2)))
    export_golden(places, edges, normal(24, 6))


@marked
def test_extremes_with_nan(export_golden):
    def extremes(x):
        return jnp.argmax(x), jnp.nanmax(x), jnp.nan_to_num(x, nan=9.0), jnp.sort(x), jnp.isnan(x).sum()

    export_golden(jax.jit(extremes), np.array([1.0, np.nan, -3.0, np.inf, 2.0], np.float32))


@marked(symbolic_shapes="b, 8, 8, 2")
def test_convolution_of_a_symbolic_batch(export_golden):
    kernel = normal(25, 3, 3, 2, 4)

    def features(x):
        y = lax.conv_general_dilated(x, kernel, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.nn.relu(y).mean((1, 2))

    export_golden(jax.jit(features), normal(26, 2, 8, 8, 2)).also(normal(27, 5, 8, 8, 2))


@marked(symbolic_shapes="n, 3")
def test_top_k_and_sort_of_a_symbolic_length(export_golden):
    def ranked(x):
        return jnp.sort(x, axis=0), lax.top_k(x.T, 2)[0], jnp.cumsum(x, axis=0)

    export_golden(jax.jit(ranked), normal(28, 6, 3)).also(normal(29, 9, 3))


@marked
def test_axes_of_a_mesh_inside(export_golden):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("rows", "columns"))

    def blocks(x, w):
        x = lax.with_sharding_constraint(x, NamedSharding(mesh, P("rows", "columns")))
        return lax.with_sharding_constraint(jnp.sort(x @ w, axis=1), NamedSharding(mesh, P(None, "rows")))

    whole = NamedSharding(mesh, P())
    export_golden(jax.jit(blocks), jax.device_put(normal(30, 4, 6), whole), jax.device_put(normal(31, 6, 4), whole))


@marked
def test_checkpointed_layers_and_their_gradient(export_golden):
    @jax.checkpoint
    def layer(x, w):
        return jnp.sin(x @ w)

    def loss(weights, x):
        return jnp.sum(lax.scan(lambda x, w: (layer(x, w), None), x, weights)[0] ** 2)

    export_golden(jax.jit(jax.value_and_grad(loss)), normal(32, 3, 4, 4), normal(33, 2, 4))

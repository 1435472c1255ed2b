"""50 programs by an author who had read neither the knowledge base nor its tests, written after the other sets ran."""

import functools

import jax
import jax.nn
import jax.numpy as jnp
import jax.ops
import jax.scipy.fft
import jax.scipy.linalg
import jax.scipy.signal
import jax.scipy.special
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from studies.corpus.programs.inputs import integers, normal, uniform

pytestmark = pytest.mark.filterwarnings("default")
marked = pytest.mark.export_compat


def newer(*version):
    """Skip the running test if jax is older than this version."""
    if jax.__version_info__ < version:
        pytest.skip(f"needs jax {'.'.join(map(str, version))}")


def shard_map(function, **options):
    """Call shard_map of this jax, which is in one of two modules."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, **options)
    from jax.experimental.shard_map import shard_map as older

    return older(function, **options)


# Linear algebra.


@marked
def test_whitening_by_eigh(export_golden):
    def whitened(x):
        centered = x - x.mean(0)
        values, vectors = jnp.linalg.eigh(centered.T @ centered / x.shape[0])
        return centered @ (vectors * lax.rsqrt(values + 1e-3)) @ vectors.T

    export_golden(jax.jit(whitened), normal(101, 20, 5))


@marked
def test_matrix_square_root_by_schur(export_golden):
    matrix = np.eye(4, dtype=np.float32) * 4 + normal(102, 4, 4, scale=0.5)
    export_golden(jax.jit(jax.scipy.linalg.sqrtm), matrix)


@marked
def test_sizes_of_complex_qr_in_a_batch(export_golden):
    def sizes(z):
        r = jnp.linalg.qr(z, mode="r")
        return jnp.abs(r), jnp.sum(jnp.log(jnp.abs(jnp.diagonal(r, axis1=-2, axis2=-1))), -1)

    export_golden(jax.jit(sizes), (normal(103, 2, 5, 3) + 1j * normal(104, 2, 5, 3)).astype(np.complex64))


@marked
def test_low_rank_image_by_svd(export_golden):
    def compressed(image):
        u, s, vt = jnp.linalg.svd(image, full_matrices=False)
        return (u[:, :3] * s[:3]) @ vt[:3], s

    export_golden(jax.jit(compressed), normal(105, 8, 6))


@marked
def test_density_of_many_gaussians(export_golden):
    def log_density(x, mean, covariance):
        lower = jnp.linalg.cholesky(covariance)
        scaled = lax.linalg.triangular_solve(lower, (x - mean)[:, None], left_side=True, lower=True)[:, 0]
        return -0.5 * jnp.sum(scaled**2) - jnp.sum(jnp.log(jnp.diagonal(lower))) - 1.5 * jnp.log(2 * jnp.pi)

    factors = normal(106, 4, 3, 3)
    covariances = factors @ factors.transpose(0, 2, 1) + np.eye(3, dtype=np.float32)
    export_golden(jax.jit(jax.vmap(log_density)), normal(107, 4, 3), normal(108, 4, 3), covariances)


# Order, segments, scatters.


@marked
def test_distinct_labels_and_their_counts(export_golden):
    counted = jax.jit(lambda x: jnp.unique(x, size=6, fill_value=-1, return_counts=True, return_inverse=True))
    export_golden(counted, integers(109, 15, high=5))


@marked
def test_step_of_beam_search(export_golden):
    def step(scores, logits):
        total = scores[:, :, None] + jax.nn.log_softmax(logits.astype(jnp.float32))
        best, place = lax.top_k(total.reshape(total.shape[0], -1), total.shape[1])
        beam, token = jnp.divmod(place, logits.shape[-1])
        return best, beam, token

    export_golden(jax.jit(step), normal(110, 2, 3), jnp.asarray(normal(111, 2, 3, 11), jnp.bfloat16))


@marked
def test_nearest_points_by_approx_min_k(export_golden):
    def nearest(queries, points):
        distances = jnp.sum(points**2, -1) / 2 - queries @ points.T
        return lax.approx_min_k(distances, k=4, recall_target=0.9)

    export_golden(jax.jit(nearest), normal(112, 3, 8), normal(113, 50, 8))


@marked
def test_ranks_within_rows_of_int8(export_golden):
    scores = np.random.RandomState(114).permutation(40).reshape(4, 10).astype(np.int8)
    export_golden(jax.jit(lambda x: (jnp.argsort(jnp.argsort(x, axis=1), axis=1), jnp.sort(x, axis=0)[::-1])), scores)


@marked
def test_softmax_over_segments(export_golden):
    def softmax(logits, groups):
        largest = jax.ops.segment_max(logits, groups, num_segments=4, indices_are_sorted=True)
        weights = jnp.exp(logits - largest[groups])
        total = jax.ops.segment_sum(weights, groups, num_segments=4, indices_are_sorted=True)
        size = jax.ops.segment_prod(jnp.full(groups.shape, 2, jnp.int32), groups, num_segments=4)
        return weights / total[groups], size

    export_golden(jax.jit(softmax), normal(115, 9), np.sort(integers(116, 9, high=4)))


@marked
def test_board_with_moved_pieces(export_golden):
    def moved(board, rows, columns, pieces):
        board = board.at[rows, columns].set(pieces, unique_indices=True)
        board = board.at[1:5, ::3].add(10)
        return board.at[rows, columns + 1].apply(jnp.negative), board.at[rows - 9, columns].get(mode="fill")

    rows, columns = np.array([0, 2, 4, 5], np.int32), np.array([1, 0, 3, 2], np.int32)
    export_golden(jax.jit(moved), integers(117, 6, 6, high=9), rows, columns, np.arange(20, 24, dtype=np.int32))


@marked
def test_weighted_counts_in_bins(export_golden):
    def counts(values, weights, labels):
        return jnp.histogram(values, bins=6, range=(-2.0, 2.0), weights=weights)[0], jnp.bincount(labels, length=5)

    export_golden(jax.jit(counts), normal(118, 30), uniform(119, 30), integers(120, 30, high=5))


# Transforms.


@marked
def test_denoised_by_cosine_transform(export_golden):
    def denoised(x):
        spectrum = jax.scipy.fft.dct(x, norm="ortho")
        return jax.scipy.fft.idct(jnp.where(jnp.abs(spectrum) > 0.5, spectrum, 0), norm="ortho")

    export_golden(jax.jit(denoised), normal(121, 3, 12))


@marked
def test_poisson_equation_by_rfft2(export_golden):
    def solved(charge):
        rows, columns = (2 * jnp.pi * f for f in (jnp.fft.fftfreq(10), jnp.fft.rfftfreq(12)))
        squared = (rows[:, None] ** 2 + columns**2).at[0, 0].set(1.0)
        return jnp.fft.irfft2(-jnp.fft.rfft2(charge) / squared, s=charge.shape)

    export_golden(jax.jit(solved), normal(122, 10, 12))


@marked
def test_centered_spectrum_in_complex128(export_golden, x64):
    def spectrum(z):
        return jnp.fft.fftshift(jnp.fft.fft(z, axis=0), axes=0), jnp.fft.hfft(z[:, 0])

    export_golden(jax.jit(spectrum), normal(123, 15, 2, dtype=np.float64) + 1j * normal(124, 15, 2, dtype=np.float64))


# Narrow types.


@marked
def test_blocks_quantized_to_int4(export_golden):
    def quantized(x):
        scale = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 7
        return jnp.clip(jnp.round(x / scale), -8, 7).astype(jnp.int4), scale

    export_golden(jax.jit(quantized), normal(125, 3, 5))


@marked
def test_nibbles_unpacked_to_uint4(export_golden):
    def unpacked(octets):
        nibbles = jnp.stack([octets & 0xF, octets >> 4], -1).reshape(octets.shape[0], -1).astype(jnp.uint4)
        return nibbles, nibbles.astype(jnp.float32) - 8

    export_golden(jax.jit(unpacked), np.random.RandomState(126).randint(0, 256, (3, 3)).astype(np.uint8))


@marked
def test_cache_stored_as_float8(export_golden):
    def attend(cache, key, query, position):
        cache = lax.dynamic_update_slice_in_dim(cache, key[None].astype(cache.dtype), position, 0)
        scores = cache.astype(jnp.float32) @ query
        return cache, jax.nn.softmax(jnp.where(jnp.arange(cache.shape[0]) <= position, scores, -1e9))

    cache = jnp.asarray(normal(127, 6, 8)).astype(jnp.float8_e4m3fn)
    export_golden(jax.jit(attend), cache, normal(128, 8), normal(129, 8), np.int32(3))


@marked
def test_float4_weights_with_block_scales(export_golden):
    newer(0, 5, 3)

    def layer(x, weights, exponents):
        scale = jnp.exp2(exponents.astype(jnp.float32) - 127)
        wide = weights.astype(jnp.bfloat16).reshape(4, 8, 6).astype(jnp.float32) * scale[:, None]
        return x @ wide.reshape(32, 6)

    weights = jnp.asarray(normal(130, 32, 6, scale=2)).astype(jnp.float4_e2m1fn)
    exponents = np.random.RandomState(131).randint(125, 130, (4, 6)).astype(np.uint8)
    export_golden(jax.jit(layer), normal(132, 2, 32), weights, exponents)


@marked
def test_signs_and_bits_of_a_mask(export_golden):
    def masks(x):
        packed = jnp.packbits(x > 0, axis=1)
        return packed, jnp.unpackbits(packed, axis=1, count=x.shape[1]), lax.population_count(packed).sum(1)

    export_golden(jax.jit(masks), normal(133, 3, 11))


# Symbolic shapes.


@marked(symbolic_shapes=("m, 3", "n, 3"), constraints=("m >= n",))
def test_joined_lists_of_two_lengths(export_golden):
    def joined(x, y):
        return jnp.concatenate([x, y]), x[: y.shape[0]] * y

    exported = export_golden(jax.jit(joined), normal(134, 5, 3), normal(135, 4, 3))
    exported.also(normal(136, 7, 3), normal(137, 2, 3))


@marked(symbolic_shapes="b, 4*h, 4*w, 2", constraints=("h <= 64", "w <= 64"))
def test_patches_of_a_symbolic_image(export_golden):
    def patches(image):
        b, height, width, channels = image.shape
        cut = image.reshape(b, height // 4, 4, width // 4, 4, channels).transpose(0, 1, 3, 2, 4, 5)
        return cut.reshape(b, -1, 16 * channels) @ jnp.ones((16 * channels, 3)) / 32

    export_golden(jax.jit(patches), normal(138, 2, 8, 12, 2)).also(normal(139, 1, 12, 4, 2))


@marked(symbolic_shapes=("b, t", "b"))
def test_bags_of_words_of_a_symbolic_batch(export_golden):
    table = normal(140, 20, 4)

    def bags(words, lengths):
        kept = jnp.arange(words.shape[1]) < lengths[:, None]
        return jnp.einsum("btd,bt->bd", jnp.asarray(table)[words], kept.astype(jnp.float32)) / lengths[:, None]

    exported = export_golden(jax.jit(bags), integers(141, 3, 5, high=20), np.array([5, 2, 1], np.int32))
    exported.also(integers(142, 2, 7, high=20), np.array([7, 4], np.int32))


@marked(symbolic_shapes=("t, 3", "4"))
def test_scan_over_a_symbolic_length(export_golden):
    weights, inputs = normal(143, 4, 4, scale=0.5), normal(144, 3, 4)

    def states(x, state):
        def step(h, x):
            h = jnp.tanh(h @ weights + x @ inputs)
            return h, h.max()

        return lax.scan(step, state, x)

    export_golden(jax.jit(states), normal(145, 6, 3), normal(146, 4)).also(normal(147, 9, 3), normal(148, 4))


@marked(symbolic_shapes=("b, q, 2, 4", "b, k, 2, 4", "b, k, 2, 4"))
def test_attention_of_three_symbolic_sizes(export_golden):
    def attention(q, k, v):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / 2
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(v.dtype), v)

    def half(seed, *shape):
        return jnp.asarray(normal(seed, *shape), jnp.bfloat16)

    exported = export_golden(jax.jit(attention), half(149, 2, 3, 2, 4), half(150, 2, 5, 2, 4), half(151, 2, 5, 2, 4))
    exported.also(half(152, 1, 6, 2, 4), half(153, 1, 2, 2, 4), half(154, 1, 2, 2, 4))


# Donated arguments.


@marked
def test_donated_buffer_of_measurements(export_golden):
    def pushed(buffer, count, value):
        buffer = lax.dynamic_update_index_in_dim(buffer, value, count % buffer.shape[0], 0)
        return buffer, count + 1, buffer.mean(0)

    export_golden(jax.jit(pushed, donate_argnums=(0, 1)), normal(155, 5, 3), np.int32(12), normal(156, 3))


@marked
def test_donated_tree_of_averages(export_golden):
    def averaged(average, weights):
        return jax.tree.map(lambda old, new: old * 0.99 + new.astype(old.dtype) * 0.01, average, weights)

    average = {"bias": normal(157, 4), "kernel": normal(158, 3, 4)}
    weights = {"bias": jnp.asarray(normal(159, 4), jnp.float16), "kernel": jnp.asarray(normal(160, 3, 4), jnp.float16)}
    export_golden(jax.jit(averaged, donate_argnums=0), average, weights)


# Several devices.


@marked
def test_network_split_over_two_devices(export_golden):
    mesh = Mesh(np.array(jax.devices()[:2]), ("model",))

    def network(x, first, second):
        hidden = jax.nn.gelu(x @ first) * (1 + lax.axis_index("model"))
        return lax.psum(hidden @ second, "model"), lax.pmax(hidden.max(), "model")

    specs = (P(), P(None, "model"), P("model", None))
    function = shard_map(network, mesh=mesh, in_specs=specs, out_specs=(P(), P()))
    arguments = (normal(161, 2, 4), normal(162, 4, 6), normal(163, 6, 3))
    placed = [jax.device_put(x, NamedSharding(mesh, spec)) for x, spec in zip(arguments, specs, strict=True)]
    export_golden(jax.jit(function), *placed)


@marked(mesh={"x": 4}, in_specs=(P("x"),))
def test_normed_over_an_abstract_mesh(export_golden):
    def normed(x):
        total = lax.psum(jnp.sum(x * x, axis=0), "x")
        return x * lax.rsqrt(total + 1e-5), lax.all_gather(x[:1], "x", tiled=True)[:, 0].reshape(1, -1)

    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    function = shard_map(normed, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P("x")))
    export_golden(jax.jit(function), normal(164, 8, 3))


@marked
def test_explicit_axes_of_a_network(export_golden):
    newer(0, 8)
    with jax.set_mesh(jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)):
        x, first = (
            jax.device_put(normal(165, 4, 6), P("data", None)),
            jax.device_put(normal(166, 6, 8), P(None, "model")),
        )
        second = jax.device_put(normal(167, 8, 2), P("model", None))

        def network(x, first, second):
            hidden = jnp.tanh(x @ first)
            return jnp.einsum("bh,ho->bo", hidden, second, out_sharding=P("data", None)), jax.sharding.reshard(x, P())

        export_golden(jax.jit(network), x, first, second)


@marked(mesh={"data": 2, "model": 2}, in_specs=(P("data", None), {"kernel": P(None, "model"), "bias": P("model")}))
def test_loss_and_gradient_on_a_grid_of_devices(export_golden):
    def loss(weights, x):
        return jnp.sum(jax.nn.softplus(x @ weights["kernel"] + weights["bias"]))

    weights = {"kernel": normal(168, 3, 4), "bias": normal(169, 4)}
    export_golden(jax.jit(lambda x, weights: jax.value_and_grad(loss)(weights, x)), normal(170, 4, 3), weights)


# Wide types and complex numbers.


@marked
def test_calendar_of_int64_timestamps(export_golden, x64):
    def calendar(seconds):
        days, rest = jnp.divmod(seconds, 86400)
        return (days + 4) % 7, rest // 3600, lax.rem(rest, jnp.int64(60)), seconds * 1000

    export_golden(jax.jit(calendar), np.array([0, 1, -1, 1795952810, -86401, 2**40], np.int64))


@marked
def test_xorshift_of_uint64(export_golden, x64):
    def step(_, state):
        state = state ^ (state << 13)
        state = state ^ (state >> 7)
        return state ^ (state << 17)

    seeds = np.array([1, 88172645463325252, 2**63 + 5], np.uint64)
    export_golden(jax.jit(lambda state: lax.fori_loop(0, 10, step, state)), seeds)


@marked
def test_quantum_gates(export_golden):
    def circuit(state, angle):
        rotation = jnp.stack([jnp.cos(angle), -1j * jnp.sin(angle), -1j * jnp.sin(angle), jnp.cos(angle)]).reshape(2, 2)
        state = jnp.einsum("ai,ijk->ajk", rotation, state)
        state = jnp.einsum("bj,ijk->ibk", jnp.array([[1, 1], [1, -1]]) / jnp.sqrt(2.0), state)
        state = state.at[1].set(state[1, ::-1])
        return state, jnp.abs(state) ** 2, jnp.vdot(state, state).real

    state = (normal(171, 2, 2, 2) + 1j * normal(172, 2, 2, 2)).astype(np.complex64)
    export_golden(jax.jit(circuit), state, np.float32(0.7))


# Random bits.


@marked
def test_draws_of_a_card_game(export_golden):
    def drawn(key):
        first, second, third = jax.random.split(key, 3)
        cards = jax.random.choice(first, 52, (5,), replace=False)
        return cards, jax.random.randint(second, (4,), 1, 7), jax.random.gumbel(third, (3,)), jax.random.key_data(key)

    export_golden(jax.jit(drawn), jax.random.key(173))


@marked
def test_noise_of_unsafe_rbg(export_golden):
    def noise(key, step):
        key = jax.random.fold_in(key, step)
        return jax.random.normal(key, (2, 3)), jax.random.bits(key, (5,), jnp.uint16)

    export_golden(jax.jit(noise), jax.random.key(174, impl="unsafe_rbg"), np.int32(9))


# Derivatives.


@marked(vjp_order=1)
def test_rounding_with_its_own_derivative(export_golden):
    @jax.custom_vjp
    def rounded(x, step):
        return jnp.round(x / step) * step

    rounded.defvjp(lambda x, step: (rounded(x, step), step), lambda step, g: (g, jnp.zeros_like(step)))
    export_golden(jax.jit(lambda x, w: rounded(x, jnp.float32(0.25)) @ w), normal(175, 3, 4), normal(176, 4, 2))


@marked
def test_hessian_of_a_custom_jvp(export_golden):
    @jax.custom_jvp
    def softplus(x):
        return jnp.logaddexp(x, 0.0)

    softplus.defjvps(lambda t, _, x: t * jax.nn.sigmoid(x))
    export_golden(jax.jit(jax.hessian(lambda w, x: jnp.sum(softplus(x @ w)))), normal(177, 3), normal(178, 5, 3))


# Control flow.


@marked
def test_collatz_steps_of_many_numbers(export_golden):
    def steps(n):
        def step(state):
            n, count = state
            return lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), count + 1

        return lax.while_loop(lambda state: state[0] > 1, step, (n, jnp.int32(0)))[1]

    export_golden(jax.jit(jax.vmap(steps)), np.array([1, 7, 27, 64], np.int32))


@marked
def test_machine_with_instructions(export_golden):
    def run(program, register):
        def step(register, instruction):
            which, value = instruction
            operations = (lambda r: r + value, lambda r: r * value, lambda r: -r, lambda r: r.at[0].set(value))
            register = lax.switch(which, operations, register)
            return register, register.sum()

        return lax.scan(step, register, program, reverse=True, unroll=2)

    export_golden(jax.jit(run), (np.array([0, 1, 3, 2, 9], np.int32), normal(179, 5)), normal(180, 3))


# Convolutions and windows.


@marked
def test_causal_depthwise_convolution(export_golden):
    def causal(x, kernel):
        return lax.conv_general_dilated(
            x, kernel, (1,), [(4, 0)], rhs_dilation=(2,), dimension_numbers=("NCH", "OIH", "NCH"), feature_group_count=3
        )

    export_golden(jax.jit(causal), normal(181, 2, 3, 9), normal(182, 3, 1, 3))


@marked(vjp_order=1)
def test_gradient_of_a_strided_convolution(export_golden):
    def features(x, kernel):
        numbers, padding = ("NHWC", "HWIO", "NHWC"), ((1, 1), (2, 0))
        return lax.conv_general_dilated(x, kernel, (2, 2), padding, lhs_dilation=(1, 2), dimension_numbers=numbers)

    export_golden(jax.jit(features), normal(183, 1, 7, 5, 2), normal(184, 3, 3, 2, 3))


@marked
def test_int8_convolution_and_requantization(export_golden):
    def convolved(image, kernel, scale):
        sums = lax.conv_general_dilated(
            image, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), preferred_element_type=jnp.int32
        )
        return jnp.clip(jnp.round(sums * scale) - 3, -128, 127).astype(jnp.int8)

    image = np.random.RandomState(185).randint(-128, 128, (1, 5, 5, 2)).astype(np.int8)
    kernel = np.random.RandomState(186).randint(-128, 128, (3, 3, 2, 4)).astype(np.int8)
    export_golden(jax.jit(convolved), image, kernel, uniform(187, 4, high=0.002))


@marked
def test_windows_with_dilation_and_reverse_sums(export_golden):
    def windows(x):
        smallest = lax.reduce_window(
            x, jnp.int32(99), lax.min, (1, 3), (1, 1), ((0, 0), (2, 2)), window_dilation=(1, 2), base_dilation=(1, 1)
        )
        return smallest, lax.cumsum(x, axis=1, reverse=True), lax.cumlogsumexp(x.astype(jnp.float32), axis=0)

    export_golden(jax.jit(windows), integers(188, 3, 8, high=50))


# Slices, products, special functions, bits.


@marked
def test_crops_at_their_own_places(export_golden):
    def crops(images, corners):
        def crop(image, corner):
            return lax.dynamic_slice(image, (corner[0], corner[1], 0), (3, 3, 2))

        cut = jax.vmap(crop)(images, corners)
        return jax.vmap(lambda image, patch, corner: lax.dynamic_update_slice(image, -patch, (*corner, 0)))(
            images, cut, corners
        )

    export_golden(jax.jit(crops), normal(189, 3, 6, 6, 2), np.array([[0, 0], [2, 3], [5, 1]], np.int32))


@marked
def test_products_of_halves_with_float32_sums(export_golden):
    def products(x, y):
        wide = lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), preferred_element_type=jnp.float32)
        half = jnp.matmul(x.astype(jnp.float16), y.astype(jnp.float16), precision="highest")
        return wide, half, jnp.einsum("bij,bjk->ik", x, y)

    export_golden(jax.jit(products), *(jnp.asarray(normal(s, 2, 4, 4), jnp.bfloat16) for s in (190, 191)))


@marked
def test_products_by_algorithms(export_golden):
    newer(0, 5)
    preset = lax.DotAlgorithmPreset

    def products(x, y):
        dot = functools.partial(jnp.dot, x, y)
        return dot(precision=preset.F32_F32_F32), dot(precision=preset.BF16_BF16_F32), dot(precision=preset.DEFAULT)

    export_golden(jax.jit(products), normal(192, 5, 16), normal(193, 16, 3))


@marked
def test_distribution_functions(export_golden):
    def functions(x, a):
        s = jax.scipy.special
        student = 0.5 * s.betainc(a / 2, jnp.float32(0.5), a / (a + x * x))
        return student, s.gammaincc(a, x), s.erfc(x), s.i1(x), s.polygamma(1, x), s.expi(x), s.zeta(a + 1, x)

    export_golden(jax.jit(functions), np.array([0.4, 1.3, 2.2, 5.0], np.float32), np.array([1, 2, 3.5, 8], np.float32))


@marked
def test_hash_by_murmur(export_golden):
    def mixed(x):
        x = ((x << 15) | (x >> 17)) * jnp.uint32(0x1B873593)
        x = x ^ (x >> 16)
        return x, lax.clz(x), lax.population_count(x.astype(jnp.uint8)), ~x & jnp.uint32(0xFF)

    export_golden(jax.jit(mixed), np.array([0, 1, 12345, 2**31, 2**32 - 1], np.uint32))


@marked
def test_wrapped_and_clamped_angles(export_golden):
    def wrapped(x, low, high):
        near = lax.nextafter(x, jnp.full_like(x, -jnp.inf))
        remainders = lax.rem(x, jnp.float32(1.5)), jnp.mod(x, 1.5), jnp.fmod(x, -0.7)
        return lax.clamp(low, x, high), *remainders, near, jnp.copysign(x, low), jnp.ldexp(x, 3), jnp.signbit(x)

    low, high = np.full(6, -1, np.float32), np.array([0, 1, 2, 3, 4, 0.5], np.float32)
    export_golden(jax.jit(wrapped), np.array([-4.0, -0.25, 0.0, 1.5, 7.3, 2.0], np.float32), low, high)

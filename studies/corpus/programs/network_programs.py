"""Networks at real sizes, in jax alone: convolutions, recurrences, graphs, small numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.inputs import integers, normal

NHWC = ("NHWC", "HWIO", "NHWC")


def convolve(x, w, stride=1, groups=1, dilation=1):
    return jax.lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        "SAME",
        rhs_dilation=(dilation, dilation),
        dimension_numbers=NHWC,
        feature_group_count=groups,
    )


def batch_normalized(x, scale):
    return (x - x.mean((0, 1, 2))) * jax.lax.rsqrt(x.var((0, 1, 2)) + 1e-5) * scale


@pytest.mark.export_compat(vjp_order=1)
def test_resnet_block(export_golden):
    """A residual block on eight images of 16 x 16 x 32, with a stride, and a projection as shortcut."""

    def block(x, first, second, shortcut, scales):
        out = jax.nn.relu(batch_normalized(convolve(x, first), scales[0]))
        out = batch_normalized(convolve(out, second, 2), scales[1])
        return jax.nn.relu(out + convolve(x, shortcut, 2)[..., :32])

    export_golden(
        jax.jit(block),
        normal(0, 8, 16, 16, 32),
        normal(1, 3, 3, 32, 32, scale=0.1),
        normal(2, 3, 3, 32, 32, scale=0.1),
        normal(3, 1, 1, 32, 32, scale=0.2),
        1 + normal(4, 2, 32, scale=0.1),
    )


@pytest.mark.export_compat(vjp_order=1)
def test_separable_convolution(export_golden):
    """A separable convolution with dilation, squeeze and excitation, as in MobileNet."""

    def block(x, depthwise, pointwise, squeeze, excite):
        out = jax.nn.hard_swish(convolve(x, depthwise, groups=24, dilation=2))
        gate = jax.nn.sigmoid(jax.nn.relu(out.mean((1, 2)) @ squeeze) @ excite)
        return convolve(out * gate[:, None, None], pointwise)

    export_golden(
        jax.jit(block),
        normal(0, 4, 28, 28, 24),
        normal(1, 3, 3, 1, 24, scale=0.3),
        normal(2, 1, 1, 24, 16, scale=0.2),
        normal(3, 24, 6, scale=0.2),
        normal(4, 6, 24, scale=0.4),
    )


@pytest.mark.export_compat(vjp_order=1)
def test_unet(export_golden):
    """A U-Net with max pooling, a transposed convolution, a skip connection and group norms."""

    def groups_normalized(x):
        parts = x.reshape(*x.shape[:3], 4, -1)
        parts = (parts - parts.mean((1, 2, 4), keepdims=True)) / jnp.sqrt(parts.var((1, 2, 4), keepdims=True) + 1e-5)
        return parts.reshape(x.shape)

    def unet(x, into, middle, up, out):
        high = jax.nn.silu(groups_normalized(convolve(x, into)))
        low = jax.lax.reduce_window(high, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        low = jax.nn.silu(groups_normalized(convolve(low, middle)))
        raised = jax.lax.conv_transpose(low, up, (2, 2), "SAME", dimension_numbers=NHWC)
        return convolve(jnp.concatenate([high, raised], -1), out)

    export_golden(
        jax.jit(unet),
        normal(0, 2, 32, 32, 3),
        normal(1, 3, 3, 3, 16, scale=0.2),
        normal(2, 3, 3, 16, 16, scale=0.1),
        normal(3, 2, 2, 16, 16, scale=0.2),
        normal(4, 3, 3, 32, 3, scale=0.1),
    )


@pytest.mark.export_compat(symbolic_shapes=("b, 28, 28, 1", None, None))
def test_symbolic_batch_of_images(export_golden):
    def classify(x, filters, dense):
        out = jax.nn.relu(convolve(x, filters, 2))
        out = jax.lax.reduce_window(out, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        return jax.nn.log_softmax(out.reshape(x.shape[0], -1) @ dense)

    filters, dense = normal(1, 5, 5, 1, 8, scale=0.2), normal(2, 392, 10, scale=0.05)
    export_golden(jax.jit(classify), normal(0, 8, 28, 28, 1), filters, dense).also(
        normal(3, 3, 28, 28, 1), filters, dense
    )


def lstm(x, state, w):
    def step(state, x):
        hidden, cell = state
        i, f, g, o = jnp.split(jnp.concatenate([x, hidden], -1) @ w, 4, -1)
        cell = jax.nn.sigmoid(f + 1) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    return jax.lax.scan(step, state, x)[1]


@pytest.mark.export_compat(vjp_order=1)
def test_lstm(export_golden):
    """An LSTM in 64 steps, for a batch of 8 with 64 numbers each."""
    start = (np.zeros((8, 64), np.float32),) * 2
    export_golden(jax.jit(lstm), normal(0, 64, 8, 32), start, normal(1, 96, 256, scale=0.1))


@pytest.mark.export_compat(vjp_order=1)
def test_gru_in_both_directions(export_golden):
    """A GRU on padded sequences of several lengths, whose state stays after the end of a sequence."""

    def run(x, lengths, w, candidate):
        def step(state, x_alive):
            x, alive = x_alive
            reset, update = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, state], -1) @ w), 2, -1)
            new = jnp.tanh(jnp.concatenate([x, reset * state], -1) @ candidate)
            state = jnp.where(alive[:, None], update * state + (1 - update) * new, state)
            return state, state

        alive = jnp.arange(x.shape[0])[:, None] < lengths
        start = jnp.zeros((x.shape[1], 32))
        both = [jax.lax.scan(step, start, (x, alive), reverse=reverse)[1] for reverse in (False, True)]
        return jnp.concatenate(both, -1)

    arguments = normal(0, 40, 8, 16), np.array([40, 33, 25, 17, 9, 5, 2, 1], np.int32)
    export_golden(jax.jit(run), *arguments, normal(1, 48, 64, scale=0.2), normal(2, 48, 32, scale=0.2))


@pytest.mark.export_compat(vjp_order=1)
def test_state_space_layer(export_golden):
    """A selective state space of 64 steps by a parallel scan."""

    def layer(x, a, b, c, rate):
        rates = jax.nn.softplus(x * rate)
        decay = jnp.exp(-rates[..., None] * jnp.exp(a))
        drive = rates[..., None] * jnp.einsum("ld,dn->ln", x, b)[:, None] * x[..., None]
        _, states = jax.lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (decay, drive))
        return jnp.einsum("ldn,ln->ld", states, x @ c)

    export_golden(
        jax.jit(layer),
        normal(0, 64, 32),
        normal(1, 32, 8, scale=0.3),
        normal(2, 32, 8, scale=0.2),
        normal(3, 32, 8, scale=0.2),
        normal(4, 32, scale=0.5),
    )


@pytest.mark.export_compat(vjp_order=1)
def test_graph_attention(export_golden):
    """Graph attention with 256 nodes and 1,024 edges; the softmax is over the edges that end in a node."""

    def layer(nodes, senders, receivers, w, attention):
        hidden = nodes @ w
        scores = jnp.concatenate([hidden[senders], hidden[receivers]], -1) @ attention
        scores = jax.nn.leaky_relu(scores)
        top = jax.ops.segment_max(scores, receivers, 256)
        weight = jnp.exp(scores - jax.lax.stop_gradient(top)[receivers])
        total = jax.ops.segment_sum(weight, receivers, 256)[receivers]
        return jax.nn.elu(jax.ops.segment_sum(hidden[senders] * (weight / total)[:, None], receivers, 256))

    export_golden(
        jax.jit(layer),
        normal(0, 256, 32),
        integers(1, 1024, high=256),
        integers(2, 1024, high=256),
        normal(3, 32, 32, scale=0.2),
        normal(4, 64, scale=0.3),
    )


@pytest.mark.export_compat
def test_quantized_product(export_golden):
    """A product of int8 weights and int8 activations, summed in int32; scales are powers of two, so it is exact."""

    def dense(x, w, row, column):
        left, right = (jnp.clip(jnp.round(a / s), -127, 127).astype(jnp.int8) for a, s in ((x, row), (w, column)))
        product = jax.lax.dot_general(left, right, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        return product, product * row * column

    row, column = np.full((64, 1), 1 / 32, np.float32), np.exp2(-5 - integers(2, 96, high=3)).astype(np.float32)
    export_golden(jax.jit(dense), normal(0, 64, 128), normal(1, 128, 96), row, column)


@pytest.mark.export_compat(vjp_order=1)
def test_bfloat16_network(export_golden):
    def mlp(x, *layers):
        x = x.astype(jnp.bfloat16)
        for w in layers:
            x = jax.nn.gelu(jnp.dot(x, w, preferred_element_type=jnp.float32)).astype(jnp.bfloat16)
        return x

    layers = [normal(n, *shape, scale=0.1).astype(jnp.bfloat16) for n, shape in enumerate([(64, 256), (256, 64)])]
    export_golden(jax.jit(mlp), normal(5, 32, 64), *layers)


@pytest.mark.export_compat(vjp_order=1)
def test_dropout_and_noise(export_golden):
    """Random operations of training by a key: dropout, noise, a shuffled batch, a random crop."""

    def step(x, seed):
        mask, noise, order, crop = jax.random.split(jax.random.key(seed), 4)
        x = jax.random.permutation(order, x)
        left = jax.random.randint(crop, (), 0, 16)
        x = jax.lax.dynamic_slice(x, (0, left), (x.shape[0], 48))
        return jnp.where(jax.random.bernoulli(mask, 0.9, x.shape), x / 0.9, 0) + jax.random.normal(noise, x.shape)

    export_golden(jax.jit(step), normal(0, 64, 64), np.uint32(3))


@pytest.mark.export_compat
def test_diffusion_sampler(export_golden):
    """Twelve steps of DDIM with a small network that takes the time as an input."""

    def sample(seed, into, out):
        kept = jnp.cumprod(1 - jnp.linspace(1e-3, 0.2, 12))

        def step(number, x):
            now, before = kept[11 - number], jnp.where(number < 11, kept[10 - number], 1.0)
            time = jnp.sin(jnp.arange(8) * jnp.log(now))
            joined = jnp.concatenate([x, jnp.broadcast_to(time, (x.shape[0], 8))], -1)
            noise = jnp.tanh(joined @ into) @ out
            return jnp.sqrt(before / now) * (x - jnp.sqrt(1 - now) * noise) + jnp.sqrt(1 - before) * noise

        return jax.lax.fori_loop(0, 12, step, jax.random.normal(jax.random.key(seed), (64, 32)))

    export_golden(jax.jit(sample), np.uint32(5), normal(0, 40, 64, scale=0.2), normal(1, 64, 32, scale=0.1))

"""Programs whose goldens `benchmarks.writing` writes, one in each test: from a scalar function to a training step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.export_compat

RANDOM = np.random.default_rng(0)


def normal(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def attention(q, k, v):
    return jax.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / 8) @ v


def test_scalar(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(x) * jnp.exp(-x)), np.float32(0.7))


def test_mlp(export_golden):
    def mlp(layers, x):
        for weights, bias in layers:
            x = jax.nn.gelu(x @ weights + bias)
        return x

    export_golden(jax.jit(mlp), [(normal(64, 64) / 8, normal(64)) for _ in range(3)], normal(16, 64))


def test_attention(export_golden):
    export_golden(jax.jit(attention), *(normal(2, 4, 32, 16) for _ in range(3)))


def test_conv_net(export_golden):
    def conv_net(kernels, image):
        for kernel in kernels:
            image = jax.nn.relu(
                jax.lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            )
        return image.mean((1, 2))

    export_golden(jax.jit(conv_net), [normal(3, 3, 3, 8), normal(3, 3, 8, 16)], normal(2, 28, 28, 3))


def test_recurrent(export_golden):
    def recurrent(recurrence, weights, sequence):
        def step(state, x):
            state = jnp.tanh(state @ recurrence + x @ weights)
            return state, state.sum()

        return jax.lax.scan(step, jnp.zeros(32), sequence)

    export_golden(jax.jit(recurrent), normal(32, 32) / 8, normal(8, 32), normal(50, 8))


def test_ode(export_golden):
    def pendulum(state, _):
        def slope(y):
            return jnp.stack([y[1], -jnp.sin(y[0]) - 0.1 * y[1]])

        k1 = slope(state)
        k2 = slope(state + 0.05 * k1)
        k3 = slope(state + 0.05 * k2)
        k4 = slope(state + 0.1 * k3)
        state = state + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return state, state

    export_golden(jax.jit(lambda start: jax.lax.scan(pendulum, start, length=100)), np.float32([1.0, 0.0]))


def test_cholesky(export_golden):
    def solve(a, b):
        return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a @ a.T + 48 * jnp.eye(48)), b)

    export_golden(jax.jit(solve), normal(48, 48), normal(48))


WIDTH, HEADS, TOKENS, WORDS = 32, 4, 16, 64


def transformer_logits(parameters, tokens):
    def normalized(x, scale):
        return scale * (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    x = parameters["embedding"][tokens] + parameters["positions"]
    for layer in parameters["layers"]:
        y = normalized(x, layer["scales"][0])
        heads = (y @ layer["qkv"]).reshape(*y.shape[:-1], 3, HEADS, WIDTH // HEADS)
        q, k, v = (jnp.swapaxes(heads[..., number, :, :], -2, -3) for number in range(3))
        mixed = jnp.swapaxes(attention(q, k, v), -2, -3).reshape(y.shape)
        x = x + mixed @ layer["out"]
        x = x + jax.nn.gelu(normalized(x, layer["scales"][1]) @ layer["up"]) @ layer["down"]
    return jax.nn.log_softmax(x @ parameters["embedding"].T)


def transformer_loss(parameters, tokens):
    logits = transformer_logits(parameters, tokens)
    return -jnp.take_along_axis(logits[:, :-1], tokens[:, 1:, None], -1).mean()


def transformer_parameters(layers):
    def layer():
        shapes = {"qkv": (1, 3), "out": (1, 1), "up": (1, 4), "down": (4, 1)}
        weights = {name: normal(rows * WIDTH, columns * WIDTH) / 8 for name, (rows, columns) in shapes.items()}
        return weights | {"scales": np.ones((2, WIDTH), np.float32)}

    embedding, positions = normal(WORDS, WIDTH) / 8, normal(TOKENS, WIDTH) / 8
    return {"embedding": embedding, "positions": positions, "layers": [layer() for _ in range(layers)]}


def test_transformer(export_golden):
    tokens = RANDOM.integers(0, WORDS, (4, TOKENS))
    export_golden(jax.jit(transformer_logits), transformer_parameters(4), tokens)


def test_train_step(export_golden):
    def step(parameters, momentum, tokens):
        loss, gradients = jax.value_and_grad(transformer_loss)(parameters, tokens)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree.map(lambda p, m: p - 0.01 * m, parameters, momentum), momentum, loss

    parameters = transformer_parameters(2)
    momentum = jax.tree.map(np.zeros_like, parameters)
    export_golden(jax.jit(step), parameters, momentum, RANDOM.integers(0, WORDS, (4, TOKENS)))


JOINTS = 30


def test_joint_chain(export_golden):
    """The distance of an arm's tip from its target, with its derivatives, unrolled: its compilation takes long."""
    lengths, offsets, twists = (normal(JOINTS) for _ in range(3))

    def distance(angles):
        pose = jnp.eye(4)
        for length, offset, twist, angle in zip(lengths, offsets, twists, angles, strict=True):
            (c, s), (cos, sin) = (jnp.cos(angle), jnp.sin(angle)), (np.cos(twist), np.sin(twist))
            joint = [c, -s * cos, s * sin, length * c], [s, c * cos, -c * sin, length * s], [0, sin, cos, offset]
            pose = pose @ jnp.array([*joint, [0, 0, 0, 1]])
        return (pose[:3, 3] ** 2).sum()

    export_golden(jax.jit(jax.value_and_grad(distance)), normal(JOINTS))


SPECIES, REACTIONS = 20, 40


def test_kinetics(export_golden):
    """The mass action of 20 species, by Runge-Kutta steps in a scan."""
    spent, made = (RANDOM.integers(0, 2, (REACTIONS, SPECIES)).astype(np.float32) for _ in range(2))

    def rate(log_rates, amounts):
        speeds = jnp.exp(log_rates + spent @ jnp.log(amounts + 1e-6) / SPECIES)
        return speeds @ (made - spent)

    def simulated(log_rates, start):
        def step(amounts, _):
            k1 = rate(log_rates, amounts)
            k2 = rate(log_rates, amounts + 5e-4 * k1)
            k3 = rate(log_rates, amounts + 5e-4 * k2)
            k4 = rate(log_rates, amounts + 1e-3 * k3)
            amounts = jnp.maximum(amounts + 1e-3 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), 0)
            return amounts, amounts.sum()

        return jax.lax.scan(step, start, length=200)

    start = np.abs(normal(SPECIES)) + 1
    export_golden(jax.jit(simulated), normal(REACTIONS) / 4, start.astype(np.float32))

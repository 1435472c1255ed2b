"""Programs in float32 with a constant that changes, and computations in narrower formats, to test the diagnosis with.

They were written before the rule for narrow formats that they test, and are independent of it.
"""

from collections.abc import Callable

import ml_dtypes
import numpy

Array = numpy.ndarray
RELATIVE_CHANGES = (0.0005, 0.001, 0.002, 0.004, 0.008)
"""By how much the constant of a program changes, about 2^-11 to 2^-7 of it: what narrow formats round by, too."""


def _single(value: object) -> Array:
    return numpy.asarray(value, numpy.float32)


def _integrate(slope: Callable[[Array], Array], start: object, step: float, count: int) -> Array:
    """Return every state of an integration by the classical method of Runge and Kutta."""
    states = [_single(start)]
    half, whole, sixth = _single(step / 2), _single(step), _single(step / 6)
    for _ in range(count):
        state = states[-1]
        first = slope(state)
        second = slope(state + half * first)
        third = slope(state + half * second)
        fourth = slope(state + whole * third)
        states.append(state + sixth * (first + 2 * second + 2 * third + fourth))
    return numpy.stack(states)


def _scan(step: Callable[[Array, Array], Array], start: object, inputs: Array) -> Array:
    states = [_single(start)]
    for value in inputs:
        states.append(_single(step(states[-1], value)))
    return numpy.stack(states[1:])


def _softmax(x: Array) -> Array:
    powers = numpy.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _layer_norm(x: Array, epsilon: object) -> Array:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / numpy.sqrt(x.var(-1, keepdims=True) + epsilon)


def _gelu(x: Array, factor: object) -> Array:
    return _single(0.5) * x * (1 + numpy.tanh(_single(0.7978845608) * (x + factor * x**3)))


def _heat(diffusion: Array, start: Array) -> Array:
    state = start
    for _ in range(30):
        state = state + diffusion * (numpy.roll(state, 1) - 2 * state + numpy.roll(state, -1))
    return state


def _adam(beta: Array, gradients: Array) -> Array:
    first = second = weights = numpy.zeros_like(gradients[0])
    for gradient in gradients:
        first = _single(0.9) * first + _single(0.1) * gradient
        second = beta * second + (1 - beta) * gradient**2
        weights = weights - _single(0.01) * first / (numpy.sqrt(second) + _single(1e-8))
    return weights


def _rotary(base: Array, x: Array) -> Array:
    angles = numpy.arange(len(x), dtype=numpy.float32)[:, None] * base ** -_single(numpy.arange(8) / 8)
    left, right = x[:, :8], x[:, 8:16]
    turned = left * numpy.cos(angles) - right * numpy.sin(angles), left * numpy.sin(angles) + right * numpy.cos(angles)
    return numpy.concatenate(turned, 1)


def _square_root(damping: Array, x: Array) -> Array:
    guess = x
    for _ in range(3):
        guess = guess - damping * (guess - x / guess) / 2
    return guess


CHANGED_CONSTANTS: dict[str, tuple[float, Callable[[Array, Array], Array]]] = {
    "pendulum": (9.81, lambda c, x: _integrate(lambda s: _single([s[1], -c * numpy.sin(s[0])]), [1, 0], 0.05, 60)),
    "damped oscillator": (0.3, lambda c, x: _integrate(lambda s: _single([s[1], -s[0] - c * s[1]]), [1, 0], 0.1, 60)),
    "predators and prey": (
        1.1,
        lambda c, x: _integrate(
            lambda s: _single([c * s[0] - s[0] * s[1] / 2, s[0] * s[1] / 4 - s[1] / 2]), [2, 1], 0.05, 60
        ),
    ),
    "lorenz": (
        28.0,
        lambda c, x: _integrate(
            lambda s: _single([10 * (s[1] - s[0]), s[0] * (c - s[2]) - s[1], s[0] * s[1] - s[2] * 8 / 3]),
            [1, 1, 1],
            0.01,
            60,
        ),
    ),
    "decay": (0.7, lambda c, x: _integrate(lambda s: -c * s, x[0], 0.1, 20)),
    "logistic growth": (2.8, lambda c, x: _scan(lambda s, _: c * s * (1 - s), 0.2, x[:, 0])),
    "heat equation": (0.2, lambda c, x: _heat(c, x[0])),
    "moving average": (0.9, lambda c, x: _scan(lambda s, v: c * s + (1 - c) * v, x[0], x[1:])),
    "discounted sum": (0.97, lambda c, x: _scan(lambda s, v: c * s + v, 0 * x[0], x)),
    "momentum": (0.9, lambda c, x: numpy.cumsum(_scan(lambda s, v: c * s - v / 8, 0 * x[0], x), 0)),
    "adam": (0.99, _adam),
    "polynomial": (0.5, lambda c, x: 1 + x * (c + x * (_single(0.25) - x / 8))),
    "quotient": (1.5, lambda c, x: (x + 1) / (x * x + c)),
    "softmax": (0.5, lambda c, x: _softmax(x / c)),
    "attention": (0.25, lambda c, x: _softmax(c * (x @ x.T)) @ x),
    "log of a sum": (2.0, lambda c, x: numpy.log(numpy.exp(c * x).sum(-1)) / c),
    "layer norm": (0.1, lambda c, x: _layer_norm(x, c)),
    "root mean square norm": (0.1, lambda c, x: x / numpy.sqrt((x * x).mean(-1, keepdims=True) + c)),
    "scaled norm": (1.2, lambda c, x: c * _layer_norm(x, _single(1e-5))),
    "gelu": (0.044715, lambda c, x: _gelu(x, c)),
    "leaky relu": (0.1, lambda c, x: numpy.where(x > 0, x, c * x)),
    "elu": (1.0, lambda c, x: numpy.where(x > 0, x, c * numpy.expm1(x))),
    "swish": (1.702, lambda c, x: x / (1 + numpy.exp(-c * x))),
    "sigmoid": (1.3, lambda c, x: 1 / (1 + numpy.exp(-c * x))),
    "rotary positions": (10000.0, _rotary),
    "sine": (3.0, lambda c, x: numpy.sin(c * x)),
    "power": (2.2, lambda c, x: numpy.abs(x) ** c),
    "gaussian kernel": (0.8, lambda c, x: numpy.exp(-((x[:, None] - x[None]) ** 2).sum(-1) * c / 16)),
    "square root by steps": (0.8, lambda c, x: _square_root(c, numpy.abs(x) + _single(0.1))),
    "mixture": (0.3, lambda c, x: c * x + (1 - c) * x[::-1]),
    "factor": (0.125, lambda c, x: c * x),
    "factor of a product": (0.125, lambda c, x: c * (x @ x.T)),
    "offset": (1.0, lambda c, x: x + c),
}
"""By name: a constant, and a program that computes an array from the constant and from 24 rows of 16 inputs."""


def _narrow(name: str) -> Callable[[object], Array]:
    """Return a function that rounds values to a narrow format, and returns them in float32."""
    if name == "tf32":
        # Round to nearest, ties to even, at bit 13: ten bits of the mantissa are left.
        def to_ten_bits(value: object) -> Array:
            bits = _single(value).view(numpy.uint32)
            return ((bits + 0xFFF + ((bits >> 13) & 1)) & numpy.uint32(0xFFFFE000)).view(numpy.float32)

        return to_ten_bits
    kind = ml_dtypes.bfloat16 if name == "bfloat16" else numpy.float16
    return lambda value: _single(_single(value).astype(kind))


def _horner(n: Callable[[object], Array], x: Array) -> Array:
    result = n(x) * 0 + n(-0.125)
    for factor in (0.25, 0.7, 1.1):
        result = n(n(result * n(x)) + n(factor))
    return result


def _narrow_sum(n: Callable[[object], Array], x: Array) -> Array:
    total = n(x[0])
    for row in x[1:]:
        total = n(total + n(row))
    return total


def _recurrent(n: Callable[[object], Array], x: Array) -> Array:
    weights = n(x[:16] / 4)
    return _scan(lambda s, v: numpy.tanh(n(s) @ weights + v), 0 * x[0], x)


def _convolution(n: Callable[[object], Array], x: Array) -> Array:
    return _single([numpy.convolve(n(row), n(x[0, :5]), "same") for row in x])


NARROW_COMPUTATIONS: dict[str, Callable[[Callable[[object], Array], Array], Array]] = {
    "product of matrices": lambda n, x: n(x) @ n(x).T,
    "product with weights": lambda n, x: n(x) @ n(x[:16] / 4),
    "rounded product of matrices": lambda n, x: n(n(x) @ n(x).T),
    "two layers": lambda n, x: n(numpy.maximum(n(x) @ n(x[:16]), 0)) @ n(x[8:]),
    "layer with gelu": lambda n, x: _gelu(n(x) @ n(x[:16] / 4), _single(0.044715)),
    "layer with bias": lambda n, x: n(x) @ n(x[:16]) + x[0],
    "outer product": lambda n, x: numpy.outer(n(x[0]), n(x[1])),
    "product of elements": lambda n, x: n(x) * n(x[::-1]),
    "product of three": lambda n, x: n(n(n(x) * n(x[::-1])) * n(numpy.roll(x, 1))),
    "product and sum of elements": lambda n, x: n(x) * n(x[::-1]) + numpy.roll(x, 1),
    "rounded outputs": lambda n, x: n(numpy.sin(x)),
    "rounded inputs": lambda n, x: n(x) + 0,
    "inputs of a sine": lambda n, x: numpy.sin(n(x)),
    "exponential": lambda n, x: n(numpy.exp(n(x))),
    "hyperbolic tangent": lambda n, x: n(numpy.tanh(n(x))),
    "logarithm": lambda n, x: n(numpy.log1p(numpy.abs(n(x)))),
    "sigmoid": lambda n, x: n(1 / n(1 + n(numpy.exp(n(-x))))),
    "square root": lambda n, x: n(numpy.sqrt(n(numpy.abs(x)))),
    "polynomial": _horner,
    "softmax": lambda n, x: n(_softmax(n(x))),
    "softmax of a product": lambda n, x: _softmax(n(x) @ n(x).T / 4),
    "attention": lambda n, x: n(_softmax(n(x) @ n(x).T / 4)) @ n(x),
    "layer norm": lambda n, x: n(_layer_norm(n(x), _single(1e-5))),
    "sum": _narrow_sum,
    "sum of rounded values": lambda n, x: n(x).sum(-1),
    "sum of squares": lambda n, x: (n(x) * n(x)).sum(-1),
    "recurrent layer": _recurrent,
    "convolution": _convolution,
    "quadratic form": lambda n, x: (n(n(x) @ n(x[:16])) * n(x)).sum(-1),
    "distances": lambda n, x: (n(x[:, None] - x[None]) ** 2).sum(-1),
}
"""By name: a computation that rounds with the function that it is given, from 24 rows of 16 inputs."""


def made_inputs(seed: int) -> Array:
    return numpy.random.default_rng(seed).normal(size=(24, 16)).astype(numpy.float32)


def changed_constants() -> list[tuple[str, Array, Array]]:
    """Return a name, the values expected and those of the changed constant, for every program and change."""
    found = []
    for seed, (name, (constant, program)) in enumerate(CHANGED_CONSTANTS.items()):
        inputs = made_inputs(seed)
        for change in RELATIVE_CHANGES:
            for sign in (1, -1):
                expected, actual = (program(_single(c), inputs) for c in (constant, constant * (1 + sign * change)))
                found.append((f"{name} {sign * change:+}", _single(expected), _single(actual)))
    return found


def narrow_computations() -> list[tuple[str, Array, Array]]:
    """Return a name, the values expected in float32 and those of the narrow format, for every computation."""
    found = []
    for seed, (name, program) in enumerate(NARROW_COMPUTATIONS.items()):
        inputs = made_inputs(100 + seed)
        expected = _single(program(_single, inputs))
        for kind in ("bfloat16", "float16", "tf32"):
            found.append((f"{name} in {kind}", expected, _single(program(_narrow(kind), inputs))))
    return found

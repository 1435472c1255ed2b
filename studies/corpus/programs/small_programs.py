"""The smallest program, and two that take long to compile or to run, for `benchmarks.writing`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from studies.corpus.programs.inputs import integers, normal

pytestmark = pytest.mark.export_compat


def test_scalar(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(x) * jnp.exp(-x)), np.float32(0.7))


JOINTS = 30


def test_joint_chain(export_golden):
    """The distance of an arm's tip from a target and its derivatives, in unrolled code that takes long to compile."""
    lengths, offsets, twists = (normal(n, JOINTS) for n in range(3))

    def distance(angles):
        pose = jnp.eye(4)
        for length, offset, twist, angle in zip(lengths, offsets, twists, angles, strict=True):
            (c, s), (cos, sin) = (jnp.cos(angle), jnp.sin(angle)), (np.cos(twist), np.sin(twist))
            joint = [c, -s * cos, s * sin, length * c], [s, c * cos, -c * sin, length * s], [0, sin, cos, offset]
            pose = pose @ jnp.array([*joint, [0, 0, 0, 1]])
        return (pose[:3, 3] ** 2).sum()

    export_golden(jax.jit(jax.value_and_grad(distance)), normal(3, JOINTS))


SPECIES, REACTIONS = 20, 40


def test_kinetics(export_golden):
    """The kinetics of reactions among 20 species, by Runge-Kutta steps in a scan."""
    spent, made = (integers(n, REACTIONS, SPECIES, high=2).astype(np.float32) for n in range(2))

    def simulated(log_rates, start):
        def rate(amounts):
            speeds = jnp.exp(log_rates + spent @ jnp.log(amounts + 1e-6) / SPECIES)
            return speeds @ (made - spent)

        def step(amounts, _):
            k1 = rate(amounts)
            k2 = rate(amounts + 5e-4 * k1)
            k3 = rate(amounts + 5e-4 * k2)
            k4 = rate(amounts + 1e-3 * k3)
            amounts = jnp.maximum(amounts + 1e-3 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), 0)
            return amounts, amounts.sum()

        return jax.lax.scan(step, start, length=200)

    export_golden(jax.jit(simulated), normal(2, REACTIONS, scale=1 / 4), np.abs(normal(3, SPECIES)) + 1)

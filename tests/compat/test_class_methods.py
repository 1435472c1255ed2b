"""Methods of absltest classes with parameters, marked ones beside unmarked ones: the way in which optax tests itself."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from absl.testing import absltest, parameterized


def squared_error(predictions, targets):
    return jnp.mean((predictions - targets) ** 2)


def huber(predictions, targets, delta=0.5):
    error = jnp.abs(predictions - targets)
    return jnp.mean(jnp.where(error <= delta, error**2 / 2, delta * (error - delta / 2)))


class Losses(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.predictions = np.array([-2.0, 0.5, 0.25, 1.5], np.float32)
        self.targets = np.array([-1.75, -0.5, 0.0, 1.5], np.float32)

    @parameterized.named_parameters(("squared", squared_error), ("huber", huber))
    @pytest.mark.export_compat(vjp_order=1)
    def test_with_gradient(self, loss):
        self.export_golden(jax.jit(loss), self.predictions, self.targets)

    @parameterized.parameters(squared_error, huber)
    def test_the_loss_of_equal_predictions_and_targets_is_0(self, loss):
        assert loss(self.targets, self.targets) == 0


class Momentum(NamedTuple):
    count: jax.Array
    trace: dict[str, jax.Array]


@pytest.mark.export_compat
class Steps(parameterized.TestCase):
    @parameterized.product(dtype=["bfloat16", "float32"])
    def test_momentum(self, dtype):
        def step(parameters, state, gradients):
            trace = {name: 0.875 * state.trace[name] + gradients[name] for name in parameters}
            updated = {name: parameters[name] - 0.125 * trace[name] for name in parameters}
            return updated, Momentum(state.count + 1, trace)

        parameters = {"bias": jnp.arange(2, dtype=dtype), "weights": jnp.arange(6, dtype=dtype).reshape(2, 3) / 8}
        state = Momentum(jnp.int32(0), jax.tree_util.tree_map(jnp.zeros_like, parameters))
        self.export_golden(jax.jit(step), parameters, state, parameters)


class Powers(absltest.TestCase):
    @pytest.mark.export_compat
    def test_each_in_a_subtest(self):
        for power in (2, 3):
            with self.subTest(power=power):
                self.export_golden(jax.jit(lambda x, n=power: x**n), np.float32(1.5), name=f"power_{power}")

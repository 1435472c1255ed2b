"""MuJoCo MJX: models and states are dataclasses of many arrays."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx

PENDULUM = """
<mujoco>
  <option timestep="0.01" iterations="4" ls_iterations="4"><flag eulerdamp="disable"/></option>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" mass="1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" gear="1"/></actuator>
</mujoco>
"""
torques = np.linspace(-1, 1, 4, dtype=np.float32).reshape(4, 1)


@pytest.fixture(scope="module")
def model():
    return mjx.put_model(mujoco.MjModel.from_xml_string(PENDULUM))


def step(model, torque, angle=0.3):
    data = mjx.make_data(model)
    return mjx.step(model, data.replace(ctrl=torque, qpos=jnp.full_like(data.qpos, angle)))


def angle_after(model, torque):
    data = step(model, torque)
    return jnp.concatenate([data.qpos, data.qvel])


@pytest.mark.export_compat
def test_forward(export_golden, model):
    export_golden(jax.jit(lambda torque: angle_after(model, torque)), torques[0])


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden, model):
    export_golden(jax.jit(lambda torque: angle_after(model, torque)), torques[0])


@pytest.mark.export_compat
def test_random_key(export_golden, model):
    def explore(torque, key):
        return angle_after(model, torque + 0.1 * jax.random.normal(key, (1,)))

    export_golden(jax.jit(explore), torques[0], jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes="b, 1")
def test_symbolic_batch(export_golden, model):
    export_golden(jax.jit(jax.vmap(lambda torque: angle_after(model, torque))), torques).also(torques[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden, model):
    export_golden(jax.jit(mjx.step), model, mjx.make_data(model))

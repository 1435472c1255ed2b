"""MuJoCo MJX: models and states are dataclasses of many arrays. A two-link arm, and a ball on a plane."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx

OPTION = '<option timestep="0.005" iterations="4" ls_iterations="4"><flag eulerdamp="disable"/></option>'
ARM = f"""
<mujoco>{OPTION}
  <worldbody>
    <body pos="0 0 1">
      <joint name="shoulder" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" mass="1" contype="0" conaffinity="0"/>
      <body pos="0 0 -0.5">
        <joint name="elbow" type="hinge" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0 0 -0.4" mass="0.7" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder" gear="5"/><motor joint="elbow" gear="2"/></actuator>
</mujoco>"""
BALL = f"""
<mujoco>{OPTION}
  <worldbody>
    <geom type="plane" size="2 2 0.1"/>
    <body pos="0 0 0.11"><freejoint/><geom type="sphere" size="0.1" mass="0.5"/></body>
  </worldbody>
</mujoco>"""


angles, speeds = np.array([0.3, -0.2], np.float32), np.array([0.5, 0.1], np.float32)
torques = np.linspace(-0.4, 0.4, 8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(scope="module")
def model():
    return mjx.put_model(mujoco.MjModel.from_xml_string(ARM))


def steps(model, count, qpos, qvel, ctrl):
    data = mjx.make_data(model).replace(qpos=qpos, qvel=qvel, ctrl=ctrl)
    data = jax.lax.scan(lambda data, _: (mjx.step(model, data), None), data, None, length=count)[0]
    return data.qpos, data.qvel, data.xpos


@pytest.mark.export_compat
def test_forward(export_golden):
    """A step of a ball that touches the plane."""
    model = mjx.put_model(mujoco.MjModel.from_xml_string(BALL))
    place = np.array([0, 0, 0.099, 1, 0, 0, 0], np.float32)
    speed = np.array([0.3, 0, -0.2, 0, 1, 0], np.float32)
    export_golden(jax.jit(lambda *arguments: steps(model, 4, *arguments, jnp.zeros(0))), place, speed)


@pytest.mark.export_compat(vjp_order=1)
def test_gradient(export_golden, model):
    export_golden(jax.jit(lambda *arguments: steps(model, 5, *arguments)), angles, speeds, torques[0])


@pytest.mark.export_compat
def test_random_key(export_golden, model):
    def explore(torque, key):
        return steps(model, 1, angles, speeds, torque + 0.1 * jax.random.normal(key, (2,)))

    export_golden(jax.jit(explore), torques[0], jax.random.key(1))


@pytest.mark.export_compat(symbolic_shapes="b, 2")
def test_symbolic_batch(export_golden, model):
    export_golden(jax.jit(jax.vmap(lambda torque: steps(model, 1, angles, speeds, torque))), torques).also(torques[:3])


@pytest.mark.export_compat
def test_model_argument(export_golden, model):
    export_golden(jax.jit(mjx.step), model, mjx.make_data(model))

"""MuJoCo MJX: steps of a two-link arm and of a ball on a plane, with contacts; their gradients."""

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


def steps(model, count, qpos, qvel, ctrl):
    data = mjx.make_data(model).replace(qpos=qpos, qvel=qvel, ctrl=ctrl)
    data = jax.lax.scan(lambda data, _: (mjx.step(model, data), None), data, None, length=count)[0]
    return data.qpos, data.qvel, data.xpos


@pytest.mark.export_compat(vjp_order=1)
def test_arm(export_golden):
    model = mjx.put_model(mujoco.MjModel.from_xml_string(ARM))
    arguments = [np.array(pair, np.float32) for pair in ([0.3, -0.2], [0.5, 0.1], [0.4, -0.3])]
    export_golden(jax.jit(lambda *arguments: steps(model, 5, *arguments)), *arguments)


@pytest.mark.export_compat
def test_ball_with_contact(export_golden):
    model = mjx.put_model(mujoco.MjModel.from_xml_string(BALL))
    place = np.array([0, 0, 0.099, 1, 0, 0, 0], np.float32)
    speed = np.array([0.3, 0, -0.2, 0, 1, 0], np.float32)
    export_golden(jax.jit(lambda *arguments: steps(model, 4, *arguments, jnp.zeros(0))), place, speed)

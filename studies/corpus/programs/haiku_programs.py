"""Haiku: a residual block of its own ResNet, and a transformer's block with dropout."""

import haiku as hk
import jax
import pytest

from studies.corpus.programs.normal import normal


@pytest.mark.export_compat
def test_resnet_block(export_golden):
    def block(x):
        return hk.nets.ResNet.BlockGroup(
            16, 1, 2, {"create_scale": True, "create_offset": True, "decay_rate": 0.9}, False, False, True, "group"
        )(x, True, False)

    model, x = hk.without_apply_rng(hk.transform_with_state(block)), normal(0, 4, 16, 16, 16)
    params, state = model.init(jax.random.PRNGKey(0), x)
    export_golden(jax.jit(model.apply), params, state, x)


@pytest.mark.export_compat(vjp_order=1)
def test_attention_block(export_golden):
    def block(x):
        norm = hk.LayerNorm(-1, create_scale=True, create_offset=True)(x)
        x = x + hk.MultiHeadAttention(8, 8, w_init=hk.initializers.VarianceScaling(1.0), model_size=64)(*[norm] * 3)
        return x + hk.nets.MLP([128, 64], activation=jax.nn.gelu)(hk.LayerNorm(-1, True, True)(x))

    model, x = hk.without_apply_rng(hk.transform(block)), normal(0, 1, 128, 64)
    params = model.init(jax.random.PRNGKey(0), x)
    export_golden(jax.jit(lambda x: model.apply(params, x)), x)

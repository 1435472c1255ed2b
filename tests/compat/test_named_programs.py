"""Operations that carry a name, a computation or an algorithm: composites, dots, attention, references, calls of other artifacts."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

GOLDEN = Path(__file__).parents[2] / "golden"
EVERY = ["cpu", "cuda", "rocm", "tpu"]
PRESETS = {
    "cuda": (
        "BF16_BF16_F32",
        "BF16_BF16_F32_X3",
        "BF16_BF16_F32_X6",
        "BF16_BF16_F32_X9",
        "F32_F32_F32",
        "TF32_TF32_F32",
        "TF32_TF32_F32_X3",
    ),
    "tpu": ("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "F32_F32_F32"),
}


def needs(module, name):
    if not hasattr(module, name):
        pytest.skip(f"jax {jax.__version__} has no {module.__name__}.{name}")


@pytest.mark.export_compat(vjp_order=1)
def test_composite(export_golden, numbers):
    needs(lax, "composite")

    def scaled_sine(x, *, factor):
        return jnp.sin(x) * factor

    @jax.custom_vjp
    def scaled(x):
        return lax.composite(scaled_sine, "compat.scaled_sine", version=2)(x, factor=np.float32(2))

    scaled.defvjp(lambda x: (scaled(x), x), lambda x, cotangent: (2 * jnp.cos(x) * cotangent,))
    export_golden(jax.jit(lambda x: scaled(x) + 1), numbers(5))


def dots(presets):
    return lambda x, y: [lax.dot(x, y, precision=getattr(lax.DotAlgorithmPreset, name)) for name in presets]


@pytest.mark.export_compat
def test_dot_precisions(export_golden, numbers):
    needs(lax, "DotAlgorithmPreset")

    def f(x, y):
        plain = [lax.dot(x, y, precision=precision) for precision in ("highest", "high", "default")]
        return plain, dots(["DEFAULT", "F32_F32_F32"])(x, y), lax.dot(x, y, preferred_element_type=jnp.float32)

    export_golden(jax.jit(f), numbers(3, 4), numbers(4, 2))


@pytest.mark.parametrize("platform", [pytest.param(p, marks=pytest.mark.export_compat(platforms=[p])) for p in PRESETS])
def test_dot_algorithms(export_golden, numbers, platform):
    needs(lax, "DotAlgorithmPreset")
    presets = PRESETS[platform]

    def plain(x, y):
        return [lax.dot(x, y)] * len(presets)

    chosen = {platform: dots(presets), "default": plain}
    export_golden(jax.jit(lambda x, y: lax.platform_dependent(x, y, **chosen)), numbers(3, 4), numbers(4, 2))


@pytest.mark.export_compat(platforms=EVERY)
def test_ragged_dot(export_golden, numbers):
    needs(lax, "ragged_dot")
    export_golden(jax.jit(lax.ragged_dot), numbers(6, 3), numbers(2, 3, 4), np.array([2, 4], np.int32))


@pytest.mark.export_compat
def test_scaled_dot(export_golden, numbers):
    needs(lax, "scaled_dot")

    def f(x, y, scales):
        x, y = x.astype(jnp.float8_e4m3fn), y.astype(jnp.float8_e4m3fn)
        scales = scales.astype(jnp.float8_e8m0fnu)
        return lax.scaled_dot(x, y, lhs_scale=scales, rhs_scale=scales.T)

    export_golden(jax.jit(f), numbers(4, 64), numbers(64, 4), np.exp2(np.arange(8, dtype=np.float32)).reshape(4, 2))


@pytest.mark.export_compat
def test_scaled_matmul(export_golden, numbers):
    if jax.__version_info__ < (0, 11):
        pytest.skip(f"jax {jax.__version__} lowers jax.nn.scaled_matmul for CUDA only")

    def f(x, y, scales):
        x, y = x.astype(jnp.float8_e4m3fn), y.astype(jnp.float8_e4m3fn)
        scales = scales.astype(jnp.float8_e8m0fnu)
        return jax.nn.scaled_matmul(x, y, scales, scales)

    scales = np.exp2(np.arange(8, dtype=np.float32)).reshape(1, 4, 2)
    export_golden(jax.jit(f), numbers(1, 4, 64), numbers(1, 4, 64, offset=9), scales)


@pytest.mark.export_compat(platforms=["cpu", "cuda", "tpu"], vjp_order=1)
def test_dot_product_attention(export_golden, numbers):
    needs(jax.nn, "dot_product_attention")

    def f(q, k, v, mask):
        return jax.nn.dot_product_attention(q, k, v, mask=mask, is_causal=True, scale=0.5)

    inputs = [numbers(1, 4, 2, 8, offset=offset) for offset in (0, 5, 11)]
    export_golden(jax.jit(f), *inputs, np.array([[[[True, True, False, True]]]]))


@pytest.mark.export_compat(platforms=EVERY)
def test_empty(export_golden, numbers):
    needs(lax, "empty")
    export_golden(jax.jit(lambda x: lax.empty((4,), np.float32).at[:].set(x)), numbers(4))


@pytest.mark.export_compat
def test_reference_inside(export_golden, numbers):
    """Mutable arrays are possible as long as no reference is an argument or a result."""
    needs(jax, "new_ref")

    def f(x):
        ref = jax.new_ref(x)
        ref[1:] += 1
        lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(i, ref[i] * 2), None)
        first = ref[...]
        ref[0] = first[1]
        return first, jax.freeze(ref)

    export_golden(jax.jit(f), numbers(3, 2))


@pytest.mark.export_compat
def test_named_calls_and_scopes(export_golden, numbers):
    inner = jax.named_call(jax.jit(lambda x: x * 2), name="doubled")

    @jax.named_scope("outer")
    def f(x):
        with jax.named_scope("inner scope/with signs"):
            return inner(x) + inner(x + 1)

    export_golden(jax.jit(f), numbers(3))


@pytest.mark.export_compat
def test_rules_of_linear_functions(export_golden, numbers):
    def scaled(x):
        return jax.custom_derivatives.linear_call(lambda r, x: r * x, lambda r, ct: r * ct, jnp.float32(3), x)

    @jax.custom_vjp
    def sine(x):
        return jnp.sin(x)

    sine.defvjp(lambda x: (sine(x), x), lambda x, cotangent: (cotangent * jnp.cos(x),), optimize_remat=True)

    def f(x):
        return scaled(x), jax.linear_transpose(scaled, x)(x)[0], jax.vjp(sine, x)[1](x)

    export_golden(jax.jit(f), numbers(4))


@pytest.mark.export_compat
def test_artifact_of_another_release_inside(export_golden, numbers):
    """The inner artifact is at least half a year old; its module is copied into the new artifact, in its own version."""
    older = "0.6.2-cpu" if jax.__version_info__ < (0, 10) else "0.9.2-cpu"
    file = GOLDEN / "tests.compat.test_models.test_attention" / older / "artifact.jaxexport"
    inner = jax.export.deserialize(bytearray(file.read_bytes()))
    leaves = [numbers(*aval.shape, offset=offset) for offset, aval in enumerate(inner.in_avals)]
    args, _ = jax.tree_util.tree_unflatten(inner.in_tree, leaves)
    export_golden(jax.jit(lambda *args: 2 * inner.call(*args)), *args)

"""The statements of JAX's export document on platforms: defaults, refusals, disabled checks, sizes of modules."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from export_core.artifact import read_bytes
from export_core.readers.cell import WRONG_PLATFORM

# Section "Cross-platform and multi-platform export". In June 2024 the keyword was lowering_platforms; it is platforms
# since 0.4.30.


def test_this_machines_platform_is_the_default(export_marked):
    # default_lowering_platform before 0.4.30.
    assert export.default_export_platform() == "cpu"
    assert export_marked(jax.jit(lax.cos), 1.0).artifact.envelope.platforms == ("cpu",)


def test_a_call_on_another_platform_is_refused(export_marked):
    exp = export.export(jax.jit(lax.cos), platforms=["tpu"])(1.0)
    # "The exported function 'cos' was lowered for" in June 2024, "Function 'cos' was exported for" since 0.4.30.
    with pytest.raises(
        ValueError, match=r"'cos' was \w+ for platforms '\('tpu',\)' but it is used on '\('cpu',\)'"
    ) as refusal:
        exp.call(1.0)
    assert re.search(WRONG_PLATFORM, str(refusal.value))
    # jax's other refusals have other messages.
    here = export.deserialize(export.export(jax.jit(lax.cos))(1.0).serialize())
    for call in (lambda: jax.grad(here.call)(1.0), lambda: here.call(np.ones(3, np.float32))):
        with pytest.raises(ValueError, match=r"No VJP is available|Rank mismatch") as other:
            call()
        assert not re.search(WRONG_PLATFORM, str(other.value))
    assert export_marked(jax.jit(lax.cos), 1.0, platforms=("tpu",)).artifact.envelope.platforms == ("tpu",)


def test_a_disabled_check_allows_other_platforms_and_is_recorded(export_marked):
    exp_unsafe = export.export(
        jax.jit(lax.cos), platforms=["tpu"], disabled_checks=[export.DisabledSafetyCheck.platform()]
    )(1.0)
    result = exp_unsafe.call(1.0)
    assert (float(result), result.weak_type) == (pytest.approx(0.5403023), True)
    produced = export_marked(
        jax.jit(lax.cos), 1.0, platforms=("tpu",), disabled_checks={"platform": "cos is the same anywhere"}
    )
    assert [str(check) for check in produced.artifact.envelope.disabled_checks] == ["platform"]
    rehydrated = export.deserialize(bytearray(produced.artifact.data))
    assert float(rehydrated.call(1.0)) == pytest.approx(0.5403023)


def test_one_artifact_is_exported_for_several_platforms(export_marked):
    exp_multi = export.export(jax.jit(lax.cos), platforms=["tpu", "cpu", "cuda"])(1.0)
    result = exp_multi.call(1.0)
    assert (float(result), result.weak_type) == (pytest.approx(0.5403023), True)
    produced = export_marked(jax.jit(lax.cos), 1.0, platforms=("tpu", "cpu", "cuda"))
    assert produced.artifact.envelope.platforms == ("tpu", "cpu", "cuda")


def test_a_module_for_several_platforms_is_hardly_larger():
    def f(x):
        for _ in range(1000):
            x = jnp.cos(x)
        return x

    exp_single = export.export(jax.jit(f))(1.0)
    exp_multi = export.export(jax.jit(f), platforms=["cpu", "tpu", "cuda"])(1.0)
    # 9220 and 9282 bytes in the document, skipped there; 9424 and 9484 with 0.12.0.1.
    single, multi = len(exp_single.mlir_module_serialized), len(exp_multi.mlir_module_serialized)
    assert single < multi < 1.01 * single
    modules = [read_bytes(bytes(exp.serialize())).module for exp in (exp_single, exp_multi)]
    assert [module.nbytes for module in modules] == [single, multi]
    # Without a primitive that is lowered differently, the operations are the same; only main takes the platform's
    # index.
    assert modules[0].op_counts == modules[1].op_counts
    assert modules[1].main.inputs == ("tensor<i32>", *modules[0].main.inputs)


def test_a_module_has_the_lowering_of_each_platform(export_marked):
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
    alone, several = (
        {
            call.target
            for call in export_marked(jax.jit(jnp.linalg.cholesky), matrix, platforms=platforms).artifact.custom_calls
        }
        for platforms in (("cpu",), ("cpu", "cuda"))
    )
    assert alone
    assert alone < several

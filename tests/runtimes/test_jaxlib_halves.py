"""The halves that call jaxlib without jax: a bare PJRT client, and the interpreter of StableHLO."""

import subprocess
import sys
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest
from cold_half import RUNTIMES, call_half
from jax import export, lax

from export_core.releases.runtimes import runtime_named

GOLDENS = Path(__file__).parents[2] / "golden"
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("int4", "uint4", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
both = pytest.mark.parametrize("half", ["pjrt", "stablehlo"])


def all_bits(name: str) -> np.ndarray:
    """Return special numbers of a dtype: NaNs with payloads, infinities, zeros of both signs and subnormals."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    if name == "bool":
        return np.array([[True, False, True]])
    if name in ("int4", "uint4", "float4_e2m1fn"):
        return np.array([[15 if name == "uint4" else -6, 0, 6]]).astype(dtype)
    if name.startswith("float8"):
        return np.arange(256, dtype=np.uint8).view(dtype).reshape(16, 16)
    return np.random.default_rng(5).integers(0, 256, (4, 6 * dtype.itemsize), np.uint8).view(dtype)


def exported_with(function, *values, platforms=("cpu",)) -> bytes:
    with jax.enable_x64(True):
        arguments = [jax.ShapeDtypeStruct(np.shape(value), value.dtype) for value in values]
        return export.export(jax.jit(function), platforms=platforms)(*arguments).serialize()


def from_golden(name: str) -> tuple[bytes, np.ndarray, np.ndarray]:
    """Return the artifact, the input and the output of a golden that takes and returns one array."""
    folder = GOLDENS / name / "0.12.0.1-cpu"
    arrays = [np.load(folder / file)["0000.float32"] for file in ("inputs.npz", "outputs.npz")]
    return (folder / "artifact.jaxexport").read_bytes(), *arrays


def test_the_stablehlo_worker_can_import_before_its_first_cell():
    half = RUNTIMES / "stablehlo_worker.py"
    code = f"import runpy; runpy.run_path({str(half)!r})['start_ahead'](True)"
    subprocess.run([sys.executable, "-c", code], check=True)


@both
def test_bits_of_every_dtype_survive_a_call(half, tmp_path):
    values = [all_bits(name) for name in DTYPES]
    values += [np.float32(2.5), np.zeros((0, 3), np.complex64), np.array(1, ml_dtypes.bfloat16)]
    exported = exported_with(lambda *arrays: [x.T for x in arrays], *values)
    called = call_half(half, exported, *values, folder=tmp_path)
    assert called.error == ""
    for value, result in zip(values, called.outputs, strict=True):
        assert (result.dtype, result.shape) == (value.dtype, value.T.shape)
        assert result.tobytes() == value.T.tobytes(), value.dtype


@both
def test_an_artifact_for_several_platforms_runs_its_branch_for_cpu(half, tmp_path):
    def choose(x):
        return lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 2)

    x = np.float32([1, 2])
    artifact = exported_with(choose, x, platforms=("cuda", "cpu", "tpu"))
    called = call_half(half, artifact, x, folder=tmp_path, x64=True)
    assert called.error == ""
    assert [*called.outputs[0]] == [2, 3]


@both
def test_a_workers_warm_imports_all_that_a_call_needs_without_jax(half, tmp_path):
    x = np.complex64([1, 2j])
    called = call_half(half, exported_with(lambda x: x * 2, x), x, folder=tmp_path)
    assert called.threads == 1
    assert called.late == []
    assert not called.jax
    assert called.stage == "run"


def test_pjrt_passes_tokens_of_ordered_effects(tmp_path):
    artifact, given, expected = from_golden("tests.compat.test_effects.test_ordered")
    called = call_half("pjrt", artifact, given, folder=tmp_path)
    assert called.error == ""
    np.testing.assert_allclose(called.outputs[0], expected, rtol=1e-6)


def test_the_stablehlo_interpreter_refuses_tokens(tmp_path):
    artifact, given, _ = from_golden("tests.compat.test_effects.test_ordered")
    called = call_half("stablehlo", artifact, given, folder=tmp_path)
    assert called.stage == "deserialize"
    assert runtime_named("stablehlo").refusal(called.error).meaning.startswith("tokens of ordered effects")


def test_pjrt_uses_the_layouts_of_the_artifact(tmp_path):
    artifact, given, expected = from_golden("tests.compat.test_devices.test_layouts")
    called = call_half("pjrt", artifact, given, folder=tmp_path)
    np.testing.assert_array_equal(called.outputs[0], expected)

"""The narrowest float type of an artifact's modules, which bounds how exact its numbers can be."""

from pathlib import Path

import ml_dtypes
import pytest
from kept import DATA

from export_core.artifact import Artifact, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.numerics import NARROWEST_FIRST, narrowest_float

GOLDENS = Path(__file__).parents[2] / "golden"
DTYPES = "tests.compat.test_dtypes"
NARROWEST = {
    f"{DTYPES}.test_dtype[bfloat16]": "bfloat16",
    f"{DTYPES}.test_dtype[float16]": "float16",
    f"{DTYPES}.test_dtype[complex64]": "float32",
    f"{DTYPES}.test_dtype[int32]": "",
    f"{DTYPES}.test_python_numbers": "bfloat16",  # beside float32
    f"{DTYPES}.test_tiny_dtype[float8_e4m3fn]": "float8_e4m3fn",
    f"{DTYPES}.test_tiny_dtype[float8_e5m2fnuz]": "float8_e5m2fnuz",
    f"{DTYPES}.test_wide_dtype[float64]": "float64",
    f"{DTYPES}.test_wide_dtype[complex128]": "float64",
    "tests.compat.test_models.test_mlp_with_gradients": "float32",
}


def golden(case: str, jaxlib: str = "0.9.2") -> Artifact:
    return read(GOLDENS / case / f"{jaxlib}-cpu" / "artifact.jaxexport")


@pytest.mark.parametrize("jaxlib", ["0.9.2", "0.12.0.1"])
@pytest.mark.parametrize("case", NARROWEST)
def test_narrowest_float(case, jaxlib):
    assert narrowest_float(golden(case, jaxlib)) == NARROWEST[case]


@pytest.mark.parametrize("jaxlib", ["0.4.30", "0.6.2", "0.8.1", "0.9.2", "0.12.0.1"])
def test_each_bytecode_version_is_read(jaxlib):
    assert narrowest_float(read(DATA / jaxlib / "mlp.jaxexport")) == "float32"


def test_keys_are_no_floats():
    assert narrowest_float(read(DATA / "0.12.0.1" / "key.jaxexport")) == ""


def test_the_modules_of_derivatives_count():
    wide, narrow = (golden(f"{DTYPES}.{name}").envelope for name in ("test_wide_dtype[float64]", "test_dtype[float16]"))
    assert wide is not None
    assert narrow is not None
    assert narrowest_float(read_bytes(encode(wide._replace(vjp=narrow)))) == "float16"
    assert narrowest_float(read_bytes(encode(narrow._replace(vjp=wide)))) == "float16"


def test_types_are_in_the_order_of_their_precision():
    eps = [float(ml_dtypes.finfo(dtype).eps) for dtype in NARROWEST_FIRST]
    assert eps == sorted(eps, reverse=True)

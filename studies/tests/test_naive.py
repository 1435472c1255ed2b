"""The naive replay of runtimes: it reads and writes MLIR's text, and agrees with a matrix."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from studies.runtimes.naive_calls import as_text, from_text, nibbles

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "dtype", "numbers"),
    [
        ("dense<[[1.0, -2.5e-1], [0x7F800000, 3.0]]> : tensor<2x2xf32>", "float32", [[1, -0.25], [np.inf, 3]]),
        ("dense<7> : tensor<2xi8>", "int8", [7, 7]),
        ("dense<true> : tensor<i1>", "bool", True),
        ('dense<"0x0100FFFF"> : tensor<2xui16>', "uint16", [1, 65535]),
        ("dense<> : tensor<0x3xf32>", "float32", np.zeros((0, 3))),
    ],
)
def test_the_text_of_an_array_is_read(text, dtype, numbers):
    found = from_text(text, dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, numbers)


def test_an_array_is_written_as_stablehlo_text_of_its_bytes():
    assert as_text(np.array([1, -1], ml_dtypes.int4)) == 'dense<"0x010f"> : tensor<2xi4>'
    assert as_text(np.array(1, ml_dtypes.float8_e5m2)) == 'dense<"0x3c"> : tensor<f8E5M2>'
    assert as_text(np.array([True, False])) == "dense<[true, false]> : tensor<2xi1>"


def test_two_int4_are_packed_into_a_byte():
    assert nibbles(np.array([1, -1, 2], ml_dtypes.int4)) == b"\xf1\x02"


@pytest.mark.weekly
@pytest.mark.parametrize("reader", ["stablehlo==0.12.0.1", "iree==3.13.0"])
def test_the_naive_replay_agrees_with_a_matrix(tmp_path, reader):
    cases = ("*test_tiny_dtype*int4*", "*test_dtype*complex64*", "*test_random_key*rbg*", "*test_types_alone*")
    words = [word for case in cases for word in ("--cases", case)]
    matrix = ["export_core", "matrix", "--readers", reader, "--writers", "0.12.0.1", "--results", str(tmp_path), *words]
    subprocess.run([sys.executable, "-m", *matrix], cwd=ROOT, capture_output=True)
    naive = ["studies.runtimes.naive", str(tmp_path), "--runtime", reader, "--cells", "8"]
    done = subprocess.run([sys.executable, "-m", *naive], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "verdicts agree" in done.stdout

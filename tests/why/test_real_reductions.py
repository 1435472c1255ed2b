"""Reductions of this repository's goldens in releases that fail, by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from export_core.why.reduction.record import ReductionFolder

pytestmark = pytest.mark.matrix
GOLDENS = Path(__file__).parents[2] / "golden"


def reduce(jaxexport, folder: Path, case: str, writer: str, reader: str, *words: str):
    named = ("--case", f"tests.compat.{case}", "--writer", writer, "--reader", reader)
    return jaxexport("reduce", *named, "--goldens", str(GOLDENS), "-o", str(folder), *words)


def test_a_crash_in_lapack_is_one_call_of_it(jaxexport, tmp_path):
    """Until 0.9.2, LAPACK is not loaded in a process that has traced none of it."""
    ended = reduce(jaxexport, tmp_path / "reduced", "test_linear_algebra.test_qr", "0.11.0", "0.9.2")
    assert ended.code == 0, ended.err
    reduction, steps, _ = ReductionFolder(tmp_path / "reduced").read()
    assert reduction.failure == "crash in stage run: died by signal 11 (SIGSEGV)"
    assert steps[-1].operations == 1 < reduction.operations
    assert (tmp_path / "reduced" / "module.mlir").read_text().count("stablehlo.custom_call @lapack_sgeqrf_ffi") == 1
    assert f"{reduction.operations} operations → 1" in ended.out

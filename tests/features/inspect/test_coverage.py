"""`jaxexport goldens list --coverage`: what a folder of goldens covers, read without jax."""

import shutil
from pathlib import Path

import pytest

from export_core.features.inspect.coverage import coverage
from export_core.goldens import GoldenStore

GOLDEN = Path(__file__).parents[3] / "golden" / "tests.compat.test_platforms.test_targets_of_each_platform"
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with one case for cpu and cuda, by two writers."""
    for writer in ("0.9.2-cpu", "0.12.0.1-cpu"):
        shutil.copytree(GOLDEN / writer, tmp_path / GOLDEN.name / writer)
    return tmp_path


@pytest.fixture
def rows(folder):
    return coverage(GoldenStore(folder).goldens())


def test_coverage_counts_custom_calls_only_on_their_platform(rows):
    def counts(kind: str, name: str) -> list[int]:
        return [len(rows[kind][name].platforms[platform]) for platform in PLATFORMS]

    assert counts("targets", "lapack_sgeqrf_ffi") == [1, 0, 0, 0]
    assert counts("targets", "cusolver_geqrf_ffi") == [0, 1, 0, 0]
    assert counts("primitives", "qr") == [1, 1, 0, 0]


def test_coverage_counts_a_case_once_and_lists_all_its_writers(folder, jaxexport):
    out = jaxexport("goldens", "list", "--coverage", "--goldens", str(folder)).out
    (line,) = [line for line in out.splitlines() if line.split()[:1] == ["float32"]]
    assert line.split() == ["float32", "1", "1", "1", "0.9.2,", "0.12.0.1"]


def test_coverage_reports_formats_and_features_of_artifacts(rows):
    assert {"serialization format 5, 6, 7, 8 or 9", "serialization format 12", "calling convention 10"} <= set(
        rows["formats"]
    )
    assert "several platforms" in rows["features"]


def test_a_folder_without_goldens_is_an_error(tmp_path, jaxexport):
    ended = jaxexport("goldens", "list", "--coverage", "--goldens", str(tmp_path), code=2)
    assert f"{tmp_path}: expected goldens, found none. Name their folder with --goldens." in ended.err

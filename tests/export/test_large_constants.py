"""A function that closes over large arrays: its listing has their hashes, and few copies of them are made."""

import gc
import re
import tracemalloc
from functools import partial

import flatbuffers
import jax.numpy as jnp
import numpy as np
import pytest

from export_core.artifact.constant_hashes import with_hashes
from export_core.export import api
from export_core.export.errors import ExportError
from export_core.goldens.arrays import from_npz, leaf_of, to_npz
from export_core.goldens.store import GoldenStore, WriteStatus
from export_core.numbers.noise import scale_of

RANDOM = np.random.default_rng(0)
X = np.float32(1)
SIZE = 8 << 20
WEIGHTS = RANDOM.random(SIZE // 4, np.float32)
LONG = [
    RANDOM.random(101, np.float32),
    RANDOM.random(120).astype(jnp.bfloat16),
    (RANDOM.random(110) * 1j).astype(np.complex64),
    RANDOM.integers(0, 9, 2000, np.int8),
    RANDOM.random((4, 80), np.float32),
]
ALIKE = np.zeros(300, np.float32)
SHORT = RANDOM.random(100, np.float32)


def sums(*arrays):
    return lambda x: [x + jnp.asarray(array).sum() for array in arrays]


def peak_of(function) -> float:
    """Return the most memory that Python and NumPy allocate during a call, in units of 8 MiB."""
    gc.collect()
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / SIZE


def test_long_constants_are_listed_by_hash(exported):
    produced = exported(sums(ALIKE, *LONG, SHORT), X)
    spelled = produced.exported.mlir_module()
    text = produced.files["module.mlir"]
    assert text.decode() == with_hashes(spelled, produced.artifact.module)
    assert text.count(b"dense<SHA-256 ") == spelled.count('dense<"0x') == len(LONG)


def test_only_a_short_constant_is_listed_with_its_values(exported):
    text = exported(sums(RANDOM.random(200) > 0.5), X).files["module.mlir"].decode()
    assert re.search(r"dense<SHA-256 [0-9a-f]{12}> : tensor<200xi1>", text)
    produced = exported(sums(SHORT), X)
    assert produced.files["module.mlir"].decode() == produced.exported.mlir_module()


def test_a_listing_that_does_not_fit_its_module_gets_no_hashes(exported):
    text = "%0 = stablehlo.constant dense_resource<__elided__> : tensor<101xf32>\n"
    module = exported(sums(LONG[0]), X).artifact.module
    assert "SHA-256" in with_hashes(text, module)
    assert with_hashes(2 * text, module) == 2 * text


def test_different_long_constants_have_different_hashes(exported):
    one, other = (exported(sums(RANDOM.random(200, np.float32)), X).files["module.mlir"] for _ in range(2))
    assert one != other


def test_a_golden_is_little_larger_than_its_constants(exported):
    files = exported(sums(WEIGHTS), X).files
    assert sum(map(len, files.values())) < 1.01 * SIZE


def test_printing_the_listing_copies_no_constant(exported):
    produced = exported(sums(WEIGHTS), X)
    assert peak_of(lambda: api.module_text(produced.exported, produced.artifact.module)) < 1


def test_golden_files_are_written_and_verified_without_copies(tmp_path, exported):
    produced = exported(sums(WEIGHTS), X)
    store = GoldenStore(tmp_path)
    write = partial(store.write, produced.manifest, produced.files)
    assert (peak_of(write) < 1, peak_of(write) < 1) == (True, True), "new, then unchanged"
    assert write() is WriteStatus.UNCHANGED
    (golden,) = store.goldens()
    assert peak_of(golden.verify) < 1


def test_arrays_are_written_and_read_with_one_copy(tmp_path):
    leaves = [leaf_of(np.zeros(8 * SIZE, np.int8))]  # larger than the pieces that NumPy writes, of 16 MiB
    assert peak_of(lambda: to_npz(leaves)) < 8 + 3
    (tmp_path / "a.npz").write_bytes(to_npz(leaves))
    assert peak_of(lambda: from_npz(tmp_path / "a.npz")) < 8 + 1


def test_measuring_the_scale_of_large_arrays_takes_little_memory():
    assert peak_of(lambda: scale_of([leaf_of(WEIGHTS)])) < 4
    assert scale_of([leaf_of(np.float32([1, -3, np.inf]))]) == 3


def test_an_artifact_above_the_limit_is_an_error(exported, monkeypatch):
    monkeypatch.setattr(flatbuffers.Builder, "MAX_BUFFER_SIZE", 1 << 17)
    with pytest.raises(ExportError, match=r"less than 2 GB.*pass large arrays, such as weights, as arguments"):
        exported(sums(WEIGHTS), X)

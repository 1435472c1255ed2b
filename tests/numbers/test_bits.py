"""The digest of outputs: the same for the same bits, another one for any other."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from export_core.goldens.arrays import from_npz, key_leaf, leaf_of, to_npz
from export_core.numbers.elements import bits_of, bits_of_calls

HALVES = np.array([[1.5, -2.0, 0.0]], np.float32)


def digest(*arrays: object) -> bytes:
    return bits_of([leaf_of(array) for array in arrays])


@pytest.mark.parametrize(
    "other",
    [
        (HALVES[:, ::-1],),
        (HALVES.T,),
        (HALVES.astype(np.float64),),
        (HALVES.view(np.uint32),),
        (HALVES, HALVES[:0]),
        (),
        (np.copysign(HALVES, [[1, -1, -1]]).astype(np.float32),),
    ],
    ids=["order", "shape", "dtype", "kind", "one more", "none", "sign of a zero"],
)
def test_other_outputs_have_another_digest(other):
    assert digest(*other) != digest(HALVES)


def test_a_digest_does_not_depend_on_how_arrays_lie_in_memory():
    assert digest(np.asfortranarray(np.tile(HALVES, (3, 1)))) == digest(np.tile(HALVES, (3, 1)))


def test_arrays_of_one_size_are_told_from_a_longer_one():
    assert digest(HALVES[0, :1], HALVES[0, 1:]) != digest(HALVES[0, :2], HALVES[0, 2:])


def test_nans_of_other_bits_have_another_digest():
    quiet, other = (np.array(bits, np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FC00001))
    assert digest(quiet) != digest(other)


def test_every_kind_of_leaf_keeps_its_digest_in_a_file():
    leaves = [leaf_of(np.zeros((2, 0), ml_dtypes.bfloat16)), leaf_of(np.complex64(1j)), leaf_of(np.array([True]))]
    leaves.append(key_leaf("key<fry>", np.arange(2, dtype=np.uint32)))
    assert bits_of(from_npz(to_npz(leaves))) == bits_of(leaves)


def test_calls_without_outputs_have_no_digest():
    assert bits_of_calls([]) == ""
    assert len({bits_of_calls([b"a", b"b"]), bits_of_calls([b"b", b"a"]), bits_of_calls([b"a"])}) == 3

"""Arrays are read as NumPy reads them, and nothing of a header is evaluated."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays

from export_core.goldens.arrays import arrays_in

KINDS = arrays.boolean_dtypes() | arrays.integer_dtypes() | arrays.floating_dtypes() | arrays.complex_number_dtypes()


def saved(array: np.ndarray) -> io.BytesIO:
    file = io.BytesIO()
    np.savez(file, array)
    return file


@given(arrays.arrays(KINDS, arrays.array_shapes(min_dims=0, min_side=0, max_side=4)))
def test_what_numpy_writes_is_read(array):
    for written in (array, np.asarray(array, order="F")):
        ((name, found),) = arrays_in(saved(written))
        assert name == "arr_0"
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_an_array_may_be_written_to():
    ((_, found),) = arrays_in(saved(np.zeros(3)))
    found[0] = 1.0


def with_header(text: str, data: bytes = b"\0" * 8) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        header = text.encode()
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data)
    return file


def test_a_header_of_our_own_is_read():
    ((_, found),) = arrays_in(with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n"))
    assert found.tolist() == [0.0]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "header"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1+0,), }", "header"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", "expected 16 bytes of an array, found 8"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }", "found 8"),
    ],
)
def test_any_other_header_is_refused(header, said):
    with pytest.raises(ValueError, match=said):
        list(arrays_in(with_header(header)))


def test_what_is_no_array_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.pickle", b"")
    with pytest.raises(ValueError, match="expected the name of an array"):
        list(arrays_in(file))

"""Arrays of every dtype of JAX are stored and read back bit for bit, and nothing is ever unpickled."""

import io
import pickle
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from export_core.base.tolerances import FLOATS
from export_core.goldens import GoldenError, Leaf
from export_core.goldens.arrays import PLAIN, arrays_in, from_npz, key_leaf, leaf_of, nothing_to_compare, to_npz

NARROW = [
    *("bfloat16", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3"),
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("int1", "int2", "int4", "uint1", "uint2", "uint4"),
]
"""dtypes that JAX takes from ml_dtypes."""
DTYPES = [*sorted(PLAIN), *NARROW]
FLOAT0 = np.dtype([("float0", np.void, 0)])


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if name in NARROW else name)


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def stored_and_read(leaf: Leaf) -> Leaf:
    """Write an array as .npz, and return it as it is read."""
    (read,) = from_npz(to_npz([leaf]))
    return read


def test_these_tests_cover_every_dtype_of_jax():
    from jax._src import dtypes

    has_no_arrays = {"StringDType()", str(FLOAT0), "[('float0', 'V')]"}  # float0 has a test of its own
    assert set(map(str, dtypes._jax_dtype_set)) - has_no_arrays == set(DTYPES)


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_and_shape_is_read_back_bit_for_bit(name):
    dtype = dtype_of(name)
    for shape in ((), (0,), (1,), (5,), (2, 3), (2, 0, 3), (1, 1, 1)):
        array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
        read = stored_and_read(leaf_of(array))
        assert (read.dtype, read.shape, read.numpy().dtype) == (name, shape, dtype)
        assert bits(read.numpy()) == bits(array)
        assert str(read) == f"{name}[{','.join(map(str, shape))}]"


@settings(max_examples=200)
@given(st.sampled_from([name for name in DTYPES if name != "bool"]), st.binary(min_size=0, max_size=64))
@example("float32", np.array([0x7FC00001, 0xFFC0DEAD, 0x7F800001], np.uint32).tobytes())  # NaNs with payloads
@example("float64", np.array([-0.0, np.inf, np.nan, 5e-324]).tobytes())
@example("complex64", np.array([complex(-0.0, np.nan), complex(np.inf, -0.0)], np.complex64).tobytes())
@example("int64", np.array([2**63 - 1, -(2**63)]).tobytes())
def test_any_bits_even_nan_payloads_are_read_back_unchanged(name, raw):
    dtype = dtype_of(name)
    array = np.frombuffer(raw[: len(raw) // dtype.itemsize * dtype.itemsize], dtype)
    assert bits(stored_and_read(leaf_of(array)).numpy()) == bits(array)


@pytest.mark.parametrize("name", ["float32", "int64", "complex64", "float16", "bool"])
def test_big_endian_arrays_are_stored_with_equal_values(name):
    values = np.array([0, 1, 1, 0, 1]).astype(name)
    read = stored_and_read(leaf_of(values.astype(values.dtype.newbyteorder(">"))))
    assert (read.dtype, bits(read.numpy())) == (name, bits(values))


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int4", "bool"])
def test_values_of_non_contiguous_views_are_stored(name):
    whole = np.arange(24).reshape(4, 6).astype(dtype_of(name))
    views = [whole.T, whole[::2, ::-3], whole[:, 1], np.asfortranarray(whole), np.broadcast_to(whole[0], (3, 6))]
    for view in views:
        read = stored_and_read(leaf_of(view))
        assert read.shape == view.shape
        assert bits(read.numpy()) == bits(view)


@pytest.mark.parametrize("scalar", [np.float32(1.5), np.bool_(True), np.int8(-3), 2.5, True, 7, 1j])
def test_scalars_stay_zero_dimensional(scalar):
    read = stored_and_read(leaf_of(scalar))
    assert (read.shape, read.numpy()[()]) == ((), scalar)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0)], ids=str)
def test_float0_keeps_its_shape(shape):
    read = stored_and_read(leaf_of(np.zeros(shape, FLOAT0)))
    assert (read.dtype, read.shape) == ("float0", shape)


@pytest.mark.parametrize(("dtype", "words"), [("key<fry>", 2), ("key<rbg>", 4), ("key<urbg>", 4)])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)], ids=str)
def test_prng_keys_of_each_implementation_are_read_back_equal(dtype, words, shape):
    data = np.random.default_rng(1).integers(0, 2**32, (*shape, words), np.uint32)
    read = stored_and_read(key_leaf(dtype, data))
    assert (read.dtype, read.shape, str(read)) == (dtype, shape, f"{dtype}[{','.join(map(str, shape))}]")
    assert bits(read.data) == bits(data)


def test_a_key_of_an_unknown_implementation_is_refused():
    with pytest.raises(GoldenError, match=r"PRNG key dtype .* found key<mine>"):
        key_leaf("key<mine>", np.zeros(2, np.uint32))


@pytest.mark.parametrize(
    "array", ["text", np.array([object()]), np.array(["2026"], "M8[D]"), np.zeros(2, [("a", int)])]
)
def test_an_array_of_a_dtype_unknown_to_jax_is_refused(array):
    with pytest.raises(GoldenError, match="Expected an array of a dtype that JAX has"):
        leaf_of(array)


def test_the_same_arrays_make_the_same_bytes():
    array = np.arange(6.0).reshape(2, 3)
    leaves = [leaf_of(array), leaf_of(np.zeros((), ml_dtypes.bfloat16)), key_leaf("key<fry>", [1, 2])]
    assert to_npz(leaves) == to_npz([leaf_of(np.asfortranarray(array)), *leaves[1:]]), (
        "the order in memory changes nothing"
    )
    with zipfile.ZipFile(io.BytesIO(to_npz(leaves))) as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_zero_or_ten_thousand_arrays_are_read_back_in_order():
    assert from_npz(to_npz([])) == ()
    many = from_npz(to_npz(leaf_of(np.int32(number)) for number in range(10_003)))
    assert [int(leaf.data) for leaf in many] == list(range(10_003))


def saved(**members: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def test_objects_are_refused_and_never_unpickled(tmp_path):
    marker = tmp_path / "unpickled"

    class Evil:
        def __reduce__(self):
            return marker.touch, ()

    for data in (saved(**{"0000.float32": np.array([Evil()], object)}), pickle.dumps(Evil())):
        (tmp_path / "evil.npz").write_bytes(data)
        with pytest.raises(GoldenError, match=r"evil.npz: expected arrays in an .npz"):
            from_npz(tmp_path / "evil.npz")
    assert not marker.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04",
        b"\x93NUMPY",
        saved(x=np.zeros(1)),
        saved(**{"0000.float32": np.zeros(1)}),  # says float32, is float64
        saved(**{"0000.bfloat16": np.zeros(1, np.float16)}),
        saved(**{"0000.key_fry": np.zeros((), np.uint32)}),
        saved(**{"-1.float32": np.zeros(1, np.float32)}),
    ],
)
def test_data_that_is_not_an_npz_of_arrays_is_refused(data):
    with pytest.raises(GoldenError, match=r"expected arrays in an .npz"):
        from_npz(data)


@pytest.mark.parametrize("name", ["a.npy", "none.npz"])
def test_a_wrong_or_missing_npz_is_an_error_with_its_name(tmp_path, name):
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(GoldenError, match=f"{name}: expected arrays in an .npz"):
        from_npz(tmp_path / name)


def test_a_dtype_unknown_to_ml_dtypes_is_an_error():
    # bfloat16 takes two bytes, and finfo is a name of ml_dtypes that is no dtype.
    for name, stored in (
        ("float3_e9", np.uint8),
        ("bfloat16", np.uint8),
        ("finfo", np.uint64),
        ("__name__", np.uint64),
    ):
        (leaf,) = from_npz(saved(**{f"0000.{name}": np.zeros(1, stored)}))
        with pytest.raises(GoldenError, match=f"ml_dtypes .* found {name}"):
            leaf.numpy()


GOOD = to_npz([leaf_of(np.arange(4, dtype=np.float32)), leaf_of(np.zeros((2, 2), ml_dtypes.bfloat16))])


@settings(max_examples=300)
@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255), st.integers(0, len(GOOD)))
def test_a_damaged_npz_is_read_or_raises_golden_error(position, flip, cut):
    damaged = bytearray(GOOD)
    damaged[position] ^= flip
    for data in (bytes(damaged), GOOD[:cut]):
        try:
            leaves = from_npz(data)
        except GoldenError:
            continue
        assert all(isinstance(leaf, Leaf) for leaf in leaves)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_random_bytes_as_an_npz_raise_golden_error(data):
    with pytest.raises(GoldenError):
        from_npz(data)


@pytest.mark.parametrize("name", sorted(FLOATS))
def test_outputs_of_only_nan_have_nothing_to_compare(name):
    nan = np.full(3, np.nan).astype(dtype_of(name))
    has_nan = bool((nan != nan).all())  # float4 and float6 have none, and make a number of it
    assert bool(nothing_to_compare([leaf_of(nan)])) is has_nan
    assert has_nan or name.startswith(("float4", "float6"))
    assert nothing_to_compare([leaf_of(np.ones(3).astype(dtype_of(name)))]) == ""


def test_outputs_without_values_have_nothing_to_compare():
    empty, float0 = leaf_of(np.zeros((0, 2), np.int32)), leaf_of(np.zeros(3, FLOAT0))
    assert nothing_to_compare([]) == "the function has no outputs"
    assert nothing_to_compare([empty, float0]) == "its outputs have no values"
    assert nothing_to_compare([empty, leaf_of(np.array(np.nan))]) == "all values of its outputs are NaN"
    assert nothing_to_compare([leaf_of(np.array(np.nan)), leaf_of(np.zeros(1, np.int8))]) == ""
    assert nothing_to_compare([leaf_of(np.array([np.nan, 1.0]))]) == ""
    assert nothing_to_compare([key_leaf("key<fry>", np.zeros((2, 2), np.uint32))]) == ""


# --- headers: nothing of them is evaluated ----------------------------------------------------------------------------

KINDS = arrays.boolean_dtypes() | arrays.integer_dtypes() | arrays.floating_dtypes() | arrays.complex_number_dtypes()


@given(arrays.arrays(KINDS, arrays.array_shapes(min_dims=0, min_side=0, max_side=4)))
def test_an_array_saved_by_numpy_is_read(array):
    for written in (array, np.asarray(array, order="F")):
        ((name, found),) = arrays_in(io.BytesIO(saved(a=written)))
        assert name == "a"
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_an_array_that_was_read_is_writable():
    ((_, found),) = arrays_in(io.BytesIO(saved(a=np.zeros(3))))
    found[0] = 1.0


def member(name: str, descr: str, shape: str) -> io.BytesIO:
    """Return an .npz with eight bytes after a handmade header."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n".encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))
    return file


def test_an_npz_with_a_handmade_header_is_read():
    ((_, found),) = arrays_in(member("a.npy", "<f8", "1,"))
    assert found.tolist() == [0.0]


@pytest.mark.parametrize(
    ("name", "descr", "shape", "problem"),
    [
        ("a.npy", "|O", "1,", "header"),
        ("a.npy", "<f8", "1+0,", "header"),
        ("a.npy", "<f8", "2,", "expected 16 bytes of an array, found 8"),
        ("a.npy", "<f8", "99999999999999,", "found 8"),
        ("a.pickle", "<f8", "1,", "expected the name of an array"),
    ],
)
def test_an_invalid_member_of_an_npz_is_refused(name, descr, shape, problem):
    with pytest.raises(ValueError, match=problem):
        list(arrays_in(member(name, descr, shape)))

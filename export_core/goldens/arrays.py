"""Arrays of every JAX dtype in an .npz, stored bit for bit, without pickle, as the same bytes on every machine.

Also the file noise.npz.

A dtype that NumPy itself lacks is stored as the unsigned integers of the same bytes; the member's name has the dtype:
``0003.bfloat16``. PRNG keys are stored as their key data (`jax.random.key_data`, uint32), float0 as an array of False
in its shape.
"""

import io
import math
import operator
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import IO, Any

import numpy as np

from export_core.base.errors import ExportCompatError
from export_core.base.text import plural
from export_core.base.tolerances import FLOATS
from export_core.base.untrusted import open_regular

Array = np.ndarray[Any, np.dtype[Any]]

PLAIN = frozenset(
    ["bool", "complex64", "complex128", "float16", "float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
"""The dtypes that NumPy has itself."""
KEYS = {"key<fry>": "key_fry", "key<rbg>": "key_rbg", "key<urbg>": "key_urbg"}
"""PRNG key dtypes as JAX prints them, and their names in an .npz: `<` is not allowed in file names everywhere."""


class GoldenError(ExportCompatError):
    """An error for a golden that is missing, damaged, from a newer version of this tool, or cannot be written."""


def narrow_dtypes() -> Any:
    """Return the package ml_dtypes, imported when needed: goldens of plain dtypes are made and read without it."""
    import ml_dtypes

    return ml_dtypes


def numpy_dtype(name: str) -> np.dtype[Any] | None:
    """Return the dtype of NumPy or ml_dtypes, which comes with jax, that has this name in JAX.

    None if neither has such a dtype.
    """
    if name in PLAIN:
        return np.dtype(name)
    scalar_type = getattr(narrow_dtypes(), name, None)
    return np.dtype(scalar_type) if isinstance(scalar_type, type) and issubclass(scalar_type, np.generic) else None


@dataclass(frozen=True)
class Leaf:
    """An array in the form in which it is stored."""

    dtype: str  # JAX's name of its dtype.
    data: Array
    """NumPy data of a plain native dtype with the same bits, in the array's shape; for PRNG keys with one axis more,
    that of the key data."""

    def __post_init__(self) -> None:
        """Bring the data into native byte order, since a file of another program may have the opposite order."""
        if not self.data.dtype.isnative:
            object.__setattr__(self, "data", self.data.astype(self.data.dtype.newbyteorder("=")))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as JAX sees it, without the trailing axis of key data."""
        shape = tuple(int(size) for size in self.data.shape)
        return shape[:-1] if self.dtype in KEYS else shape

    def numpy(self) -> Array:
        """Return the values in the dtype that they have in JAX, without a copy; PRNG keys as uint32 and float0 as bool.

        Raises `GoldenError` for a dtype that neither NumPy nor ml_dtypes has.
        """
        if self.dtype in PLAIN or self.dtype in KEYS or self.dtype == "float0":
            return self.data
        meant = numpy_dtype(self.dtype)
        if meant is None or meant.itemsize != self.data.itemsize:
            raise GoldenError(
                f"Expected a dtype of {plural(self.data.itemsize, 'byte')} that ml_dtypes "
                f"{narrow_dtypes().__version__} has, found {self.dtype}. Upgrade ml_dtypes, or restore the golden."
            )
        return self.data.view(meant)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def leaf_of(array: Any) -> Leaf:
    """Return the storage form of a NumPy array (ml_dtypes and float0 included), in C order and native byte order.

    PRNG keys are stored by `key_leaf`. Raises `GoldenError` for a dtype that JAX does not have, such as text or
    objects.
    """
    values = np.asarray(array)
    if values.dtype.names == ("float0",):
        return Leaf("float0", np.zeros(values.shape, np.bool_))
    name = values.dtype.name
    # asarray keeps zero-dimensional arrays zero-dimensional; ascontiguousarray would not.
    values = np.asarray(values, order="C")
    if name in PLAIN:
        return Leaf(name, values.astype(values.dtype.newbyteorder("="), copy=False))
    registered = 2  # what isbuiltin is for a dtype that a package such as ml_dtypes added to NumPy
    if values.dtype.isbuiltin != registered:
        raise GoldenError(f"Expected an array of a dtype that JAX has, found dtype {values.dtype}.")
    return Leaf(name, values.view(np.dtype(f"u{values.dtype.itemsize}")))


def key_leaf(dtype: str, key_data: Any) -> Leaf:
    """Return the storage form of PRNG keys: `dtype` as JAX prints it (``key<fry>``), `key_data` uint32[..., n].

    Raises `GoldenError` for a key dtype that jax.export cannot serialize, such as one that a user has defined.
    """
    if dtype not in KEYS:
        raise GoldenError(
            f"Expected a PRNG key dtype that jax.export can serialize ({', '.join(KEYS)}), found {dtype}."
        )
    return Leaf(dtype, np.asarray(key_data, np.uint32))


@np.errstate(all="ignore")  # NaN, infinities are counted, not warned of
def nothing_to_compare(outputs: Sequence[Leaf]) -> str:
    """Return why outputs show nothing about a function, as part of a sentence; "" if an element shows something.

    NaN is equal to NaN in a comparison, but it is also what wrong arguments or wrong code give.
    """
    if not outputs:
        return "the function has no outputs"
    with_values = [leaf for leaf in outputs if leaf.data.size and leaf.dtype != "float0"]
    if not with_values:
        return "its outputs have no values"
    # Not isnan, which some dtypes of ml_dtypes lack.
    is_nan = all(leaf.dtype in FLOATS and bool((leaf.numpy() != leaf.numpy()).all()) for leaf in with_values)
    return "all values of its outputs are NaN" if is_nan else ""


@np.errstate(all="ignore")  # NaN, infinities are counted, not warned of
def count_nan(leaves: Iterable[Leaf]) -> int:
    """Return how many elements of all leaves are NaN."""
    return sum(int((leaf.numpy() != leaf.numpy()).sum()) for leaf in leaves if leaf.dtype in FLOATS)


@np.errstate(all="ignore")  # NaN, infinities are looked for, not warned of
def is_finite(leaves: Iterable[Leaf]) -> bool:
    """Return whether no element of any leaf is NaN or infinite."""
    floats = (leaf.numpy() for leaf in leaves if leaf.dtype in FLOATS)
    # Not all dtypes of ml_dtypes have isfinite.
    return all(np.isfinite(x if x.dtype.kind in "fc" else x.astype(np.float32)).all() for x in floats)


def to_npz(leaves: Iterable[Leaf]) -> bytes:
    """Return leaves as reproducible .npz bytes: without time stamps or compression, members in order."""
    buffer = io.BytesIO()
    # Stored and not deflated: what zlib makes of the same bytes differs between its versions.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for index, leaf in enumerate(leaves):
            # A ZipInfo made by hand has the date 1980-01-01, not the time of writing.
            member = zipfile.ZipInfo(f"{index:04d}.{KEYS.get(leaf.dtype, leaf.dtype)}.npy")
            # Unix (3) on every system, or the bytes would differ; its file modes are in the upper half.
            member.create_system = 3
            member.external_attr = 0o644 << 16
            member.file_size = leaf.data.nbytes  # or zipfile refuses more than 2 GiB
            with archive.open(member, "w") as file:
                np.lib.format.write_array(file, leaf.data, allow_pickle=False)
    return buffer.getvalue()


def from_npz(source: Path | bytes, where: str = "<bytes>") -> tuple[Leaf, ...]:
    """Return the leaves of an .npz that `to_npz` or the worker wrote, in order. Never unpickles.

    Raises `GoldenError` for any other content. The message names the file, or `where` if bytes are given.
    """
    try:
        with open_regular(source) if isinstance(source, Path) else io.BytesIO(source) as file:
            # By number: as text, the 10000th would come before the 1001st. Leaves themselves cannot be ordered.
            numbered = sorted(starmap(_member, arrays_in(file)), key=operator.itemgetter(0))
            return tuple(leaf for _, leaf in numbered)
    except Exception as error:  # zipfile, zlib and numpy raise about ten types on damaged bytes
        where = str(source) if isinstance(source, Path) else where
        raise GoldenError(f"{where}: expected arrays in an .npz, found something else: {error}") from error


def _member(name: str, data: Array) -> tuple[int, Leaf]:
    """Return the number and the leaf of a member of an .npz. Raises `ValueError` if name and dtype do not match."""
    index, _, in_file = name.partition(".")
    dtype = next((key for key, key_in_file in KEYS.items() if key_in_file == in_file), in_file)
    stored = data.dtype.name
    if dtype in PLAIN:
        fits = stored == dtype
    elif dtype in KEYS:
        fits = stored == "uint32" and data.ndim > 0
    else:
        fits = stored == ("bool" if dtype == "float0" else f"uint{8 * data.itemsize}")
    if not index.isdecimal() or not fits:
        raise ValueError(
            f"member {name!r}: expected a name NUMBER.DTYPE that fits its array, such as 0000.float32, found an array "
            f"of dtype {stored}"
        )
    return int(index), Leaf(dtype, data)


Noise = tuple["Array | None", ...]
"""The noise of each output, as float64 in the output's shape; None for an output whose elements must be equal."""

_STEPS = {"int16": 8, "int8": 1}


def noise_to_npz(files: Iterable[tuple[Sequence[Leaf], Noise]]) -> bytes:
    """Return the content of noise.npz: the noise of every output, rounded coarsely.

    Noise is how far each element moved when its writer ran the artifact again. There is an array for each output, in
    the order of the manifest: the logarithm of the noise in steps of an eighth of an octave, rounded up (int16).
    Outputs with one byte for each element have steps of an octave (int8), so that noise takes no more space than the
    outputs do. The array is empty if no element of the output has noise. Integers and booleans have noise if any
    run changed them.
    """
    return to_npz(
        _encoded(leaf, noise) for outputs, noises in files for leaf, noise in zip(outputs, noises, strict=True)
    )


def noise_from_npz(data: bytes, where: str, outputs: Sequence[Sequence[Leaf]]) -> list[Noise]:
    """Return the noise of each file of outputs, from the bytes of noise.npz. `where` names them in messages.

    Raises `GoldenError` for bytes that do not belong to these outputs.
    """
    stored, expected = from_npz(data, where), sum(map(len, outputs))
    if len(stored) != expected:
        raise GoldenError(f"{where}: expected an array for each of {expected} outputs, found {len(stored)}.")
    codes = iter(stored)
    return [tuple(_decoded(next(codes), leaf, where) for leaf in call) for call in outputs]


def _encoded(leaf: Leaf, noise: Array | None) -> Leaf:
    dtype = "int8" if leaf.data.itemsize == 1 else "int16"
    if noise is None or not noise.any():
        return Leaf(dtype, np.zeros(0, dtype))
    limits = np.iinfo(dtype)
    with np.errstate(divide="ignore"):
        steps = np.ceil(np.log2(noise) * _STEPS[dtype])
    # The smallest code is for zero: log2 of it is minus infinity.
    return Leaf(dtype, np.where(noise > 0, np.clip(steps, limits.min + 1, limits.max), limits.min).astype(dtype))


def _decoded(code: Leaf, leaf: Leaf, where: str) -> Array | None:
    if code.dtype not in _STEPS or (code.data.size and code.shape != leaf.shape):
        raise GoldenError(f"{where}: expected int16[{','.join(map(str, leaf.shape))}] for {leaf}, found {code}.")
    if not code.data.size:
        return np.zeros(leaf.shape) if leaf.dtype in FLOATS else None
    noise = code.data.astype(np.float64)
    noise /= _STEPS[code.dtype]  # in place: of a large output these are the largest arrays
    with np.errstate(over="ignore"):
        np.exp2(noise, out=noise)
    noise[code.data == np.iinfo(code.dtype).min] = 0.0
    return noise


_SUFFIX = ".npy"
_PIECE = 1 << 20  # Bytes that are read at once.
_LENGTHS = {(1, 0): "<H", (2, 0): "<I"}
"""The form in which an array's header stores its length, by version of the .npy format. Source: numpy.lib.format."""
_HEADER = re.compile(rb"\{'descr': '([<>|=][biufc]\d+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*")


def arrays_in(file: IO[bytes]) -> Iterator[tuple[str, Array]]:
    """Yield name and array of each member of an .npz, without evaluating a header.

    NumPy reads a header with `ast.literal_eval`. Two threads must not do that at once before CPython 3.11.8 (gh-106905:
    SystemError), and pytest parses source files while our thread compares goldens. It is also slower.

    Raises:
        ValueError: A member is not an array of a plain dtype; damaged bytes raise what zipfile raises.
    """
    with zipfile.ZipFile(file) as archive:
        length = file.seek(0, io.SEEK_END)
        for member in archive.infolist():
            # Nothing that we write is compressed: a few bytes of a file must not become gigabytes.
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > length:
                raise ValueError(f"member {member.filename!r}: expected an array that is not compressed")
            if not member.filename.endswith(_SUFFIX):
                raise ValueError(f"member {member.filename!r}: expected the name of an array, ending in {_SUFFIX}")
            with archive.open(member) as content:
                yield member.filename.removesuffix(_SUFFIX), _array(content, member.file_size)


def _array(file: IO[bytes], size: int) -> Array:
    version = np.lib.format.read_magic(file)
    if version not in _LENGTHS:
        raise ValueError(f"expected an array of format 1.0 or 2.0, found {'.'.join(map(str, version))}")
    (length,) = struct.unpack(_LENGTHS[version], file.read(struct.calcsize(_LENGTHS[version])))
    header = file.read(length)
    if not (match := _HEADER.fullmatch(header)):
        raise ValueError(f"expected the header of an array of numbers, found {header[:200]!r}")
    shape = tuple(int(size) for size in match[3].split(b",") if size.strip())
    dtype, in_fortran_order = np.dtype(match[1].decode()), match[2] == b"True"
    # Before memory is taken for it: a header can claim anything.
    if math.prod(shape) * dtype.itemsize != (rest := size - file.tell()):
        raise ValueError(f"expected {math.prod(shape) * dtype.itemsize} bytes of an array, found {rest}")
    data = memoryview(bytearray(rest))
    for start in range(0, rest, _PIECE):  # not readinto, by which a member of an archive takes its memory twice
        piece = file.read(min(_PIECE, rest - start))
        data[start : start + len(piece)] = piece
    values = np.frombuffer(data, dtype)
    return values.reshape(shape[::-1]).T if in_fortran_order else values.reshape(shape)

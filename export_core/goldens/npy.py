"""The arrays of an .npz, read without evaluating a header.

NumPy reads a header with `ast.literal_eval`. Two threads must not do that at once before CPython 3.11.8 (gh-106905:
SystemError), and pytest parses source files while our thread compares goldens. It is also slower.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

_SUFFIX = ".npy"
_PIECE = 1 << 20
"""Bytes that are read at once."""
_LENGTHS = {(1, 0): "<H", (2, 0): "<I"}
"""How the length of a header is stored, by version of the format. Source: numpy.lib.format."""
_HEADER = re.compile(rb"\{'descr': '([<>|=][biufc]\d+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*")


def arrays_in(file: IO[bytes]) -> Iterator[tuple[str, np.ndarray[Any, np.dtype[Any]]]]:
    """Name and array of each member of an .npz. Raises `ValueError`, and what zipfile raises on damaged bytes."""
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


def _array(file: IO[bytes], size: int) -> np.ndarray[Any, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version not in _LENGTHS:
        raise ValueError(f"expected an array of format 1.0 or 2.0, found {'.'.join(map(str, version))}")
    (length,) = struct.unpack(_LENGTHS[version], file.read(struct.calcsize(_LENGTHS[version])))
    header = file.read(length)
    if not (found := _HEADER.fullmatch(header)):
        raise ValueError(f"expected the header of an array of numbers, found {header[:200]!r}")
    shape = tuple(int(size) for size in found[3].split(b",") if size.strip())
    dtype, in_fortran_order = np.dtype(found[1].decode()), found[2] == b"True"
    # Before memory is taken for it: a header can claim anything.
    if math.prod(shape) * dtype.itemsize != (rest := size - file.tell()):
        raise ValueError(f"expected {math.prod(shape) * dtype.itemsize} bytes of an array, found {rest}")
    data = memoryview(bytearray(rest))
    for start in range(0, rest, _PIECE):  # not readinto, by which a member of an archive takes its memory twice
        piece = file.read(min(_PIECE, rest - start))
        data[start : start + len(piece)] = piece
    values = np.frombuffer(data, dtype)
    return values.reshape(shape[::-1]).T if in_fortran_order else values.reshape(shape)

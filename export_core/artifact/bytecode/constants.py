"""The long constants of a module, and its text with a hash in the place of each.

The hash is that of the text that MLIR would print, so that it is the same for a listing that spells the constant. (Of
booleans, what it printed before 0.11: a bit for each.)
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from mmap import mmap

    from export_core.artifact.bytecode.contents import Constant
    from export_core.artifact.bytecode.module import Module

LONG = 100
"""Elements that a constant may have and not be long. MLIR prints the bytes of a longer one, as hexadecimal digits."""

_PIECE = 1 << 20  # bytes: the digits of a whole constant would take twice its memory
_DIGITS = re.compile(rb'dense<"0x[0-9A-F]*">')
_LEFT_OUT = re.compile(r"(stablehlo\.constant .*?)dense_resource<__elided__>")
_SHAPE = re.compile(r"tensor<((?:\d+x)*)(\w+)")


def hashed(text: Iterable[bytes | memoryview]) -> str:
    """What stands for the text of a constant, which is given in pieces: its hash."""
    digest = hashlib.sha256()
    for piece in text:
        digest.update(piece)
    return f"dense<SHA-256 {digest.hexdigest()[:12]}>"


def long_constants(module: Module) -> list[Constant]:
    """The constants with more than `LONG` elements that are not all equal, in order, each as often as it is used."""
    return [constant for constant in module.constants_in_order() if _is_long(constant)]


def with_hashes(text: str, module: Module) -> str:
    """A module's text with the hashes of its long constants.

    MLIR may have spelled them, or left them out (`large_elements_limit`). Other attributes that it left out stay so,
    and all do where the text has other constants than the module.
    """
    constants = long_constants(module)
    if len(_LEFT_OUT.findall(text)) == len(constants):
        hashes = (hashed(_digits(module, constant)) for constant in constants)
        text = _LEFT_OUT.sub(lambda match: match[1] + next(hashes), text)
    return without_digits(text.encode()).decode()


def without_digits(text: bytes | mmap) -> bytes:
    """A module's text, which may spell its long constants, with their hashes."""
    parts, end = [], 0
    with memoryview(text) as view:
        for match in _DIGITS.finditer(text):
            pieces = (view[start : min(start + _PIECE, match.end())] for start in range(*match.span(), _PIECE))
            parts += [text[end : match.start()], hashed(pieces).encode()]
            end = match.end()
    return b"".join([*parts, text[end:]])


def _is_long(constant: Constant) -> bool:
    shape, dtype = _shape(constant.type)
    # Where all elements are equal, the file has one of them: a bit in a byte, or up to 16 bytes.
    return math.prod(shape) > LONG and constant.nbytes > (1 if dtype == "i1" else 16)


def _shape(of: str) -> tuple[list[int], str]:
    match = _SHAPE.match(of)
    return ([int(size) for size in match[1].split("x")[:-1]], match[2]) if match else ([], "")


def _digits(module: Module, constant: Constant) -> Iterator[bytes]:
    """The text of a constant, in pieces."""
    yield b'dense<"0x'
    data = memoryview(module.data)
    for start in range(constant.at, constant.at + constant.nbytes, _PIECE):
        yield data[start : min(start + _PIECE, constant.at + constant.nbytes)].hex().upper().encode()
    yield b'">'

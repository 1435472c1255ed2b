"""Hashes in place of long constants in the text of a module.

Each is the hash of the text that MLIR would print, so that it is the same for a listing that spells the constant. (Of
booleans, what it printed before 0.11: a bit for each.)
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator

from export_core.artifact.bytecode.module import Constant, Module

LONG = 100
"""The most elements of a constant that is not long.

MLIR prints the bytes of a longer one, as hexadecimal digits.
"""

_PIECE = 1 << 20  # bytes: the digits of a whole constant would take twice its memory
_DIGITS = re.compile(r'dense<"0x[0-9A-F]*">')
_LEFT_OUT = re.compile(r"(stablehlo\.constant .*?)dense_resource<__elided__>")
_SHAPE = re.compile(r"tensor<((?:\d+x)*)(\w+)")


def long_constants(module: Module) -> list[Constant]:
    """Return the constants with more than `LONG` elements that are not all equal, in order, repeated as used."""
    constants = []
    for constant in module.constants_in_order():
        match = _SHAPE.match(constant.type)
        # Where all elements are equal, the file has one of them: a bit in a byte, or up to 16 bytes.
        one = 1 if match and match[2] == "i1" else 16
        if match and math.prod(map(int, match[1].split("x")[:-1])) > LONG and constant.nbytes > one:
            constants.append(constant)
    return constants


def with_hashes(text: str, module: Module) -> str:
    """Return a module's text with the hashes of its long constants.

    MLIR may have spelled them, or left them out (`large_elements_limit`). Other attributes that it left out stay so,
    and all do where the text has other constants than the module.
    """
    constants = long_constants(module)
    if len(_LEFT_OUT.findall(text)) == len(constants):
        hashes = (_hash_of(_digits(module, constant)) for constant in constants)
        text = _LEFT_OUT.sub(lambda match: match[1] + next(hashes), text)
    return _DIGITS.sub(lambda match: _hash_of([match[0].encode()]), text)


def _hash_of(text: Iterable[bytes]) -> str:
    """Return the hash of the text of a constant, which is given in pieces, as it stands in a module's text."""
    digest = hashlib.sha256()
    for piece in text:
        digest.update(piece)
    return f"dense<SHA-256 {digest.hexdigest()[:12]}>"


def _digits(module: Module, constant: Constant) -> Iterator[bytes]:
    """Yield the text of a constant, in pieces."""
    yield b'dense<"0x'
    data = memoryview(module.data)
    for start in range(constant.at, constant.at + constant.nbytes, _PIECE):
        yield data[start : min(start + _PIECE, constant.at + constant.nbytes)].hex().upper().encode()
    yield b'">'

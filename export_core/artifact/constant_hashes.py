"""Hashes in place of long constants in the text of a module.

A hash is that of the text that MLIR would print for the constant, so that it is the same whether or not a text spells
the constant. (For booleans, the text that MLIR printed before jaxlib 0.11: a bit for each.)
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator

from export_core.artifact.bytecode.module import Constant, Module

LONG = 100
"""The number of elements above which a constant is long: MLIR then prints its bytes as hexadecimal digits."""

_PIECE = 1 << 20  # bytes: the digits of a whole constant would take twice its memory
_DIGITS = re.compile(r'dense<"0x[0-9A-F]*">')
_LEFT_OUT = re.compile(r"(stablehlo\.constant .*?)dense_resource<__elided__>")
_SHAPE = re.compile(r"tensor<((?:\d+x)*)(\w+)")


def long_constants(module: Module) -> list[Constant]:
    """Return the constants with more than `LONG` elements that are not all equal, one for each constant operation.

    The constants are in the order of their operations in the module. A constant that several operations share is
    returned several times.
    """
    constants = []
    for constant in module.constants_in_order():
        match = _SHAPE.match(constant.type)
        # Where all elements are equal, the file has one of them: a bit in a byte, or up to 16 bytes.
        one = 1 if match and match[2] == "i1" else 16
        if match and math.prod(map(int, match[1].split("x")[:-1])) > LONG and constant.nbytes > one:
            constants.append(constant)
    return constants


def with_hashes(text: str, module: Module) -> str:
    """Return the text that MLIR printed for a module, with hashes in place of the long constants.

    MLIR may have printed the constants, or left them out (`large_elements_limit`). Constants that MLIR left out get
    hashes only if the text leaves out as many constants as the module has long ones.
    """
    constants = long_constants(module)
    if len(_LEFT_OUT.findall(text)) == len(constants):
        hashes = (_hash_of(_digits(module, constant)) for constant in constants)
        text = _LEFT_OUT.sub(lambda match: match[1] + next(hashes), text)
    return _DIGITS.sub(lambda match: _hash_of([match[0].encode()]), text)


def _hash_of(text: Iterable[bytes]) -> str:
    """Return `dense<SHA-256 …>`, the replacement for a constant; `text` is the constant's text in pieces."""
    digest = hashlib.sha256()
    for piece in text:
        digest.update(piece)
    return f"dense<SHA-256 {digest.hexdigest()[:12]}>"


def _digits(module: Module, constant: Constant) -> Iterator[bytes]:
    """Yield the text that MLIR prints for a constant, in pieces."""
    yield b'dense<"0x'
    data = memoryview(module.data)
    for start in range(constant.at, constant.at + constant.nbytes, _PIECE):
        yield data[start : min(start + _PIECE, constant.at + constant.nbytes)].hex().upper().encode()
    yield b'">'

"""A digest of outputs that is the same for the same bits, NaN payloads and signs of zeros included."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from export_core.goldens import Leaf

DIGEST_BYTES = 8
"""Digests are only compared among the readers of one golden: 64 bits are enough to tell some hundred apart."""


def bits_of(leaves: Sequence[Leaf]) -> bytes:
    """The digest of flat outputs: dtype, shape and bytes of each, in order."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for leaf in leaves:
        # The text ends the leaf before it: bytes of one array are never taken for those of the next.
        digest.update(f"{leaf};".encode())
        digest.update(np.ascontiguousarray(leaf.data).data)
    return digest.digest()


def bits_of_calls(calls: Sequence[bytes]) -> str:
    """The digest of several calls by the digests of each, as hexadecimal digits; empty where there is no call."""
    return hashlib.blake2b(b"".join(calls), digest_size=DIGEST_BYTES).hexdigest() if calls else ""

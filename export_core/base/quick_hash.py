"""SHA-256 of little data without OpenSSL, which takes 4 ms to load, longer than reading an artifact."""

try:  # As `random` of CPython does; one module since 3.12, another until 3.11.
    from _sha2 import sha256 as _sha256_of_little  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256 as _sha256_of_little  # type: ignore[import-not-found,unused-ignore,no-redef]
    except ImportError:
        from hashlib import sha256 as _sha256_of_little

_LITTLE = 1 << 19  # The bytes up to which CPython's own SHA-256, a sixth as fast as OpenSSL's, takes less than 4 ms.


def sha256_of(data: bytes | bytearray | memoryview) -> str:
    """Return the SHA-256 of data as 64 hexadecimal digits. OpenSSL is loaded only for more than `_LITTLE` bytes."""
    if len(data) <= _LITTLE:
        return str(_sha256_of_little(data).hexdigest())
    from hashlib import sha256

    return sha256(data).hexdigest()

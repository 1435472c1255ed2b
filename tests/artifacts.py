"""Stored artifacts for tests, changed where a test needs an artifact that no writer here makes."""

import re
from pathlib import Path

from export_core.artifact import DisabledCheck, read
from export_core.artifact.envelope.encode import encode

DATA = Path(__file__).parent / "artifact" / "data"


def changed(folder: Path, name: str, **fields: object) -> Path:
    """Write a stored artifact with other fields in its envelope, and return its path."""
    envelope = read(DATA / f"{name}.jaxexport").envelope
    assert envelope is not None
    path = folder / "changed.jaxexport"
    path.write_bytes(encode(envelope._replace(**fields)))
    return path


def unlisted(folder: Path, switched_off: bool = False) -> Path:
    """Write an artifact by 0.12.0.1 that calls `my_kernel_of_ours`, which no release guarantees.

    If `switched_off`, the export has disabled jax's check of this custom call.
    """
    checks = (DisabledCheck("custom_call", "my_kernel_of_ours"),) if switched_off else ()
    path = changed(folder, "0.12.0.1/cholesky", disabled_checks=checks)
    data = path.read_bytes().replace(b"lapack_spotrf_ffi", b"my_kernel_of_ours")
    path.write_bytes(data)
    return path


def of_unknown_writer(folder: Path) -> Path:
    """Write an artifact by 0.12.0.1 whose StableHLO version is damaged, so that no release fits."""
    path = folder / "unknown.jaxexport"
    data = (DATA / "0.12.0.1" / "cholesky.jaxexport").read_bytes()
    path.write_bytes(re.sub(rb"StableHLO_v1\.\d\d\.0", b"StableHLO_v1.x8.0", data))
    return path


def bare(folder: Path, name: str = "0.12.0.1/platforms") -> Path:
    """Write the module of a stored artifact without its envelope."""
    path = folder / "module.mlirbc"
    path.write_bytes(read(DATA / f"{name}.jaxexport").module.serialized())
    return path


def raw(folder: Path) -> Path:
    """Write a lowered function as MLIR itself does: as StableHLO, and not as VHLO."""
    import jax

    path = folder / "raw.mlirbc"
    with path.open("wb") as file:
        jax.jit(lambda x: x + 1).lower(1.0).compiler_ir().operation.write_bytecode(file)
    return path


def with_another_dialect(folder: Path) -> Path:
    """Write an artifact by 0.12.0.1 with operations of MHLO, which no audit reads."""
    path = folder / "mhlo.jaxexport"
    path.write_bytes((DATA / "0.12.0.1" / "cholesky.jaxexport").read_bytes().replace(b"vhlo\0", b"mhlo\0"))
    return path


def with_an_unknown_operation(folder: Path) -> Path:
    """Write an artifact by 0.12.0.1 that has `vhlo.tanh_v9`."""
    path = folder / "tanh.jaxexport"
    path.write_bytes((DATA / "0.12.0.1" / "platforms.jaxexport").read_bytes().replace(b"tanh_v2\0", b"tanh_v9\0"))
    return path

"""The kinds of custom calls: LAPACK, a Triton or Pallas kernel, a callback; and the version of a payload, if any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from export_core.artifact.bytecode.sections import MAGIC, Tables
from export_core.artifact.bytecode.values import Values
from export_core.artifact.errors import ArtifactError

if TYPE_CHECKING:
    from export_core.artifact.bytecode.parts import CustomCall

MAX_PAYLOAD = 64 << 20  # bytes of a payload that is decoded to find its version

_STARTS = (
    ("lapack_", "LAPACK routine"),
    ("blas_", "BLAS routine"),
    ("cusolver_", "cuSOLVER routine"),
    ("cusparse_", "cuSPARSE routine"),
    ("cublas_", "cuBLAS routine"),
    ("hipsolver_", "hipSOLVER routine"),
    ("hipblas_", "hipBLAS routine"),
    ("cu_", "CUDA kernel of jaxlib"),
    ("hip_", "ROCm kernel of jaxlib"),
    ("__cudnn$", "cuDNN call"),
    ("__cublas$", "cuBLAS call"),
    ("__gpu$xla.gpu.triton", "Triton kernel"),
    ("triton_kernel_call", "Triton kernel"),
    ("tpu_custom_call", "Mosaic TPU kernel (Pallas)"),
    ("mosaic_gpu", "Mosaic GPU kernel (Pallas)"),
    ("tf.call_tf_function", "TensorFlow function"),
    ("stablehlo.", "StableHLO extension"),
    ("shape_assertion", "check of a symbolic shape"),
    ("Sharding", "sharding annotation"),
    ("xla.sdy.", "sharding annotation"),
    ("mhlo.", "CHLO operation"),
    ("SPMD", "sharding annotation"),
    ("AllocateBuffer", "uninitialized buffer"),
    ("annotate_device_placement", "memory placement annotation"),
)
_WORDS = (("callback", "Python callback"), ("ragged_all_to_all", "collective"), ("nccl", "collective"))


class Payload(NamedTuple):
    """The kind of a call as text, and the version that its payload gives for its own format, e.g. Mosaic's."""

    kind: str
    version: int | None = None

    def __str__(self) -> str:
        return self.kind if self.version is None else f"{self.kind}, payload version {self.version}"


def describe(call: CustomCall) -> Payload:
    """Say what a custom call is. Nothing is run, and a callback's pointer is never followed."""
    kind = next((words for start, words in _STARTS if call.target.startswith(start)), None)
    if kind is None:
        kind = next((words for word, words in _WORDS if word in call.target), "custom call")
    version = _mosaic_version(call.backend_config) if kind.startswith("Mosaic") else None
    return Payload(kind, version)


def _mosaic_version(config: Any) -> int | None:
    """Return the version in the attributes of the MLIR module that a Mosaic call carries, None where none is found."""
    # Mosaic for GPUs is a typed FFI call with the module among its arguments; Mosaic for TPUs has JSON with base64.
    body: Any = None
    if isinstance(config, dict):
        body = config.get("module", config.get("body"))
    elif isinstance(config, (str, bytes)) and config[:1] in ("{", b"{") and len(config) <= MAX_PAYLOAD:
        import json

        try:
            body = json.loads(config)["custom_call_config"]["body"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
    if isinstance(body, str):
        body = _bytes_of(body)
    if not isinstance(body, bytes) or body[:4] != MAGIC or len(body) > MAX_PAYLOAD:
        return None
    try:
        return _version_attribute(Tables(body, 0, len(body), "the payload"))
    except ArtifactError:  # the payload is not checked here: without a version it is still the same kind of call
        return None


def _bytes_of(text: str) -> bytes | None:
    if text.startswith("ML"):
        return text.encode("utf-8", "surrogateescape")
    import base64
    import binascii

    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _version_attribute(tables: Tables) -> int | None:
    """Return the integer of the first attribute named …mosaic….version in a dictionary of attributes."""
    values = Values(tables)
    for index in range(min(len(tables.attributes), 4096)):
        dialect, code, _ = values.attribute_entry(index)
        if (dialect, code) == ("builtin", 1):
            for name, value in values.attribute(index).items():
                if "mosaic" in name and name.endswith(".version") and isinstance(value, int):
                    return value
    return None

"""The program that prints, as JSON, what the installed jax can put into an artifact.

It runs in a new process, since tests register more primitives in theirs.
"""

from __future__ import annotations

import json

import jax
import jax.export
import jax.lax.linalg
import jax.nn
from jax._src import effects
from jax._src.export import _export, serialization
from jax._src.interpreters import mlir


def primitives() -> set[str]:
    """Return the primitives with a lowering rule for all platforms, or for a platform that one can export for."""
    rules = [mlir._lowerings, *(mlir._platform_specific_lowerings[name] for name in ("cpu", "cuda", "rocm", "tpu"))]
    return {primitive.name for lowerings in rules for primitive in lowerings}


def dtypes() -> set[str]:
    return {"float0" if dtype == jax.dtypes.float0 else str(dtype) for dtype in serialization._dtype_to_dtype_kind}


def formats() -> list[str]:
    first, last = (
        jax.export.minimum_supported_calling_convention_version,
        jax.export.maximum_supported_calling_convention_version,
    )
    conventions = [f"calling convention {version}" for version in range(first, last + 1)]
    return [f"serialization format {serialization._SERIALIZATION_VERSION}", *conventions]


print(
    json.dumps(
        {
            "targets": sorted(_export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE),
            "primitives": sorted(primitives()),
            "dtypes": sorted(dtypes()),
            "effects": sorted(kind.__name__ for kind in effects.lowerable_effects._effect_types),
            "formats": formats(),
        }
    )
)

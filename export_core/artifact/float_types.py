"""The float types in the modules of an artifact: the narrowest one bounds how exact its numbers can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from export_core.artifact.unread import codes_of
from export_core.artifact.vhlo_tables import tables

if TYPE_CHECKING:
    from export_core.artifact.artifact import Artifact

# By significant bits, fewest first; JAX's name of each, and VHLO's without its version.
_NARROWEST_FIRST = {
    "f8E8M0FNU": "float8_e8m0fnu",
    "f4E2M1FN": "float4_e2m1fn",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3": "float8_e4m3",
    "f8E3M4": "float8_e3m4",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
}


def narrowest_float(artifact: Artifact) -> str:
    """The dtype of the fewest significant bits that a module of the artifact computes with; empty without floats.

    Raises:
        ArtifactError: a module cannot be read.
    """
    known = tables()["types"]
    names = {
        known[str(code)][0].removesuffix("_v1")
        for module in artifact.modules
        for dialect, code in codes_of(module.tables, module.tables.types)
        if dialect == "vhlo" and str(code) in known
    }
    return next((dtype for name, dtype in _NARROWEST_FIRST.items() if name in names), "")

"""Goldens: their manifests, their arrays of every JAX dtype, and the folder that stores them."""

from export_core.goldens.arrays import Leaf
from export_core.goldens.errors import GoldenError
from export_core.goldens.manifest import (
    Check,
    Comparison,
    FactorGroup,
    Flattened,
    JaxprSummary,
    Manifest,
    NoiseRecord,
    Options,
    Origin,
    Signature,
    Writer,
)
from export_core.goldens.store import Golden, GoldenStore, WriteStatus

__all__ = [
    "Check",
    "Comparison",
    "FactorGroup",
    "Flattened",
    "Golden",
    "GoldenError",
    "GoldenStore",
    "JaxprSummary",
    "Leaf",
    "Manifest",
    "NoiseRecord",
    "Options",
    "Origin",
    "Signature",
    "WriteStatus",
    "Writer",
]

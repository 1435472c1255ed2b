"""What is kept: goldens, their manifests, and arrays of every JAX dtype."""

from export_core.goldens.arrays import Leaf
from export_core.goldens.errors import GoldenError
from export_core.goldens.manifest import Check, Comparison, JaxprSummary, Manifest, Options, Signature, Writer
from export_core.goldens.store import Golden, GoldenStore, Written

__all__ = [
    "Check",
    "Comparison",
    "Golden",
    "GoldenError",
    "GoldenStore",
    "JaxprSummary",
    "Leaf",
    "Manifest",
    "Options",
    "Signature",
    "Writer",
    "Written",
]

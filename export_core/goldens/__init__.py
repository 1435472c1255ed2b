"""Goldens: their manifests, their arrays of every JAX dtype, and the folder that stores them."""

from export_core.goldens.arrays import GoldenError, Leaf
from export_core.goldens.manifest import Check, Comparison, FactorGroup, Manifest, Options, Origin, Writer
from export_core.goldens.store import Golden, GoldenStore, cases_meant, hint_at_cases, no_goldens, similar_cases

__all__ = [
    "Check",
    "Comparison",
    "FactorGroup",
    "Golden",
    "GoldenError",
    "GoldenStore",
    "Leaf",
    "Manifest",
    "Options",
    "Origin",
    "Writer",
    "cases_meant",
    "hint_at_cases",
    "no_goldens",
    "similar_cases",
]

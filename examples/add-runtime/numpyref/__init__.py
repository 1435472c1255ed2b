"""A runtime for pytest-jaxexport that evaluates StableHLO with NumPy, one operation after the other."""

from pathlib import Path

from export_core.releases.runtimes import Runtime, load_runtime


def runtime() -> Runtime:
    """Return the runtime that numpyref.yaml describes; the entry point names this function."""
    return load_runtime(Path(__file__).with_name("numpyref.yaml"))

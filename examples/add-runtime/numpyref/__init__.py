"""A runtime for pytest-jaxexport that evaluates StableHLO with NumPy, one operation after the other."""

from pathlib import Path

from export_core.releases.runtimes import Runtime, load_runtime


def runtime() -> Runtime:
    """The entry point: numpyref.yaml, as pytest-jaxexport reads it."""
    return load_runtime(Path(__file__).with_name("numpyref.yaml"))

"""The libtpu that was published with a jaxlib: its jax wheel pins one. `tools/libtpu_pins.py` renews the table."""

from __future__ import annotations

import functools
from importlib import resources

import yaml


def libtpu_for(jaxlib: str) -> str | None:
    """The version of libtpu that was published with this jaxlib; None if the table lacks it."""
    return load_pins().get(jaxlib)


@functools.cache
def load_pins() -> dict[str, str]:
    """The table that ships with this package: libtpu by jaxlib."""
    text = resources.files("export_core.readers").joinpath("data/libtpu.yaml").read_text()
    return yaml.safe_load(text) or {}

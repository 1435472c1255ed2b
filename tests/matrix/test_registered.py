"""Which registration modules reach for nothing that a key of the cache does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from export_core.matrix.registered import self_contained

GOLDENS = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("path", sorted({path.name: path for path in GOLDENS.rglob("*.register.py")}.values()))
def test_nodes_and_effects_are_self_contained(path):
    assert self_contained(path.read_bytes())


@pytest.mark.parametrize(
    "source",
    [
        "import ctypes",
        "import os.path",
        "from pathlib import Path",
        "import mypackage",
        "from . import beside",
        "def later():\n    import importlib",
        "open('scale')",
        "read = open",
        "import numpy as np\nscale = np.load('scale.npy')",
        "from numpy import load",
        "import numpy.ctypeslib",
        "import jax\njax.os.environ['SCALE']",
        "().__class__.__base__",
        "getattr(numpy, name)",
        "no Python",
        "a\0b",
    ],
)
def test_what_reaches_outside_or_is_not_understood_is_not(source):
    assert not self_contained(source.encode())

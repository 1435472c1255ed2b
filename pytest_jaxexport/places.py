"""Where does a test lie, as goldens name it? Not by its node id: xdist may add to that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def place(item: pytest.Item) -> tuple[str, tuple[str, ...]]:
    """The test file relative to the root directory, and the names inside it."""
    names = tuple(node.name for node in item.listchain() if isinstance(node, (pytest.Class, pytest.Item)))
    return file_of(item.path, item.config), names


def whole_name(item: pytest.Item) -> str:
    """The test as a golden's manifest has it: ``tests/test_a.py::TestA::test_f[x]``."""
    path, names = place(item)
    return "::".join((path, *names))


def file_of(path: Path, config: pytest.Config) -> str:
    """A file from the root directory, outside of it too, as --rootdir allows: no path of a machine is in a golden."""
    return Path(os.path.relpath(path, config.rootpath)).as_posix()

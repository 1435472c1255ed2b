"""The location of a test as goldens name it: file and names. Not its node id, to which xdist may add."""

import functools
import os
from pathlib import Path

import pytest


def locate(item: pytest.Item) -> tuple[str, tuple[str, ...]]:
    """The test file relative to the root directory, and the names inside it."""
    names = tuple(node.name for node in item.listchain() if isinstance(node, (pytest.Class, pytest.Item)))
    return relative_file(item.path, item.config.rootpath), names


def full_name(item: pytest.Item) -> str:
    """The test as a golden's manifest names it: ``tests/test_a.py::TestA::test_f[x]``."""
    path, names = locate(item)
    return "::".join((path, *names))


@functools.cache  # asked for each test that exists, and a file has many
def relative_file(path: Path, folder: Path) -> str:
    """A file relative to the root directory, also one outside: a golden must not contain a path of one machine."""
    return Path(os.path.relpath(path, folder)).as_posix()

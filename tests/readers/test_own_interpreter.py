"""The hash of what is installed in this interpreter changes with everything that a cell can depend on."""

from __future__ import annotations

import importlib
import os
import sys

import pytest

from export_core.readers import installed
from export_core.readers.installed import hash_of_this_interpreter


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of packages, with one that cells import."""
    (tmp_path / "decides").mkdir()
    (tmp_path / "decides" / "__init__.py").write_text("A = 1\n")
    (tmp_path / "other-1.0.dist-info").mkdir()
    (tmp_path / "other-1.0.dist-info" / "RECORD").write_text("other.py,sha256=abc,1\n")
    monkeypatch.setattr(installed, "_DECIDING", ("decides", "not_installed"))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def hashed() -> str:
    hash_of_this_interpreter.cache_clear()
    return hash_of_this_interpreter()


@pytest.fixture(autouse=True)
def forgotten():
    yield
    hash_of_this_interpreter.cache_clear()


def test_it_is_the_same_while_nothing_changes(site):
    before = hashed()
    (site / "decides" / "__pycache__").mkdir()
    (site / "decides" / "__pycache__" / "__init__.pyc").write_bytes(b"made here")
    assert hashed() == before != ""


def test_it_is_the_same_elsewhere(site, tmp_path, monkeypatch):
    before = hashed()
    other = site.rename(tmp_path.with_name(f"{tmp_path.name}-other"))
    (other / "project.pth").write_text("/home/user/project\n")
    monkeypatch.setattr(sys, "path", [str(other)])
    importlib.invalidate_caches()
    assert hashed() == before


def edited(site):
    (site / "decides" / "__init__.py").write_text("A = 2\n")  # of the same size
    os.utime(site / "decides" / "__init__.py", ns=(1, 1))


def upgraded(site):
    (site / "other-1.0.dist-info").rename(site / "other-1.1.dist-info")


def with_startup_code(site):
    (site / "run.pth").write_text("import run\n")


def with_another_file(site):
    (site / "decides" / "more.py").write_text("")


def with_another_path(site):
    os.environ["PYTHONPATH"] = "elsewhere"


@pytest.mark.parametrize("change", [edited, upgraded, with_startup_code, with_another_file, with_another_path])
def test_it_changes_with_what_is_installed(site, change, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "here")
    before = hashed()
    change(site)
    assert hashed() != before


def test_where_a_file_cannot_be_looked_at_nothing_is_cached(site):
    (site / "decides" / "gone.py").symlink_to(site / "nowhere")
    assert hashed() == ""

"""The real programs of the corpus: their number, names and pinned packages, and that some export."""

from __future__ import annotations

import ast
import importlib
from fnmatch import fnmatch
from pathlib import Path

import jax
import pytest
import yaml
from jax import export

PROGRAMS = Path(__file__).parents[1] / "corpus" / "programs"
FILES = sorted(PROGRAMS.glob("*_programs.py"))
PARTS = yaml.safe_load((PROGRAMS / "packages.yaml").read_text())


def marked_tests(file):
    """Return the tests of a file, each with the text of its marker."""
    tree = ast.parse(file.read_text())
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return [(test.name, " ".join(map(ast.unparse, test.decorator_list))) for test in tests]


def test_forty_programs_are_marked_half_with_gradients():
    markers = [marker for file in FILES for _, marker in marked_tests(file)]
    assert all(marker.startswith("pytest.mark.export_compat") for marker in markers)
    assert len(markers) >= 40
    assert sum("vjp_order=1" in marker for marker in markers) * 2 >= len(markers)


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_names_of_a_file_are_unique(file):
    names = [name for name, _ in marked_tests(file)]
    assert names
    assert len(set(names)) == len(names)


def test_each_file_is_listed_once():
    assert sorted(name for part in PARTS.values() for name in part["files"]) == [file.name for file in FILES]


def test_every_package_has_one_version():
    packages = [package for part in PARTS.values() for package in part["packages"]]
    assert all("==" in package for package in packages)
    assert len({package.partition("==")[0] for package in packages}) == len(set(packages))


def test_a_plain_test_run_does_not_collect_real_programs(pytestconfig):
    patterns = pytestconfig.getini("python_files")
    assert not [file.name for file in FILES if any(fnmatch(file.name, pattern) for pattern in patterns)]


@pytest.mark.parametrize(
    ("module", "test"), [("network_programs", "test_quantized_product"), ("numeric_programs", "test_sparse_product")]
)
def test_a_program_exports(module, test):
    function = getattr(importlib.import_module(f"studies.corpus.programs.{module}"), test)
    (marker,) = function.pytestmark
    written = []

    def export_golden(jitted, *arguments):
        written.append(export.export(jitted)(*arguments).serialize(vjp_order=marker.kwargs.get("vjp_order", 0)))

    function(export_golden=export_golden)
    (artifact,) = written
    assert export.deserialize(artifact).has_vjp() == bool(marker.kwargs)
    assert jax.devices()[0].platform in export.deserialize(artifact).platforms

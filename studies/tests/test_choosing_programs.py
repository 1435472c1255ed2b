"""The example programs: each is in one group of programs.yaml, is found by its tags, and some export."""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from fnmatch import fnmatch

import jax
import pytest
from jax import export

from studies.corpus.choosing import EXPORTS_RECORDS, INDEX, ROOT, choose, groups, programs_at
from studies.corpus.programs.planted import PROGRAMS

FOLDER = INDEX.with_name("programs")
FILES = sorted(path.relative_to(ROOT).as_posix() for path in FOLDER.glob("*_programs.py"))
PLAIN = next(group for group in choose("real") if not group.packages)


def markers_of(path):
    """Return the decorators of each test in a file, as one text for each test."""
    tree = ast.parse((ROOT / path).read_text())
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return [" ".join(map(ast.unparse, test.decorator_list)) for test in tests]


def test_forty_real_programs_need_only_jax_half_with_gradients():
    markers = [marker for path in PLAIN.paths for marker in markers_of(path)]
    assert all(marker.startswith("pytest.mark.export_compat") for marker in markers)
    assert len(markers) >= 40
    assert sum("vjp_order=1" in marker for marker in markers) * 2 >= len(markers)


@pytest.mark.parametrize("path", FILES)
def test_names_of_a_file_are_unique(path):
    tests = programs_at(path)
    assert tests
    assert len(set(tests)) == len(tests)


def test_each_file_is_listed_once_and_exists():
    listed = Counter((path, "library" in group.tags) for group in groups() for path in group.paths if "::" not in path)
    assert set(listed.values()) == {1}
    listed = {path for path, _ in listed}
    assert [path for path in listed if not (ROOT / path).exists()] == []
    assert {*FILES} - {EXPORTS_RECORDS.partition("::")[0]} == listed & {*FILES}


def test_planted_programs_are_listed_by_their_test_ids():
    listed = [test for group in choose("planted") for test in group.tests]
    assert sorted(listed) == sorted(f"{EXPORTS_RECORDS}[{name}]" for name in PROGRAMS)


def test_tests_listed_one_by_one_are_in_groups_tagged_real():
    single = [path for group in groups() for path in group.paths if "::" in path]
    assert set(single) <= {test for group in choose("real") for test in group.tests}


def test_tags_that_no_group_has_are_an_error():
    with pytest.raises(ValueError, match=r"programs.yaml.*held-out.*found atlas, held-out"):
        choose("atlas", "held-out")


def test_held_out_groups_have_exactly_these_tags():
    tags = set().union(*(group.tags for group in choose("held-out")))
    assert tags == {"held-out", "planted", "numbers", "forecast", "remarks"}


def test_every_package_has_one_version():
    packages = [package for group in choose("real") for package in group.packages]
    assert all("==" in package for package in packages)
    assert len({package.partition("==")[0] for package in packages}) == len(set(packages))


def test_a_plain_test_run_does_not_collect_programs(pytestconfig):
    patterns = pytestconfig.getini("python_files")
    assert not [path for path in FILES if any(fnmatch(path.rpartition("/")[2], pattern) for pattern in patterns)]


@pytest.mark.parametrize(
    ("module", "test"), [("network_programs", "test_quantized_product"), ("numeric_programs", "test_sparse_product")]
)
def test_a_program_exports_for_this_platform_with_its_vjp(module, test):
    function = getattr(importlib.import_module(f"studies.corpus.programs.{module}"), test)
    (marker,) = function.pytestmark
    written = []

    def export_golden(jitted, *arguments):
        written.append(export.export(jitted)(*arguments).serialize(vjp_order=marker.kwargs.get("vjp_order", 0)))

    function(export_golden=export_golden)
    (artifact,) = written
    assert export.deserialize(artifact).has_vjp() == bool(marker.kwargs)
    assert jax.devices()[0].platform in export.deserialize(artifact).platforms

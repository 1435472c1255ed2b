"""Limits of what a newcomer meets first, as tools/public_face.py counts it."""

import pytest

from tools.public_face import PARTS, Count, main, required_with


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_count_of_the_public_face_is_within_its_limit(part):
    assert [count for count in part() if not count.holds] == []


def test_the_table_of_counts_names_each_package_installed_with_ours(capsys):
    with pytest.raises(SystemExit) as ended:
        main()
    table = capsys.readouterr().out
    assert ended.value.code == int("EXCEEDED" in table)
    line = next(line for line in table.splitlines() if line.startswith("packages beside"))
    assert {"click", "markdown-it-py", "pluggy"} <= {*line.replace(",", "").split()}, "with what they require"
    assert not {"jax", "jaxlib", "numpy", "pytest-jaxexport", "nox"} & {*line.replace(",", "").split()}


def test_packages_of_extras_do_not_count_as_installed_with_ours():
    assert "click" in required_with({"pytest-jaxexport"})
    assert not {"nox", "distributed"} & required_with({"pytest-jaxexport"})


@pytest.mark.parametrize(("found", "holds"), [(14, True), (15, False)])
def test_a_count_of_the_public_face_may_equal_its_limit(found, holds):
    assert Count("direct dependencies", found, 14, "").holds == holds

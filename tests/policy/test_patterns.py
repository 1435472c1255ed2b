"""Patterns of cases, in options and in the policy."""

import pytest

from export_core.policy.entries import matches, names_golden


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("tests.test_splines.test_spline[akima]", True),
        ("tests.test_splines.test_spline[*]", True),
        ("tests.*[*]", True),
        ("tests.test_splines.test_*", True),
        ("tests.test_splines.test_spline[cubic]", False),
        ("tests.test_splines.test_spline*[*]", True),
        ("tests.test_splines.test_[!s]*", False),
    ],
)
def test_a_star_in_brackets_matches_all_parameters_of_a_test(pattern, expected):
    assert matches("tests.test_splines.test_spline[akima]", pattern) is expected


def test_a_star_in_brackets_matches_no_test_without_parameters():
    assert not matches("tests.test_splines.test_spline_symbolic", "tests.test_splines.test_spline[*]")


NAMES = ("t.test_a", "t.test_a/0.9.2-cpu", "t.test_a/0.9.2")
"""The names of one golden: its case, CASE/WRITER and CASE/JAXLIB."""


@pytest.mark.parametrize(
    ("pattern", "is_named"),
    [
        ("t.test_a/0.9.2-cpu", True),
        ("t.test_a/0.9.2", True),
        ("t.test_*/0.9.*", True),
        ("t.test_a", False),
        ("t.test_a/0.9", False),
        ("t.test_b/0.9.2", False),
    ],
)
def test_a_pattern_names_goldens_with_their_writer_only(pattern, is_named):
    assert names_golden(pattern, NAMES) is is_named

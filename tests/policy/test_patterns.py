"""Patterns of cases, in options and in the policy."""

import pytest

from export_core.policy.entries import matches


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

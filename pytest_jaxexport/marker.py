"""The marker ``@pytest.mark.export_compat(...)``: its arguments, and those of a class or a module around a test."""

from typing import Any

import pytest

from pytest_jaxexport.keyword_help import NAME
from pytest_jaxexport.settings import Marked, usage_error, user_code


def read_marker(item: pytest.Item) -> Marked | None:
    """The marker of a test; its own keywords come before those of its class and module. None for an unmarked test.

    Raises `pytest.UsageError` for positional arguments, unknown keywords and values of the wrong kind.
    """
    markers = list(item.iter_markers(NAME))
    if not markers:
        return None
    where = f"{item.nodeid}: @pytest.mark.{NAME}"
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        raise usage_error(
            f"{where} cannot be combined with hypothesis's @given: a golden has the same arguments in every run, and "
            "@given draws others.\nLeave the marker off this test, and write one beside it without @given that passes "
            "fixed arguments to export_golden, such as those of an @example."
        )
    merged: dict[str, Any] = {}
    # From the test outwards to its class and module: setdefault leaves the keyword of the nearest marker.
    for marker in markers:
        if marker.args:
            raise usage_error(f"{where} takes keywords only, found the positional {marker.args[0]!r}")
        for key, value in marker.kwargs.items():
            merged.setdefault(key, value)
    # A run with no marked test must not load export_core.
    from export_core.run import marker_keywords as core

    try:
        return core.read_keywords(merged, where, lambda: user_code(item.config))
    except core.KeywordError as error:
        raise usage_error(str(error)) from error


def own_targets(item: pytest.Item) -> set[str]:
    """The custom-call targets that a test's own marker names; those of its class and module are for several tests."""
    names = {
        name
        for marker in item.own_markers
        if marker.name == NAME
        for keyword in ("allow", "disabled_checks")
        for name in marker.kwargs.get(keyword) or ()
    }
    return names - {"platform", "ALL", "shape_assertions"}  # checks that are no targets

"""The marker ``@pytest.mark.export_compat(...)``: its arguments, and those of a class or a module around a test."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from pytest_jaxexport.keyword_help import NAME
from pytest_jaxexport.project_policy import usage_error, user_code

Amount = float | dict[str, float]
"""A tolerance for every dtype, or one for each that it names."""


class MarkerOptions(NamedTuple):  # no dataclass: every pytest run makes this class, and a dataclass takes milliseconds
    """The keywords of a marked test; None where the marker does not have one."""

    platforms: tuple[str, ...] | None = None
    vjp_order: int | None = None
    rtol: Amount | None = None
    atol: Amount | None = None
    ulp: int | dict[str, int] | None = None
    compare: str | None = None
    allow: Mapping[str, str] | None = None
    disabled_checks: Mapping[str, str] | None = None
    changed_module: str | None = None
    symbolic_shapes: Any = None
    constraints: tuple[str, ...] | None = None
    mesh: Mapping[str, int] | None = None
    in_specs: tuple[Any, ...] | Mapping[int | str, Any] | None = None
    spread_over: int | None = None
    calling_convention_version: int | None = None
    ignore_forward_compatibility: bool | None = None
    register: tuple[str, ...] | None = None
    refused_on: tuple[str, ...] | None = None
    nothing_to_compare: str | None = None
    without_outputs: str | None = None
    entries: Mapping[str, Mapping[str, Any]] = {}  # of keys of the policy that features add


def read_marker(item: pytest.Item) -> MarkerOptions | None:
    """The marker of a test; its own keywords come before those of its class and module. None for an unmarked test.

    Raises `pytest.UsageError` for positional arguments, unknown keywords and values of the wrong kind.
    """
    markers = list(item.iter_markers(NAME))
    if not markers:
        return None
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        raise _usage(
            item,
            "cannot be combined with hypothesis's @given: a golden has the same arguments in every run, and @given "
            "draws others.\nLeave the marker off this test, and write one beside it without @given that passes fixed "
            "arguments to export_golden, such as those of an @example.",
        )
    merged: dict[str, Any] = {}
    # From the test outwards to its class and module: setdefault leaves the keyword of the nearest marker.
    for marker in markers:
        if marker.args:
            raise _usage(item, f"takes keywords only, found the positional {marker.args[0]!r}")
        for key, value in marker.kwargs.items():
            merged.setdefault(key, value)
    # A run with no marked test must not load export_core.
    from export_core.run import marker_keywords as core

    try:
        return MarkerOptions(**core.read_keywords(merged, _where(item), lambda: user_code(item.config)))
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


def parse_platforms(value: object, where: str) -> tuple[str, ...]:
    """Platform names of jax.export. Raises `pytest.UsageError` for any other."""
    from export_core.run import marker_keywords as core  # here: most runs name no platforms, and need not load it

    try:
        return core.parse_platforms(value, where)
    except core.KeywordError as error:
        raise usage_error(str(error)) from error


def parse_tolerance(value: object, where: str) -> float:
    """A finite tolerance of 0 or more. Raises `pytest.UsageError` for anything else."""
    try:
        number = float(value)  # type: ignore[arg-type]  # what is no number is refused below
    except (TypeError, ValueError):
        number = -1.0
    # float(True) is 1.0, and `not (… >= 0)` is also true of NaN.
    if not (number >= 0 and math.isfinite(number)) or isinstance(value, bool):
        raise usage_error(f"{where}: expected a finite number of 0 or more, found {value!r}.")
    return number


def _where(item: pytest.Item) -> str:
    return f"{item.nodeid}: @pytest.mark.{NAME}"


def _usage(item: pytest.Item, text: str) -> pytest.UsageError:
    return usage_error(f"{_where(item)} {text}")

"""The line of the summary about a replaced golden counts all operations that differ, also those that are not shown."""

from pathlib import Path

from export_core.artifact import read
from export_core.artifact.export_changes import MOST, operations_that_differ
from pytest_jaxexport.summary import in_brief

GOLDENS = Path(__file__).parents[2] / "golden"


def test_operations_beyond_those_shown_are_differences_of_the_module():
    then, now = (
        read(GOLDENS / f"tests.compat.{case}" / "0.12.0.1-cpu" / "artifact.jaxexport")
        for case in ("test_models.test_attention", "test_models.test_convolution")
    )
    *shown, others = operations_that_differ(then, now)
    assert len(shown) == MOST
    assert all(line.startswith("module: ") for line in shown)
    number = int(others.removeprefix("module: ").removesuffix(" or more other operations differ"))
    assert number > 0
    assert in_brief([*shown, others]) == [f"{shown[0]}, and at least {MOST - 1 + number} other differences"]


def test_a_few_differences_are_counted_exactly():
    parts = ["envelope: platforms", "module: @main: + add", "module of derivative 1: @main: + sine", "numbers: more"]
    assert in_brief(parts) == ["numbers: more", "envelope: platforms", "module: @main: + add, and 1 other difference"]

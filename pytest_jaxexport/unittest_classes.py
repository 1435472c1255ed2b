"""Tests of `unittest.TestCase` classes, absltest's too: they have no fixtures, but `self.export_golden`."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pytest_jaxexport.marker import NAME

HINT = (
    f"export_golden exists in tests that are marked with @pytest.mark.{NAME}, on the method or on its class. "
    "With absl's parameterized the marker of a method is the line above its def, below @parameterized: absl drops it "
    "elsewhere. Without pytest (absltest.main, python -m unittest) it does not exist."
)


def is_test_case(item: pytest.Item) -> bool:
    """Whether this is a test of a `unittest.TestCase`."""
    unittest = sys.modules.get("unittest")  # a class of it cannot be collected before it is imported
    return unittest is not None and isinstance(getattr(item, "instance", None), unittest.TestCase)


def attach(item: Any, recorder: Callable[..., Any], finish: Callable[[], None]) -> None:
    """Set `self.export_golden`, and call `finish` when the test method has passed, before its tearDown.

    unittest reports what a test raises and does not raise it, so only a call inside the test can know, and can fail it.
    """
    method = item.obj
    item.instance.export_golden = recorder

    @functools.wraps(method)
    def checked(*args: Any) -> Any:
        __tracebackhide__ = True
        result = method(*args)
        finish()
        return result

    item.obj = checked


def explain_missing(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Say in the report of a test that has no `self.export_golden` why that is."""
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, AttributeError) and error.name == "export_golden":
        report.sections.append((f"no {error.name}", HINT))

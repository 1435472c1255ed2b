"""A pytest plugin that records which lines of a module each test runs, and how long the test takes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

MODULE, RECORD = "MUTATED_MODULE", "MUTATED_LINES"
"""Names of environment variables, for the path of the module and for the path of the JSON file to write."""
_TOOL = sys.monitoring.COVERAGE_ID
_lines: set[int] = set()
_record: dict[str, tuple[float, list[int]]] = {}


_module = os.environ.get(MODULE, "")  # Read here: a test may run with other variables.


def _started(code: CodeType, _: int) -> Any:
    if code.co_filename != _module:
        return sys.monitoring.DISABLE
    sys.monitoring.set_local_events(_TOOL, code, sys.monitoring.events.LINE)
    return None


def _ran(_: CodeType, line: int) -> Any:
    _lines.add(line)
    return sys.monitoring.DISABLE


def pytest_configure() -> None:
    """Register callbacks with `sys.monitoring` that record the lines which run."""
    monitoring = sys.monitoring
    monitoring.use_tool_id(_TOOL, __name__)
    monitoring.register_callback(_TOOL, monitoring.events.PY_START, _started)
    monitoring.register_callback(_TOOL, monitoring.events.LINE, _ran)
    monitoring.set_events(_TOOL, monitoring.events.PY_START)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test, and record its seconds and the lines of the module that it runs."""
    _lines.clear()
    sys.monitoring.restart_events()
    began = time.monotonic()
    result = yield
    _record[item.nodeid] = time.monotonic() - began, sorted(_lines)
    return result


def pytest_unconfigure() -> None:
    """Write the lines and seconds of all tests to the JSON file."""
    Path(os.environ[RECORD]).write_text(json.dumps(_record), encoding="utf-8")

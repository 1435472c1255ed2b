"""A pytest plugin that times each marked test, and a plain export of the same function.

It writes the seconds of both for each case, as JSON, into the file that the environment variable DAILY_ROWS names.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import jax
import pytest

from export_core.run.case_options import export_options
from pytest_jaxexport import plugin

ROWS: list[tuple[float, float]] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: Any) -> Generator[None, object, object]:
    """Time a marked test and a plain export of its function, in alternating order, and add both to `ROWS`.

    Tests without the marker are not timed, nor are tests that fail with a plain export.
    """
    if "export_golden" not in getattr(item, "funcargs", {}) or item.stash.get(plugin.MARKED, None) is None:
        return (yield)
    names = item._fixtureinfo.argnames
    given = {name: item.funcargs[name] for name in names} | {"export_golden": plain_export(item)}
    sides = {}

    def plain() -> None:
        sides["plain"] = seconds_of(lambda: item.obj(**given))

    try:
        plain()  # to warm up
        if len(ROWS) % 2:
            plain()
    except Exception:  # a function that must be refused, or a test that needs more than a plain export
        return (yield)
    jax.clear_caches()
    started = time.perf_counter()
    result = yield
    marked = time.perf_counter() - started
    if not len(ROWS) % 2:
        plain()
    ROWS.append((sides["plain"], marked))
    return result


def seconds_of(do: Callable[[], Any]) -> float:
    """Return the seconds that a call takes with jax's caches empty."""
    jax.clear_caches()
    started = time.perf_counter()
    do()
    return time.perf_counter() - started


def plain_export(item: Any) -> Callable[..., Any]:
    """Return a replacement for a test's `export_golden`, which only exports, serializes and calls the function once."""
    settings = item.config.stash[plugin.SETTINGS]
    options = export_options(item.stash[plugin.MARKED][1], settings.policy, settings.platforms)

    def export_golden(function: Any, *args: Any, name: str | None = None, **kwargs: Any) -> Any:
        exported = jax.export.export(function, platforms=options.platforms)(*args, **kwargs)
        exported.serialize(vjp_order=options.vjp_order)
        jax.block_until_ready(function(*args, **kwargs))
        return MagicMock()

    return export_golden


def pytest_unconfigure() -> None:
    """Write `ROWS`, the seconds of all cases, into the file that DAILY_ROWS names."""
    Path(os.environ["DAILY_ROWS"]).write_text(json.dumps(ROWS))

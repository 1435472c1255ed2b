"""A pytest plugin that writes down which modules tests import and their environment lacks.

Only `jaxexport goldens backfill` loads it, in an environment that it has built.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

FILE = "missing_modules"
"""The name of the file, beside that of JAXEXPORT_SESSION_ENDED: a module in each line, maybe several times."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, Any, Any]:
    """Write down the missing module that a conftest.py imports, since pytest then ends without another hook."""
    try:
        return (yield)
    except Exception as error:
        _write_down(error)
        raise


def pytest_exception_interact(call: pytest.CallInfo[Any]) -> None:
    """Write down the missing module that a test or its file imports."""
    if call.excinfo is not None:
        _write_down(call.excinfo.value)


def _write_down(error: BaseException | None) -> None:
    seen = set[int]()
    while error is not None and id(error) not in seen:  # `raise … from` can make a circle
        seen.add(id(error))
        # Of a package that is there, a missing part is not a package that is missing.
        if isinstance(error, ModuleNotFoundError) and error.name and "." not in error.name:
            with Path(os.environ["JAXEXPORT_SESSION_ENDED"]).with_name(FILE).open("ab") as file:
                file.write(f"{error.name}\n".encode())
        error = error.__cause__ or error.__context__

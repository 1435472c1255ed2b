"""Fixtures of tests of reports: templates that are compiled once, and the page of the broken example run."""

from collections.abc import Callable, Iterator
from pathlib import Path

import jinja2
import pytest


@pytest.fixture(autouse=True, scope="session")
def _compiled_once() -> Iterator[None]:
    """Templates that are compiled once for all tests, since compiling them anew would take half of the time."""
    compile_template, compiled = jinja2.Environment.compile, {}

    def compile_once(environment: jinja2.Environment, *template: str | None) -> object:
        key = (environment.autoescape, *template)
        if key not in compiled:
            compiled[key] = compile_template(environment, *template)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.Environment, "compile", compile_once)
        yield


@pytest.fixture(scope="session")
def page(page_of: Callable[..., Path]) -> str:
    """The text of the page of `broken_run`."""
    return page_of().read_text(encoding="utf-8")

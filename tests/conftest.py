"""Fixtures of all tests: pytester, those of replaying.py and browsing.py, and the command in this process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from commands import Ended

# Releases that write the corpus load this file too, in environments that lack what this project's own tests need.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    # How fast the machine is decides no test, but for those of hostile input, which name a limit of their own.
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

pytest_plugins = ["pytester", "replaying", "browsing"]

# Thousands of collected tests are alive until the end. Python would look through all of them again and again: for three
# seconds of the seven that collecting takes, and in every test that makes many objects.
gc.disable()


def pytest_collection_finish() -> None:
    """What is collected is never garbage; what tests make is."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _same_64_bits() -> Iterator[None]:
    """A test that leaves 64-bit numbers on changes the tests after it, which are others in each order of the files."""
    before = _has_64_bits()
    yield
    after = _has_64_bits()
    if before is not None and after != before:
        sys.modules["jax"].config.update("jax_enable_x64", before)
        pytest.fail(f"jax_enable_x64 was {before} before this test and is {after} after it")


def _has_64_bits() -> bool | None:
    jax = sys.modules.get("jax")
    return None if jax is None else bool(jax.config.jax_enable_x64)


@pytest.fixture
def jaxexport(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs `jaxexport WORDS` in this process, from its entry point."""
    from commands import Ended

    from export_core.cli.app import main

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["jaxexport", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    return run

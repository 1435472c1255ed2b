"""Fixtures of all tests, those of studies/ too: a check of 64-bit numbers, and the command in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from commands import Ended


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

    def run(*words: object, code: int | None = None) -> Ended:
        """What it said, and its exit code, which must be this one where one is given."""
        monkeypatch.setattr(sys, "argv", ["jaxexport", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        ended = Ended(int(left.value.code or 0), *capsys.readouterr())
        assert code in (None, ended.code), ended
        return ended

    return run

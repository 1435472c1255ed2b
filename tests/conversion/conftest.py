"""Fixtures of conversions: `convert`, which replays what is converted in this interpreter, as the only reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from replaying import misbehaving, replayed

from export_core.conversion import proof
from export_core.environments.environment import this_interpreter
from export_core.matrix import Limits

if TYPE_CHECKING:
    from commands import Ended


@pytest.fixture
def convert(jaxexport, here, kept, forked_workers, monkeypatch) -> Callable[..., Ended]:
    """Runs `jaxexport convert WORDS --for JAXLIB`, where JAXLIB is that of this interpreter."""

    def replay_here(cells, options, *, notify):
        return replayed(cells, this_interpreter, limits=Limits(jobs=1, timeout=60.0), start=kept.start)

    monkeypatch.setattr(proof, "replay_here", replay_here)
    return lambda *words, reader=here.jaxlib: jaxexport("convert", *map(str, words), "--for", reader)


@pytest.fixture
def in_a_bad_reader(monkeypatch, here, forked_workers) -> None:
    """The reader of `convert` misbehaves as tests/misbehaving says."""
    monkeypatch.setattr(
        proof,
        "replay_here",
        lambda cells, options, *, notify: replayed(cells, misbehaving, limits=Limits(jobs=1, timeout=60.0)),
    )

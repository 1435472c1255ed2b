"""The check that the audit names every custom call that jaxlib finds, for some seconds, with the jaxlib installed here.

An hour with four releases is `nox -s audit_check`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from audit_check import Check, Interpreter, Reader, seeds_of

from export_core.artifact import unread
from export_core.artifact.bytecode.sections import Tables
from export_core.artifact.unread import Unread

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("jax", "flatbuffers")), reason="no jax is installed here"
)
RULES = unread.unread_in_tables


@pytest.fixture(scope="module")
def checked() -> Iterator[Callable[[int], Counter[str]]]:
    """Checks so many mutants, and counts what came of it."""
    variables = {**os.environ, "JAX_PLATFORMS": "cpu"}
    installed = Interpreter("installed", sys.executable, variables)
    mutants, reader = seeds_of(installed), Reader(installed)

    def run(mutants_made: int) -> Counter[str]:
        check = Check(mutants, [reader], "0", keep=None)
        check.batch(range(mutants_made))
        return check.counts

    yield run
    reader.close()


def test_the_audit_names_every_call_that_jaxlib_finds(checked):
    counts = checked(600)
    assert counts["installed misses"] == 0
    assert counts["installed with calls"] > 30, counts


def test_a_rule_for_dialects_taken_out_is_a_miss(checked, monkeypatch):
    def without_dialects(parts: Tables) -> Iterator[Unread]:
        return (part for part in RULES(parts) if part.kind != "dialect")

    monkeypatch.setattr(unread, "unread_in_tables", without_dialects)
    assert checked(200)["installed misses"] > 0


def test_a_rule_for_attributes_taken_out_is_a_miss(checked, monkeypatch):
    monkeypatch.setattr(unread, "unread_attributes", lambda parts, attributes_of: iter(()))
    assert checked(1600)["installed misses"] > 0

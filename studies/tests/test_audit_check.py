"""The check that the audit names every custom call that jaxlib finds, for some seconds, with the installed jaxlib.

`nox -s audit_check` runs it for an hour, with four releases.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from export_core.artifact import unread
from export_core.artifact.bytecode.module import Contents
from export_core.artifact.bytecode.sections import Tables
from export_core.artifact.bytecode.walk import Operation
from export_core.artifact.unread import Unread
from studies.artifact.audit_check import Check, Interpreter, Reader, mutants_of, named, rewritten

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("jax", "flatbuffers")), reason="no jax is installed here"
)
RULES = unread.unread_in_tables
PROPERTIES = Contents.properties


INSTALLED = Interpreter("installed", sys.executable, {**os.environ, "JAX_PLATFORMS": "cpu"})


@pytest.fixture(scope="module")
def written_again() -> dict[str, bytes]:
    """Real modules, written again by the installed jaxlib in different versions and dialects, by name."""
    return rewritten(INSTALLED)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """The installed jaxlib, which lists the custom calls of mutants."""
    installed = Reader(INSTALLED)
    yield installed
    installed.close()


@pytest.fixture(scope="module")
def checked(written_again: dict[str, bytes], reader: Reader) -> Callable[..., Counter[str]]:
    """A function that checks a number of mutants, and returns the counts of the check."""
    mutants = mutants_of(written_again.values())

    def run(mutants_made: int, seed: int = 0) -> Counter[str]:
        check = Check(mutants, [reader], str(seed), keep=None)
        check.batch(range(mutants_made))
        return check.counts

    return run


def test_the_audit_refuses_stablehlo_that_is_not_vhlo(written_again, reader):
    """Since 0.10, jaxlib reads custom calls in bytecode of StableHLO that is not VHLO, in each version of bytecode."""
    modules = [data for name, data in written_again.items() if "stablehlo" in name]
    reader.send([(False, data) for data in modules])
    assert sum(isinstance(answer, list) and bool(answer) for answer in reader.answers(len(modules))) == len(modules)
    assert {named(data) for data in modules} == {"not read whole"}


def test_vhlo_of_each_bytecode_is_read_as_jaxlib_reads_it(written_again, reader):
    modules = [data for name, data in written_again.items() if "vhlo" in name]
    assert {data[4] >> 1 for data in modules} == {0, 1, 3, 4, 6}
    reader.send([(False, data) for data in modules])
    assert [set(answer) for answer in reader.answers(len(modules))] == list(map(named, modules))


def test_the_audit_names_every_call_that_jaxlib_finds(checked):
    counts = checked(600)
    assert counts["installed misses"] == 0
    assert counts["installed with calls"] > 30, counts


def test_an_audit_without_the_dialect_rule_misses_calls(checked, monkeypatch):
    def without_dialects(parts: Tables) -> Iterator[Unread]:
        return (part for part in RULES(parts) if part.kind != "dialect")

    monkeypatch.setattr(unread, "unread_in_tables", without_dialects)
    assert checked(200)["installed misses"] > 0


def test_an_audit_of_properties_only_misses_calls(checked, monkeypatch):
    def properties(contents: Contents, op: Operation) -> dict[str, int]:
        attributes = op.attributes if op.properties < 0 else -1
        return PROPERTIES(contents, Operation(op.name, op.at, attributes, op.properties, op.location, op.depth))

    monkeypatch.setattr(unread, "unread_attributes", lambda module: iter(()))
    monkeypatch.setattr(Contents, "properties", properties)
    # One mutant in some hundreds shows it; with today's goldens, one of the first seed does.
    assert any(checked(200, seed)["installed misses"] for seed in range(9, 25))

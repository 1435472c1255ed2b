"""What is known of LiteRT and IREE against the small programs that ran in them, one for each operation and dtype."""

import json
from collections.abc import Iterable, Iterator, Mapping

import pytest
from making import ARTIFACTS

from export_core.artifact import read
from export_core.knowledge import Entry, entries_of
from export_core.knowledge.concerns import CALL, About, is_concerned
from export_core.knowledge.measured import measured
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import shipped_entries
from studies.runtimes.operations import READERS, RECORD
from tools.measured_operations import UNPARSED

PROGRAMS = json.loads(RECORD.read_text(encoding="utf-8"))
PLAIN = read(ARTIFACTS / "0.12.0.1" / "mlp.jaxexport")


class Program(About):
    """A recorded program, as entries of the knowledge base ask about it: its name, its operations and their types."""

    def __init__(self, name: str, operations: Mapping[str, list[str]]) -> None:
        super().__init__(PLAIN)  # which has none of what else entries ask for
        self.name = name
        of = {operation: frozenset(types) for operation, types in operations.items()}
        vars(self).update(uses=of, operations={operation.partition("(")[0] for operation in of})
        vars(self).update(calls=of.get(CALL, frozenset()), types="", is_symbolic=name.startswith("symbolic_"))

    def has_one_of(self, names: Iterable[str]) -> bool:
        return "chlo.top_k" in names and self.name.startswith("top_k")


def outcomes(reader: str) -> Iterator[tuple[Program, bool]]:
    """Yield each program that ran in a reader, and whether it worked."""
    for name, program in PROGRAMS.items():
        # Dialects and versions exclude a program that was not parsed, which neither entries nor operations show.
        if (outcome := program["in"].get(reader)) and not any(message in outcome for message in UNPARSED):
            yield Program(name, program["operations"]), outcome == "works"


def concerned(program: Program, reader: str) -> list[Entry]:
    release = find_reader(reader, Terms(shipped_entries())).release
    return [
        entry
        for entry in entries_of(release.family)
        if entry.holds_for(release.built)
        and entry.holds_with("cpu", release.settings)
        and is_concerned(program, entry.concerns)
    ]


@pytest.mark.parametrize("reader", READERS)
def test_no_entry_forecasts_a_failure_of_a_program_that_worked(reader):
    worked = [program for program, is_good in outcomes(reader) if is_good]
    assert len(worked) > 40
    assert [(one.name, entry.id) for one in worked for entry in concerned(one, reader) if entry.is_sure] == []


@pytest.mark.parametrize("reader", READERS)
def test_a_program_that_failed_is_not_forecast_to_run(reader):
    failed = [program for program, is_good in outcomes(reader) if not is_good]
    assert failed
    release = find_reader(reader, Terms(shipped_entries())).release
    table = measured()[release.family]
    stand_ins = table.stand_ins(release.version)
    claimed_to_run = [
        program.name
        for program in failed
        if not table.unseen(program.uses, stand_ins)
        and not table.in_some_forms(program.uses, stand_ins)
        and not concerned(program, reader)
    ]
    assert claimed_to_run == []

"""The parts about verdicts, judgements, stages, modes, directions, and the exit codes of a run."""

from __future__ import annotations

from export_core.base.exit_code import ExitCode
from export_core.judge.judgement import judge_verdict
from export_core.matrix.verdicts import Judgement, Verdict
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Direction
from tools.field_docs import field_docs
from tools.reference.markdown import code, table
from tools.reference.schema_fields import members


def verdicts() -> str:
    """Return a table of the verdicts, each with its meaning and its judgement inside and outside the window.

    The judgements are those of a policy that has no key about them.
    """
    docs = field_docs(Verdict)
    rows = [
        (code(verdict), docs[verdict.name], *(judge_verdict(verdict, promised=inside) for inside in (True, False)))
        for verdict in Verdict
    ]
    return table(("verdict", "what", "judgement inside the window", "outside"), rows)


def exit_codes() -> str:
    """Return a table of the exit codes of `matrix` and `judge`."""
    docs = field_docs(ExitCode)
    rows = [(code(str(exit_code.value)), docs[exit_code.name]) for exit_code in ExitCode]
    return table(("exit code", "when"), rows)


PARTS = {
    "verdicts": verdicts,
    "judgements": lambda: members(Judgement),
    "stages": lambda: members(Stage),
    "modes": lambda: members(Mode),
    "directions": lambda: members(Direction),
    "exit codes": exit_codes,
}

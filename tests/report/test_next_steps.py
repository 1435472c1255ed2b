"""The commands that a report says to run next."""

import io
from pathlib import Path

import pytest
from making import result, summarize, with_causes
from rich.console import Console

from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Stage
from export_core.report.annotations import annotation_commands
from export_core.report.terminal import print_report
from export_core.report.view import view
from export_core.run.plan_record import PlanRecord
from export_core.run.run import Run

PLAN = PlanRecord("t", "2026-11-21", {}, {}, "", 1, "", {}, "", {}, {}, options=["--readers", "0.9.2,0.10.2"])
RESUMED = "jaxexport matrix --readers 0.9.2,0.10.2 --resume --results out"
CRASH = result(Verdict.CRASH, Judgement.BROKEN, stage=Stage.RUN, message="signal 11")


def not_run(case: str = "t.n", reader: str = "0.9.2"):
    message = f"installing jax=={reader} failed"
    return result(
        Verdict.NOT_RUN, Judgement.INCOMPLETE, case=case, reader=reader, stage=Stage.ENVIRONMENT, message=message
    )


def report_of(*results, changed: str = "", **facts):
    return view(Run(with_causes(results), summarize(results, **facts), PLAN, Path("out"), changed=changed))


def next_steps(made) -> list[str]:
    file = io.StringIO()
    print_report(Console(file=file, width=300), made)
    steps = file.getvalue().partition("\n  next ")[2].splitlines()[:-2]
    return [step.strip() for step in steps]


def test_resuming_is_advised_first_if_no_environment_could_be_built():
    made = report_of(not_run(), not_run("t.m"), not_run(reader="0.10.2"))
    assert next_steps(made)[0] == RESUMED
    file = io.StringIO()
    print_report(Console(file=file, width=300), made)
    assert "reproduce" not in file.getvalue() + annotation_commands(made)


def test_resuming_is_advised_after_explaining_the_worst_cell():
    first, second, third, _ = next_steps(report_of(CRASH, not_run()))
    assert first.startswith("jaxexport matrix --cases tests.test_a.test_f ")
    assert second.startswith("jaxexport explain ")
    assert third == RESUMED
    assert RESUMED not in next_steps(report_of(CRASH))


@pytest.mark.parametrize("facts", [{"changed": "another tool"}, {"not_run_shards": [Shard(1, 2)]}])
def test_resuming_an_outdated_or_joined_run_is_not_advised(facts):
    (only,) = next_steps(report_of(not_run(), **facts))
    assert only.startswith("jaxexport report out")

"""What a worker's reply says of a cell."""

from __future__ import annotations

from pathlib import Path

import pytest
from making import golden, release

from export_core.environments.placement import Mode
from export_core.matrix import Cell, Verdict
from export_core.matrix.limits import Limits, ReplayOptions
from export_core.matrix.outcomes import outcome_of
from export_core.releases import load_calendar
from export_core.worker.protocol import Reply, Stage

NO_DRIVER = "operation cuInit(0) failed"


@pytest.mark.parametrize(
    ("platform", "mode", "message", "verdict"),
    [
        ("cuda", Mode.COMPILE, NO_DRIVER, Verdict.NOT_RUN),
        ("cuda", Mode.COMPILE, "the artifact is wrong", Verdict.ERROR),
        ("cuda", Mode.RUN, NO_DRIVER, Verdict.ERROR),
        ("tpu", Mode.COMPILE, NO_DRIVER, Verdict.ERROR),
    ],
)
def test_what_a_compiler_cannot_do_without_a_driver_says_nothing_of_the_artifact(platform, mode, message, verdict):
    cell = Cell(golden(), release("0.12.0.1"), platform, mode)
    reply = Reply(Stage.COMPILE, "error", type="XlaRuntimeError", message=message)
    outcome = outcome_of(cell, reply, Path("nowhere"), ReplayOptions(load_calendar(), limits=Limits(jobs=1)))
    assert (outcome.verdict, outcome.stage) == (verdict, Stage.COMPILE)
    assert message in outcome.message

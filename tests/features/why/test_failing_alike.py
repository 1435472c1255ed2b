"""What fails alike for a bisection and a reduction: what has one failure signature, and died in the same way."""

import pytest
from making import golden, release, result

from export_core.features.why.bisect.criterion import Measure
from export_core.features.why.reduce.failing_alike import Failure
from export_core.judge import judge_again
from export_core.matrix import Cell, Outcome, Verdict
from export_core.policy import Policy
from export_core.readers.worker.protocol import Stage

WRONG = "ValueError: no 'x' in Function f of 0x12"
FAILED = {
    "segv": (Verdict.CRASH, Stage.RUN, "died by signal 11 (SIGSEGV)", 11),
    "killed": (Verdict.CRASH, Stage.RUN, "killed", 9),
    "killed otherwise": (Verdict.CRASH, Stage.RUN, "killed", 15),
    "error": (Verdict.ERROR, Stage.LOWER, WRONG, None),
    "of another case": (Verdict.ERROR, Stage.LOWER, "ValueError: no 'abc' in Function g of 0x3f\nand more", None),
    "other words": (Verdict.ERROR, Stage.LOWER, "TypeError: no 'x'", None),
    "another stage": (Verdict.ERROR, Stage.COMPILE, WRONG, None),
    "numbers": (Verdict.NUMERICS, Stage.COMPARE, "3 of 4 elements differ", None),
    "other numbers": (Verdict.NUMERICS, Stage.COMPARE, "outputs are NaN", None),
}
ALIKE = [{"error", "of another case"}, {"numbers", "other numbers"}]


def label_of(name: str) -> str:
    verdict, stage, message, signal = FAILED[name]
    return Measure().label(judge_again(result(verdict, stage=stage, message=message, signal=signal), Policy()))


def failure_of(name: str) -> Failure:
    verdict, stage, message, signal = FAILED[name]
    cell = Cell(golden("t.f", "0.9.2"), release("0.10.2"), "cpu")
    return Failure.of(Outcome(cell, verdict=verdict, stage=stage, message=message, signal=signal))


@pytest.mark.parametrize(("one", "other"), [(one, other) for one in FAILED for other in FAILED if one <= other])
def test_bisection_and_reduction_give_one_answer(one, other):
    alike = one == other or {one, other} in ALIKE
    assert (label_of(one) == label_of(other), failure_of(one) == failure_of(other)) == (alike, alike)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("segv", "crash in stage run: died by signal _ (SIGSEGV)"),
        ("killed", "crash in stage run: killed: signal 9 (SIGKILL)"),
        ("error", "error in stage lower: ValueError: no _ in Function _ of _"),
        ("numbers", "numerics in stage compare"),
    ],
)
def test_a_label_says_how_it_failed(name, label):
    assert label_of(name) == label

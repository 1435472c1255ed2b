"""What fails alike: causes and signatures give one answer, and the ids of causes stay as they are."""

import msgspec
import pytest
from making import golden, release, result, with_causes

from export_core.judge import Result, judge_again
from export_core.judge.causes import cell_signature, failure_signature, message_class
from export_core.matrix import Cell, Outcome, Verdict
from export_core.policy import Policy
from export_core.readers.worker.protocol import Stage

WRONG = "ValueError: no 'x' in Function f of 0x12"
FAILED = {
    "segv": (Verdict.CRASH, Stage.RUN, "died by signal 11 (SIGSEGV)", 11),
    "killed": (Verdict.CRASH, Stage.RUN, "killed", 9),
    "error": (Verdict.ERROR, Stage.LOWER, WRONG, None),
    "of another case": (Verdict.ERROR, Stage.LOWER, "ValueError: no 'abc' in Function g of 0x3f", None),
    "with more lines": (Verdict.ERROR, Stage.LOWER, f"{WRONG}\nand more", None),
    "other words": (Verdict.ERROR, Stage.LOWER, "TypeError: no 'x'", None),
    "another stage": (Verdict.ERROR, Stage.COMPILE, WRONG, None),
    "numbers": (Verdict.NUMERICS, Stage.COMPARE, "3 of 4 elements differ", None),
    "other numbers": (Verdict.NUMERICS, Stage.COMPARE, "outputs are NaN", None),
    "silent": (Verdict.REFUSED, Stage.LOWER, "", None),
}
SAME = [{"error", "of another case", "with more lines"}, {"numbers", "other numbers"}]
PAIRS = [(one, other) for one in FAILED for other in FAILED if one <= other]


def result_of(name: str) -> Result:
    verdict, stage, message, signal = FAILED[name]
    return judge_again(result(verdict, stage=stage, message=message, signal=signal), Policy())


def outcome_of(name: str) -> Outcome:
    verdict, stage, message, signal = FAILED[name]
    cell = Cell(golden("t.f", "0.9.2"), release("0.10.2"), "cpu")
    return Outcome(cell, verdict=verdict, stage=stage, message=message, signal=signal)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_failures_are_alike_for_all_that_ask(one, other):
    answers = {
        "causes": cell_signature(result_of(one)) == cell_signature(result_of(other)),
        "signature": failure_signature(outcome_of(one)) == failure_signature(result_of(other)),
    }
    alike = one == other or any({one, other} <= names for names in SAME)
    assert answers == dict.fromkeys(answers, alike)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("segv", "crash-run-d5b5e17a"),
        ("killed", "crash-run-77a63546"),
        ("error", "error-lower-a23e09e4"),
        ("numbers", "numerics-compare-173f618f"),
        ("silent", "refused-lower-9891928e"),
    ],
)
def test_a_failure_has_the_cause_that_earlier_runs_gave_it(name, cause):
    """An id is compared with that of a stored run: another one would make each cause a new one."""
    assert with_causes([result_of(name)])[0].cause == cause


def test_a_message_class_has_nothing_of_one_case():
    assert message_class("in function f: custom call to g at 0x1 of 'h', see https://x/1\nmore") == (
        "in function _ custom call to _ at _ of _, see _"
    )
    assert message_class(" \n") == ""


def test_a_known_upstream_issue_is_one_cause_whatever_fails():
    one, other = (judge_again(result(verdict), Policy()) for verdict in (Verdict.CRASH, Verdict.ERROR))
    named = [msgspec.structs.replace(each, upstream="jax-1") for each in (one, other)]
    assert cell_signature(named[0]) == cell_signature(named[1])

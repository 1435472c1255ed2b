"""What a policy requires and no cell covers makes a run incomplete, and the message says which."""

import pytest
from making import document, result, rules, summarize

from export_core.judge import Judgement, judge_again
from export_core.matrix import Verdict
from export_core.policy import Policy, Required
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows

PASS = result()
NOT_RUN = result(
    Verdict.NOT_RUN, Judgement.INCOMPLETE, case="b", reader="0.11.2", stage=Stage.ENVIRONMENT, promised=False
)


def summary(*results, required=None, **selection):
    policy = Policy(required=required or Required())
    return summarize(results, policy=policy, selection={"whole": True, **selection})


@pytest.mark.parametrize(
    ("required", "said"),
    [
        (Required(readers=("0.12.*",)), "required.readers: expected a cell that ran for 0.12.*, found 0.10.2."),
        (Required(writers=("0.9.2", "0.6.2")), "required.writers: expected a cell that ran for 0.6.2, found 0.9.2."),
        (Required(platforms=("tpu",)), "required.platforms: expected a cell that ran for tpu, found cpu."),
        (Required(cells=2), "required.cells: expected at least 2 cells that ran, found 1."),
    ],
)
def test_what_is_required_and_not_covered_is_incomplete(required, said):
    found = summary(PASS, required=required)
    assert (found.exit_code, found.uncovered) == (3, [said])
    (finding,) = document([PASS], found).findings
    assert (finding.title, finding.text) == ("INCOMPLETE", said)


def test_what_is_required_and_covered_is_kept():
    required = Required(("0.10.*",), ("0.9.2",), ("cpu",), 1)
    assert (summary(PASS, required=required).exit_code, summary(PASS, required=required).uncovered) == (0, [])


def test_a_cell_that_was_not_run_covers_nothing():
    missing = result(Verdict.NOT_RUN, Judgement.OUTSIDE, reader="0.11.2")
    assert summary(result(), missing, required=Required(("0.11.2",))).exit_code == 3


def test_a_required_platform_without_a_cell_is_not_ignored():
    found = summary(PASS, platforms=["cpu", "tpu"])
    assert found.exit_code == 3
    said = "Platform tpu was asked for and has no cell: no golden of this run was exported for it."
    assert said in found.uncovered[0]


@pytest.mark.parametrize(
    ("required", "judgement"),
    [
        (Required(), Judgement.INCOMPLETE),
        (Required(outside=False), Judgement.OUTSIDE),
        (Required(outside=False, readers=("0.11.*",)), Judgement.INCOMPLETE),
        (Required(outside=False, writers=("0.9.2",)), Judgement.INCOMPLETE),
        (Required(outside=False, readers=("0.10.*",)), Judgement.OUTSIDE),
    ],
)
def test_outside_the_window_only_what_is_required_must_run(required, judgement):
    assert judge_again(NOT_RUN, rules(required=required)).judgement is judgement
    inside = judge_again(NOT_RUN, rules(Windows(400), required=required))
    assert inside.judgement is Judgement.INCOMPLETE, "inside it always must"


def test_a_run_of_nothing_is_not_green_without_requirements():
    outside = judge_again(NOT_RUN, rules(required=Required(outside=False)))
    found = summary(outside, required=Required(outside=False))
    assert (found.exit_code, found.uncovered) == (3, ["No cell ran, and nothing was shown."])
    missing = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="c", stage=Stage.ENVIRONMENT)
    both = summary(outside, missing, required=Required(outside=False))
    assert (both.exit_code, both.uncovered) == (3, []), "what had to run is told already"

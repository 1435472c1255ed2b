"""The difference from a baseline: one word for each pair of results, and caveats that make it doubtful."""

import itertools
from pathlib import Path

import msgspec
import pytest
from commands import finished
from making import day, result

from export_core.features.compare_runs.comparison import Change, change_of, compare_with_baseline
from export_core.judge import Judgement, Result
from export_core.judge.gate import recorded_policy
from export_core.matrix import Verdict
from export_core.policy import Policy
from export_core.policy.entries import KnownFailure
from export_core.policy.run_options import Shard
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.run.errors import RunError
from export_core.run.plan_record import PLAN, plan_of
from export_core.run.run import Run

KEPT = result()
BONUS = result(reader="0.12.0.1", judgement=Judgement.BONUS, promised=False)
COMPILED = result(Verdict.COMPILED, mode=Mode.COMPILE)
NOT_RUN = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, stage=Stage.ENVIRONMENT, message="no environment")


def failed(verdict: Verdict = Verdict.CRASH, judgement: Judgement = Judgement.BROKEN, **changes) -> Result:
    return result(verdict, judgement, **{"stage": Stage.RUN, "message": "died", **changes})


@pytest.mark.parametrize(
    ("then", "now", "change"),
    [
        (KEPT, KEPT, Change.UNCHANGED),
        (KEPT, failed(), Change.REGRESSED),
        (KEPT, failed(judgement=Judgement.KNOWN), Change.REGRESSED),
        (BONUS, failed(judgement=Judgement.OUTSIDE), Change.REGRESSED),
        (KEPT, NOT_RUN, Change.REGRESSED),
        (failed(), NOT_RUN, Change.REGRESSED),
        (failed(judgement=Judgement.KNOWN), failed(), Change.REGRESSED),
        (failed(judgement=Judgement.OUTSIDE), failed(), Change.REGRESSED),
        (failed(Verdict.REFUSED), failed(Verdict.CRASH), Change.REGRESSED),
        (failed(Verdict.CRASH), failed(Verdict.NUMERICS), Change.REGRESSED),
        (failed(Verdict.REFUSED, Judgement.OUTSIDE), failed(Verdict.ERROR, Judgement.OUTSIDE), Change.REGRESSED),
        (failed(), KEPT, Change.FIXED),
        (failed(judgement=Judgement.KNOWN), KEPT, Change.FIXED),
        (failed(judgement=Judgement.OUTSIDE), BONUS, Change.FIXED),
        (NOT_RUN, KEPT, Change.NEW),
        (NOT_RUN, failed(), Change.NEW),
        (NOT_RUN, NOT_RUN, Change.UNCHANGED),
        (None, failed(), Change.NEW),
        (None, NOT_RUN, Change.NEW),
        (failed(), failed(judgement=Judgement.KNOWN), Change.CHANGED),
        (failed(), failed(judgement=Judgement.OUTSIDE), Change.CHANGED),
        (failed(Verdict.NUMERICS), failed(Verdict.REFUSED), Change.CHANGED),
        (failed(), failed(message="died otherwise"), Change.CHANGED),
        (failed(), failed(stage=Stage.COMPILE), Change.CHANGED),
        (failed(message="died\nat 0x1"), failed(message="died\nat 0x2"), Change.UNCHANGED),
        (failed(message="output 0 f32[2]: far"), failed(message="output 0 (result[0]) f32[2]: far"), Change.UNCHANGED),
        (KEPT, BONUS, Change.CHANGED),
        (KEPT, COMPILED, Change.CHANGED),
        (COMPILED, KEPT, Change.CHANGED),
    ],
)
def test_the_earlier_and_the_new_result_decide_if_a_cell_regressed(then, now, change):
    assert change_of(then, now) is change


STANDINGS = [KEPT, BONUS, COMPILED, NOT_RUN] + [
    failed(verdict, judgement)
    for verdict in (Verdict.NUMERICS, Verdict.REFUSED, Verdict.ERROR, Verdict.CRASH, Verdict.TIMEOUT)
    for judgement in (Judgement.BROKEN, Judgement.KNOWN, Judgement.OUTSIDE)
]


def test_regressed_cells_fail_now_and_fixed_cells_work():
    for then, now in itertools.product(STANDINGS, repeat=2):
        change, back = change_of(then, now), change_of(now, then)
        works = now.judgement in (Judgement.KEPT, Judgement.BONUS)
        assert works or change is not Change.FIXED
        assert not works or change is not Change.REGRESSED
        assert {change, back} != {Change.REGRESSED}
        assert (change is Change.UNCHANGED) == (then == now)


# --- two runs ---------------------------------------------------------------------------------------------------------


def run(folder: Path, *results: Result, planned: int | None = None, policy: Policy | None = None, shard=None, **plan):
    facts = {name: plan.pop(name) for name in ("as_of", "selection") if name in plan}
    made = finished(folder, *results, planned=planned, policy=policy or Policy(), shard=shard, plan=plan, **facts)
    return list(results), made


def compared(folder: Path, results, summary, policy: Policy | None = None):
    return compare_with_baseline(new_run(folder, results, summary, policy or Policy()), folder / "old")


def new_run(folder: Path, results, summary, policy: Policy) -> Run:
    judged = msgspec.structs.replace(summary, policy=recorded_policy(policy))
    return Run(results, judged, plan_of(folder / "new"), folder / "new")


def test_runs_are_compared_by_golden_reader_and_platform(tmp_path):
    a, b, c, d = (result(case=f"t.{name}") for name in "abcd")
    run(tmp_path / "old", a, failed(case="t.b"), c)
    other_reader = result(case="t.a", reader="0.11.0")
    found = compared(tmp_path, *run(tmp_path / "new", failed(case="t.a"), b, other_reader, d))
    assert {(each.result.golden, each.result.reader.jaxlib): str(each.change) for each in found.cells} == {
        ("t.a/0.9.2-cpu", "0.10.2"): "regressed",
        ("t.b/0.9.2-cpu", "0.10.2"): "fixed",
        ("t.a/0.9.2-cpu", "0.11.0"): "new",
        ("t.d/0.9.2-cpu", "0.10.2"): "new",
        ("t.c/0.9.2-cpu", "0.10.2"): "gone",
    }
    assert found.counts == {"regressed": 1, "fixed": 1, "new": 2, "gone": 1, "changed": 0, "unchanged": 0}
    assert found.caveats == []


def test_two_runs_of_the_same_plan_have_no_caveats(tmp_path):
    run(tmp_path / "old", KEPT)
    found = compared(tmp_path, *run(tmp_path / "new", KEPT))
    assert (found.caveats, found.counts["unchanged"]) == ([], 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ({"planned": 3}, {}, "the baseline is incomplete: 2 of 3 planned cells have no result that counts"),
        ({}, {"planned": 2}, "this run is incomplete: 1 of 2"),
        ({"shard": Shard(1, 2)}, {}, "the baseline is only shard 1/2 of its plan"),
        ({"goldens": {KEPT.golden: "x"}}, {}, f"1 golden changed between the runs, such as {KEPT.golden}"),
        ({"as_of": day("2026-10-01")}, {}, "the baseline was planned otherwise: as of 2026-10-01, now 2026-11-21"),
        ({"tool": "0.9"}, {}, "the baseline was made by another version of pytest-jaxexport: 0.9, now "),
        (
            {"selection": {"whole": True, "readers": "all"}},
            {"selection": {"whole": True, "readers": "window"}},
            "readers all, now window",
        ),
        (
            {"selection": {"whole": False, "writers": ["0.9.2", "0.11.0"]}},
            {"selection": {"whole": False, "writers": []}},
            "writers 0.9.2, 0.11.0, now all",
        ),
        (
            {"selection": {"whole": False, "only": "promised"}},
            {"selection": {"whole": False}},
            "the baseline was planned otherwise: only promised, now none",
        ),
        ({"selection": {"whole": False}}, {"selection": {"whole": True}}, ": the run partial, now whole"),
        ({"limits": {"timeout": 1.0}}, {"limits": {"timeout": 2.0}}, "timeout 1.0, now 2.0"),
    ],
)
def test_each_difference_between_plans_is_a_caveat(old, new, message, tmp_path):
    run(tmp_path / "old", KEPT, **old)
    found = compared(tmp_path, *run(tmp_path / "new", KEPT, **new))
    assert len(found.caveats) == 1
    assert message in found.caveats[0]


def test_cells_of_a_changed_golden_are_marked(tmp_path):
    other = result(case="t.other")
    run(tmp_path / "old", KEPT, other, goldens={KEPT.golden: "x", other.golden: "hash"})
    found = compared(tmp_path, *run(tmp_path / "new", KEPT, other))
    assert [each.other_golden for each in found.cells] == [True, False]


def test_the_baseline_is_judged_by_the_new_runs_policy(tmp_path):
    crash = failed(message="signal 11")
    entry = KnownFailure(
        ("*",), ("*",), ("*",), "crash", "run", "signal 11", "r", "o", "i", day("2026-10-01"), expires=day("2026-12-01")
    )
    known = msgspec.structs.replace(crash, judgement=Judgement.KNOWN)
    run(tmp_path / "old", known, policy=Policy(known_failures=(entry,)))
    found = compared(tmp_path, *run(tmp_path / "new", crash))
    assert found.counts["unchanged"] == 1, "nothing about the cell has changed"
    assert found.caveats == [
        "another policy (known_failures): the baseline is judged by the policy of this run, which changes 1 judgement"
    ]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda old: (old / "summary.json").unlink(), "found a run that has not finished"),
        (lambda old: (old / "results.jsonl").write_bytes(b""), "for each of 1 planned cells, found none"),
        (lambda old: (old / PLAN).unlink(), "plan.json: expected the plan of a matrix run, found none"),
        (lambda old: (old / "results.jsonl").write_bytes(b"{}\n"), "results.jsonl:1: not a result"),
        (lambda old: (old / "results.jsonl").unlink(), "expected the results of a matrix run, found none"),
    ],
)
def test_a_damaged_or_unfinished_baseline_is_refused(damage, message, tmp_path):
    run(tmp_path / "old", KEPT)
    damage(tmp_path / "old")
    with pytest.raises(RunError, match=message):
        compared(tmp_path, *run(tmp_path / "new", KEPT))


def test_empty_duplicate_and_identical_baselines_are_refused(tmp_path):
    new = run(tmp_path / "new", KEPT)
    with pytest.raises(RunError, match="expected an earlier run, found the one that is judged"):
        compare_with_baseline(new_run(tmp_path, *new, Policy()), tmp_path / "old" / ".." / "new")
    run(tmp_path / "old", planned=0)
    with pytest.raises(RunError, match="Nothing was planned"):
        compared(tmp_path, *new)
    run(tmp_path / "twice", KEPT, KEPT)
    with pytest.raises(RunError, match=r"--baseline: .*expected one result for each of 1 planned cells, found more"):
        compare_with_baseline(new_run(tmp_path, *new, Policy()), tmp_path / "twice")


def test_runs_without_a_common_cell_are_refused(tmp_path):
    run(tmp_path / "old", result(case="t.other"))
    with pytest.raises(RunError, match=r"expected at least one cell that .*new also has, found none"):
        compared(tmp_path, *run(tmp_path / "new", KEPT))

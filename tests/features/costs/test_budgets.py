"""What a call may cost: which promised cells are over-budget, by which line of the policy."""

from pathlib import Path

import msgspec
import pytest
from making import document, golden, result, summarize

from export_core.features.costs.over_budget import unmeasured, with_budgets
from export_core.features.costs.policy_key import BUDGETS, FIGURES, Budget
from export_core.judge import Judgement, Result
from export_core.judge.unmatched import unmatched_patterns
from export_core.matrix import Verdict
from export_core.policy import Policy, PolicyError, load_policy
from export_core.readers.worker.protocol import Cost, Timings
from export_core.releases import load_calendar

OWN = result(reader="0.9.2", cost=Cost(temp_bytes=84_000_000, flops=1e6))
TWICE = result(cost=Cost(temp_bytes=168_000_000, flops=1e6))


def judged(budget: Budget, *results: Result, baseline: Result | None = None) -> list[Result]:
    return with_budgets(results, Policy(budgets=(budget,)), {baseline.key: baseline} if baseline else None)


def judgements(budget: Budget, *results: Result) -> list[str]:
    return [str(result.judgement) for result in judged(budget, *results)]


def summary(policy, *results):
    return summarize(results, policy=policy)


def test_each_figure_of_a_cost_has_a_limit():
    assert Cost.__struct_fields__ == FIGURES


@pytest.mark.parametrize(("limit", "judgement"), [(167_999_999, "over-budget"), (168_000_000, "kept")])
def test_a_cell_over_a_limit_is_over_budget(limit, judgement):
    assert judgements(Budget(max_temp_bytes=limit), TWICE) == [judgement]


@pytest.mark.parametrize(("growth", "judgement"), [(1.99, "over-budget"), (2.0, "kept"), ({"flops": 1.0}, "kept")])
def test_growth_is_that_since_the_writers_own_cell(growth, judgement):
    assert judgements(Budget(max_growth=growth), OWN, TWICE) == ["kept", judgement]


def test_a_few_bytes_more_are_no_growth():
    small = [result(reader=reader, cost=Cost(temp_bytes=size)) for reader, size in (("0.9.2", 0), ("0.10.2", 1023))]
    assert judgements(Budget(max_growth=1.0), *small) == ["kept", "kept"]


def test_growth_against_a_baseline_is_that_of_the_same_cell():
    (cell,) = judged(Budget(max_growth=1.5), TWICE, baseline=result(cost=Cost(temp_bytes=84_000_000)))
    assert [(part.whose, part.against) for part in cell.exceeded] == [("baseline", 84_000_000)]


@pytest.mark.parametrize(
    ("budget", "over_budget"),
    [
        (Budget(cases=("tests.*",), max_flops=1), True),
        (Budget(cases=("other.*",), max_flops=1), False),
        (Budget(writers=("0.9.*",), max_flops=1), True),
        (Budget(writers=("0.10.*",), max_flops=1), False),
        (Budget(readers=("0.10.2",), max_flops=1), True),
        (Budget(readers=("0.9.2",), max_flops=1), False),
        (Budget(platforms=("cuda",), max_flops=1), False),
    ],
)
def test_an_entry_is_about_the_cells_of_its_globs(budget, over_budget):
    assert judgements(budget, TWICE) == ["over-budget" if over_budget else "kept"]


def test_of_each_limit_the_first_entry_counts():
    first = Budget(cases=("tests.*",), max_temp_bytes=200_000_000)
    (cell,) = with_budgets([TWICE], Policy(budgets=(first, Budget(max_temp_bytes=1, max_flops=1))))
    assert [part.limit for part in cell.exceeded] == ["max_flops"]


@pytest.mark.parametrize(
    "cell",
    [
        result(judgement=Judgement.BONUS, promised=False, cost=Cost(flops=9)),
        result(Verdict.CONVERTED, Judgement.BONUS, cost=Cost(flops=9)),
        result(Verdict.CRASH, Judgement.BROKEN, cost=Cost(flops=9)),
        result(Verdict.CRASH, Judgement.KNOWN, cost=Cost(flops=9)),
    ],
    ids=lambda cell: f"{cell.verdict} {cell.judgement}",
)
def test_only_kept_cells_are_over_budget(cell):
    """Whether they exceed the budget or not."""
    assert judged(Budget(max_flops=1), cell) == [cell]
    assert judged(Budget(max_flops=10), cell) == [cell]


def test_an_over_budget_cell_fails_the_run_and_says_why():
    policy = Policy(budgets=(Budget(max_growth=1.2, location="/home/me/export_compat.yaml:3"),))
    cells = with_budgets([OWN, TWICE], policy)
    made = summary(policy, *cells)
    assert made.exit_code == 1
    (over,) = [finding for finding in document(cells, made).findings if finding.title == "OVER BUDGET"]
    assert over.sentence == (
        "1 cell over max_growth (export_compat.yaml:3): tests.test_a.test_f/0.9.2-cpu in jaxlib 0.10.2: temp_bytes "
        "168,000,000, more than 100,800,000, which is 1.2 times the 84,000,000 of its writer."
    )


def test_what_could_not_be_measured_is_counted():
    policy = Policy(budgets=(Budget(max_growth={"flops": 1.2}, max_fusions=3, location="p.yaml:3"),))
    bonus = result(case="t.bonus", judgement=Judgement.BONUS, promised=False)
    crash = result(Verdict.CRASH, Judgement.BROKEN, case="t.crash")
    assert unmeasured([TWICE, bonus, crash], policy) == [
        "p.yaml:3: max_fusions: 1 promised cell not measured: no fusions is known of them.",
        "p.yaml:3: max_growth: 1 promised cell not measured: no flops is known of their goldens' own writers.",
    ]


def test_only_growth_needs_the_figure_of_the_writer():
    absolute, growth = Budget(max_flops=1e9), Budget(max_growth={"flops": 1.2})
    assert not unmeasured([TWICE], Policy(budgets=(absolute,)))
    assert not unmeasured([OWN, TWICE], Policy(budgets=(growth,)))
    assert unmeasured([TWICE], Policy(budgets=(growth,)))
    assert judgements(Budget(max_growth=1.2), TWICE) == ["kept"], "its writer's figure is not known"


def repeated(reader: str, first: float, count: int = 10) -> Result:
    runs = tuple(first + number / 1e4 for number in range(count))
    return result(reader=reader, cost=Cost(), timings=Timings(runs=runs))


@pytest.mark.parametrize(
    ("before", "after", "titles"),
    [
        (repeated("0.9.2", 0.010), repeated("0.10.2", 0.030), ["SLOWER"]),
        (repeated("0.9.2", 0.010), repeated("0.10.2", 0.014), []),
        (repeated("0.9.2", 0.030), repeated("0.10.2", 0.010), []),
        (repeated("0.9.2", 0.010), repeated("0.10.2", 0.030, count=4), ["NOT MEASURED"]),
    ],
    ids=["three times", "within the limit", "faster", "too few runs"],
)
def test_a_slower_cell_is_a_warning_and_nothing_more(before, after, titles):
    policy = Policy(budgets=(Budget(warn_slower=1.5),))
    made = summary(policy, before, after)
    assert [finding.title for finding in document([before, after], made).findings] == titles
    assert made.exit_code == 0


def test_runs_that_overlap_are_not_called_slower():
    noisy = result(timings=Timings(runs=(0.001, 0.002, 0.031, 0.032, 0.033)))
    policy = Policy(budgets=(Budget(warn_slower=1.5),))
    before = repeated("0.9.2", 0.010, count=5)
    assert document([before, noisy], summary(policy, before, noisy)).findings == []


@pytest.fixture
def load(tmp_path):
    def load(text: str) -> Policy:
        (tmp_path / "export_compat.yaml").write_text(text)
        return load_policy(tmp_path / "export_compat.yaml")

    return load


def test_every_limit_can_be_in_a_policy_and_is_kept_in_summary_json(load):
    policy = load((Path(__file__).parent / "policy.yaml").read_text())
    assert [budget.location.rpartition(":")[2] for budget in BUDGETS.of(policy)] == ["2", "16", "18"]
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(policy)), Policy) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budgets:\n  - cases: [a]", ":2: budgets[0]: expected at least one limit, found none. There are"),
        ("budgets:\n  - max_temp: 1", ":2: budgets[0].max_temp: unknown key. Did you mean `max_temp_bytes`?"),
        ("budgets:\n  - max_flops: -1", ":2: budgets[0].max_flops: expected a finite number of 0 or more, found -1."),
        ("budgets:\n  - max_growth: 0.9", ":2: budgets[0].max_growth: expected a finite number of 1 or more"),
        ("budgets:\n  - max_growth: {flop: 2}", ":2: budgets[0].max_growth.flop: expected some of temp_bytes"),
        ("budgets:\n  - {max_flops: 1, platforms: [gpu]}", ":2: budgets[0].platforms[0]: expected one of cpu, cuda"),
    ],
)  # fmt: skip
def test_what_a_budget_may_not_say_is_one_line_with_its_place(load, text, message):
    with pytest.raises(PolicyError) as error:
        load(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pattern_of_a_budget_that_matches_nothing_is_told(load):
    def warnings(text: str) -> list[str]:
        found = unmatched_patterns(load(text), [golden("t.a"), golden("t.b", "0.9.2")], load_calendar())
        return [unmatched.text.rpartition(".yaml")[2] for unmatched in found]

    assert warnings("budgets: [{cases: [t.z], max_flops: 1}]") == [":1: budgets[0]: cases: 't.z' matches no golden."]
    assert warnings("budgets: [{platforms: [rocm], max_flops: 1}]") == [
        ":1: budgets[0]: platforms: 'rocm' matches no golden."
    ]
    assert warnings("budgets: [{max_growth: 1.2}]") == []

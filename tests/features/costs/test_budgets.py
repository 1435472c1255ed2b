"""Budgets: which cells are over-budget, by which line of the policy, and how reports say so."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browsing import expect
from commands import finished
from making import day, document, golden, of_runtime, result, run_of, summarize

from export_core.features.costs.exceeded import EXCEEDED
from export_core.features.costs.findings import newest_costs, row_line
from export_core.features.costs.over_budget import unmeasured, with_budgets
from export_core.features.costs.policy_key import BUDGETS, FIGURES, Budget
from export_core.judge import Judgement, Result, Summary
from export_core.judge.unmatched import unmatched_patterns
from export_core.matrix import Verdict
from export_core.policy import Policy, PolicyError
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Cost, Timings
from export_core.releases import load_calendar
from export_core.report.badge import badge
from export_core.report.page import html_page
from export_core.report.wording import cell_mark, headline
from export_core.run.merge import merge_shards
from export_core.run.plan_record import cells_by_place, hash_of

OWN = result(reader="0.9.2", cost=Cost(temp_bytes=84_000_000, flops=1e6))
TWICE = result(cost=Cost(temp_bytes=168_000_000, flops=1e6))


def judged(budget: Budget, *results: Result, baseline: Result | None = None) -> list[Result]:
    return with_budgets(results, Policy(budgets=(budget,)), {baseline.key: baseline} if baseline else None)


def judgements(budget: Budget, *results: Result) -> list[str]:
    return [str(result.judgement) for result in judged(budget, *results)]


def summary(policy, *results):
    return summarize(results, policy=policy)


def test_a_budget_can_limit_each_field_of_a_cost():
    assert Cost.__struct_fields__ == FIGURES


@pytest.mark.parametrize(("limit", "judgement"), [(167_999_999, "over-budget"), (168_000_000, "kept")])
def test_a_cell_over_a_limit_is_over_budget(limit, judgement):
    assert judgements(Budget(max_temp_bytes=limit), TWICE) == [judgement]


@pytest.mark.parametrize(("growth", "judgement"), [(1.99, "over-budget"), (2.0, "kept"), ({"flops": 1.0}, "kept")])
def test_growth_is_measured_from_the_cell_in_the_goldens_writer(growth, judgement):
    assert judgements(Budget(max_growth=growth), OWN, TWICE) == ["kept", judgement]


def test_a_few_bytes_more_do_not_count_as_growth():
    small = [result(reader=reader, cost=Cost(temp_bytes=size)) for reader, size in (("0.9.2", 0), ("0.10.2", 1023))]
    assert judgements(Budget(max_growth=1.0), *small) == ["kept", "kept"]


def test_growth_is_measured_from_the_same_cell_of_a_baseline():
    (cell,) = judged(Budget(max_growth=1.5), TWICE, baseline=result(cost=Cost(temp_bytes=84_000_000)))
    assert [(part.whose, part.against) for part in EXCEEDED.of(cell.facts)] == [("baseline", 84_000_000)]


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
def test_a_budget_applies_to_the_cells_that_its_globs_match(budget, over_budget):
    assert judgements(budget, TWICE) == ["over-budget" if over_budget else "kept"]


def test_the_first_matching_entry_sets_each_limit():
    first = Budget(cases=("tests.*",), max_temp_bytes=200_000_000)
    (cell,) = with_budgets([TWICE], Policy(budgets=(first, Budget(max_temp_bytes=1, max_flops=1))))
    assert [part.limit for part in EXCEEDED.of(cell.facts)] == ["max_flops"]


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
def test_only_a_kept_cell_can_become_over_budget(cell):
    """Other judgements stay, whether the cell exceeds the budget or not."""
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


BEGAN = "`jaxexport report --trend cost` shows in which release it began. Then change the program or the budget."
NONE_BEGAN = (
    "The writer's release exceeds it too, and so does every other that was measured: none of them began it. Change the "
    "program or the budget."
)


@pytest.mark.parametrize(
    ("limit", "cells", "to_do"),
    [
        (1_000_000, [OWN, TWICE], NONE_BEGAN),
        (1_000_000, [OWN], NONE_BEGAN),
        (100_000_000, [OWN, TWICE], BEGAN),
        (1_000_000, [TWICE], BEGAN),
        (1_000_000, [OWN, TWICE, result(case="tests.test_b", cost=TWICE.cost)], BEGAN),
        (
            1_000_000,
            [OWN, TWICE, result(reader="0.8.3", judgement=Judgement.BONUS, promised=False, cost=Cost(temp_bytes=9))],
            BEGAN,
        ),
    ],
    ids=["every release", "the writer's only", "a later release", "no writer", "another golden", "an older release"],
)
def test_no_release_is_blamed_for_a_cost_that_all_releases_exceed(limit, cells, to_do):
    policy = Policy(budgets=(Budget(max_temp_bytes=limit),))
    judged = with_budgets(cells, policy)
    (over,) = [one for one in document(judged, summary(policy, *judged)).findings if one.title == "OVER BUDGET"]
    assert dict(over.details)["to do"] == to_do


def test_promised_cells_without_a_cost_are_counted_for_each_limit():
    policy = Policy(budgets=(Budget(max_growth={"flops": 1.2}, max_fusions=3, location="p.yaml:3"),))
    bonus = result(case="t.bonus", judgement=Judgement.BONUS, promised=False)
    crash = result(Verdict.CRASH, Judgement.BROKEN, case="t.crash")
    assert unmeasured([TWICE, bonus, crash], policy) == [
        "p.yaml:3: max_fusions: 1 promised cell not measured: the compiler reports no fusions of them.",
        "p.yaml:3: max_growth: 1 promised cell not measured: no flops in the releases of their goldens' writers.",
    ]


def test_budgets_do_not_apply_to_other_runtimes():
    policy = Policy(budgets=(Budget(max_flops=1.0),))
    silent = result(reader="0.10.2")
    assert len(unmeasured([silent], policy)) == 1
    assert unmeasured([of_runtime(silent, "tensorflow==2.21.0", "2026-06-20")], policy) == []


def test_only_a_limit_of_growth_needs_the_cost_in_the_goldens_writer():
    absolute, growth = Budget(max_flops=1e9), Budget(max_growth={"flops": 1.2})
    assert not unmeasured([TWICE], Policy(budgets=(absolute,)))
    assert not unmeasured([OWN, TWICE], Policy(budgets=(growth,)))
    assert unmeasured([TWICE], Policy(budgets=(growth,)))
    assert judgements(Budget(max_growth=1.2), TWICE) == ["kept"], "its writer's figure is not known"


def test_every_limit_loads_and_survives_a_json_round_trip(load):
    policy = load((Path(__file__).parent / "policy.yaml").read_text())
    assert [budget.location.rpartition(":")[2] for budget in BUDGETS.of(policy)] == ["2", "16", "17"]
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(policy)), Policy) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budgets:\n  - cases: [a]", ":2: budgets[0]: expected at least one limit, found none. There are"),
        ("budgets:\n  - max_temp: 1", ":2: budgets[0].max_temp: unknown key. Did you mean `max_temp_bytes`?"),
        ("budgets:\n  - max_flops: -1", ":2: budgets[0].max_flops: expected a finite number of 0 or more, found -1."),
        ("budgets:\n  - max_growth: 0.9", ":2: budgets[0].max_growth: expected a finite number of 1 or more"),
        ("budgets:\n  - max_growth: {flop: 2}", ":2: budgets[0].max_growth.flop: expected some of temp_bytes"),
        (
            "budgets:\n  - {max_flops: 1, readers: [tensorflow==2.21.0]}",
            ":2: budgets[0].readers[0]: expected a jaxlib version or a glob of them, found 'tensorflow==2.21.0': other "
            "runtimes report no costs, and no budget applies to them.",
        ),
        ("budgets:\n  - {max_flops: 1, platforms: [gpu]}", ":2: budgets[0].platforms[0]: expected one of cpu, cuda"),
    ],
)
def test_a_wrong_budget_is_an_error_of_one_line_with_its_location(load, text, message):
    with pytest.raises(PolicyError) as error:
        load(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_budget_pattern_that_matches_nothing_is_reported(load):
    def warnings(text: str) -> list[str]:
        found = unmatched_patterns(load(text), [golden("t.a"), golden("t.b", "0.9.2")], load_calendar())
        return [unmatched.text.rpartition(".yaml")[2] for unmatched in found]

    assert warnings("budgets: [{cases: [t.z], max_flops: 1}]") == [
        ":1: budgets[0]: cases: 't.z' matches no golden. Did you mean 't.b'?"
    ]
    assert warnings("budgets: [{platforms: [rocm], max_flops: 1}]") == [
        ":1: budgets[0]: platforms: 'rocm' matches no golden."
    ]
    assert warnings("budgets: [{max_growth: 1.2}]") == []


# --- reports ----------------------------------------------------------------------------------------------------------


POLICY = Policy(budgets=(Budget(max_growth=1.2, location="export_compat.yaml:3"),))


def read(reader: str, size: int, **changes: Any) -> Result:
    return result(reader=reader, cost=Cost(temp_bytes=size, instructions=size), **changes)


CELLS = with_budgets([read("0.9.2", 84_000_000), read("0.10.0", 84_000_000), read("0.10.2", 168_000_000)], POLICY)


@pytest.fixture(scope="module")
def over_budget() -> Summary:
    return summarize(CELLS, policy=POLICY, as_of=day("2026-06-21"))


def test_the_headline_and_the_badge_say_over_budget(over_budget):
    assert headline(over_budget)[0] == "OVER-BUDGET: 1 of 3 promised cells over a budget."
    assert badge(over_budget)["message"] == "over-budget: 1 of 3 promised cells over a budget"


def test_the_headline_does_not_call_unpromised_cells_promised():
    cells = [*CELLS, read("0.12.0.1", 1, judgement=Judgement.OVER_BUDGET, promised=False)]
    assert headline(summarize(cells, policy=POLICY))[0].startswith("OVER-BUDGET: 2 cells over a budget")


def test_tables_mark_cells_over_budget():
    assert [cell_mark(cell) for cell in CELLS] == ["ok", "ok", "ok$"]


LIMIT = "temp_bytes 168,000,000, more than 100,800,000, which is 1.2 times the 84,000,000 of its writer"


def test_the_page_draws_a_line_only_for_a_cost_that_changes():
    assert row_line(CELLS) == ("temp_bytes 84.0 MB -> 168.0 MB (x2.00) in 0.10.2", (84e6, 84e6, 168e6))
    assert row_line(CELLS[:2]) is None


def test_a_card_on_the_page_names_the_exceeded_budget(over_budget):
    page = html_page(document(CELLS, over_budget))
    data = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)[0])
    facts = [more["facts"] for more in data["tables"]["more"] if more["facts"]]
    assert facts == [[["budgets", f"{LIMIT} (max_growth, export_compat.yaml:3)"]]]
    (card,) = re.findall('<article id="cause=finding-0=over-budget" [^>]*class="card">.*?</article>', page, re.S)
    assert '<b class="count over-budget">1</b><span><span class="title">Over a budget in test_f</span>' in card
    assert f"test_f/0.9.2-cpu in jaxlib 0.10.2: {LIMIT}" in card
    assert "<dt>read by</dt><dd>0.10.2</dd>" in card
    assert '<a href="#filter=judgement%3Aover-budget">All over-budget cells in the table</a>' in card
    assert "<b>To do</b> <span><code>jaxexport report --trend cost</code> shows in which release it began." in card
    assert '<li><a href="#cause=finding-0%3Dover-budget"><b class="badge over-budget">1 cell</b>' in page
    assert "<b>OVER BUDGET</b>" not in page, "and no finding below the cards"


def test_growth_over_a_baseline_is_printed_and_fails_the_run(tmp_path, jaxexport):
    finished(tmp_path / "old", read("0.10.2", 84_000_000), policy=POLICY)
    finished(tmp_path / "new", read("0.10.2", 168_000_000), policy=POLICY)
    words = "judge", str(tmp_path / "new"), "--baseline", str(tmp_path / "old")
    ended = jaxexport(*words, code=1)
    assert "cost  2 figures of 1 golden changed, the largest first.\n" in ended.out
    assert "temp_bytes 84.0 MB -> 168.0 MB\n" in ended.out
    assert ended.out.endswith("Exit code 1: 1 cell grew by more than a budget allows.\n")
    printed = json.loads(jaxexport(*words, "--json").out)
    assert [cost["change"]["figure"] for cost in printed["costs"]] == ["temp_bytes", "instructions"]
    assert printed["counts"]["regressed"] == 1


def test_growth_is_measured_across_merged_shards(tmp_path):
    cells = read("0.9.2", 84_000_000), read("0.10.2", 168_000_000)
    plan = {"planned": 2, "cells": hash_of(cells_by_place((cell.key for cell in cells), [cells[0].golden]))}
    for number, cell in enumerate(cells, 1):
        finished(tmp_path / str(number), cell, policy=POLICY, plan=plan, shard=Shard(number, 2))
    merged = merge_shards([tmp_path / "1", tmp_path / "2"])
    assert [cell.judgement for cell in merged.results] == [Judgement.KEPT, Judgement.OVER_BUDGET]
    assert merged.summary.exit_code == 1


@pytest.mark.browser
def test_the_page_draws_costs_and_shows_the_exceeded_budget(opened, over_budget, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(html_page(document(CELLS, over_budget)), encoding="utf-8")
    page = opened(file=file)
    # Half of the height, then all of it.
    assert page.locator(".cost polyline").get_attribute("points") == "2.0,8.0 24.0,8.0 46.0,2.0"
    page.locator("#grid .cell.over-budget").click()
    expect(page.locator("#cell-facts")).to_contain_text("temp_bytes 168,000,000, more than 100,800,000")


def test_the_cost_table_has_each_golden_in_its_newest_measured_reader():
    old = result(reader="0.10.2", cost=Cost(temp_bytes=1), timings=Timings(compile=9.0))
    new = result(reader="0.12.0", cost=Cost(temp_bytes=2000, flops=5e6), timings=Timings(compile=0.25, run=0.5))
    silent = result(reader="0.12.0.1")
    head, *rows = newest_costs(run_of([new, silent, old]))
    assert head.split() == ["cost", "of", "reader", "temp", "accessed", "flops", "instructions", "compile", "run"]
    assert [row.split()[1:] for row in rows] == [
        ["0.12.0", "2.0", "kB", "-", "5.0", "M", "-", "250", "ms", "500", "ms"]
    ]
    assert newest_costs(run_of([silent])) == []

"""A cell that works and costs too much, in every format; and what a page and a baseline show of costs."""

import json
import re
from typing import Any

import pytest
from commands import finished
from making import day, document, result, run_of, summarize

from export_core.features.costs.findings import newest_costs, row_line
from export_core.features.costs.over_budget import with_budgets
from export_core.features.costs.policy_key import Budget
from export_core.judge import Judgement, Result, Summary
from export_core.policy import Policy
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Cost, Timings
from export_core.report.annotations import annotation_commands
from export_core.report.badge import badge
from export_core.report.junit import junit_xml
from export_core.report.markdown import markdown_text
from export_core.report.page import html_page
from export_core.report.wording import cell_mark, headline
from export_core.run.merge import merge_shards
from export_core.run.plan_record import cells_by_place, hash_of

POLICY = Policy(budgets=(Budget(max_growth=1.2, location="export_compat.yaml:3"),))


def read(reader: str, size: int, **changes: Any) -> Result:
    return result(reader=reader, cost=Cost(temp_bytes=size, instructions=size), **changes)


CELLS = with_budgets([read("0.9.2", 84_000_000), read("0.10.0", 84_000_000), read("0.10.2", 168_000_000)], POLICY)


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summarize(CELLS, policy=POLICY, as_of=day("2026-06-21"))


def test_the_headline_and_the_badge_say_over_budget(summary):
    assert headline(summary)[0] == "OVER-BUDGET: 1 of 3 promised cells over a budget."
    assert badge(summary).message == "over-budget: 1 of 3 promised cells over a budget"


def test_tables_mark_it():
    assert [cell_mark(cell) for cell in CELLS] == ["ok", "ok", "ok$"]


LIMIT = "temp_bytes 168,000,000, more than 100,800,000, which is 1.2 times the 84,000,000 of its writer"


@pytest.mark.parametrize(
    ("render", "text"),
    [
        (junit_xml, '<failure type="jaxexport.over-budget" message="over-budget: '),
        (junit_xml, f"{LIMIT} (max_growth, export_compat.yaml:3)"),
        (junit_xml, "to do      `jaxexport trend --cost` shows in which release it began."),
        (markdown_text, "| 0.9.2 | ✅ | 💰 1 |"),
        (markdown_text, "OVER BUDGET: 1 cell over max\\_growth"),
        (annotation_commands, f"message: {LIMIT}"),
        (html_page, "#filter=judgement%3Aover-budget"),
    ],
)
def test_each_medium_has_it_with_the_limit(render, text, summary):
    assert text in render(document(CELLS, summary))


def test_the_page_has_a_line_where_a_figure_changes():
    assert row_line(CELLS) == ("temp_bytes 84.0 MB -> 168.0 MB (x2.00) in 0.10.2", (84e6, 84e6, 168e6))
    assert row_line(CELLS[:2]) is None


def test_the_page_says_which_budget_a_cell_exceeds(summary):
    page = html_page(document(CELLS, summary))
    data = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)[0])
    assert [over for *_, over in data["tables"]["more"] if over] == [f"{LIMIT} (max_growth, export_compat.yaml:3)"]


def test_a_baseline_names_what_changed_and_fails_what_grew(tmp_path, jaxexport):
    finished(tmp_path / "old", read("0.10.2", 84_000_000), policy=POLICY)
    finished(tmp_path / "new", read("0.10.2", 168_000_000), policy=POLICY)
    words = "judge", str(tmp_path / "new"), "--baseline", str(tmp_path / "old")
    ended = jaxexport(*words, code=1)
    assert "cost  2 figures of 1 golden changed, the largest first.\n" in ended.out
    assert "temp_bytes 84.0 MB -> 168.0 MB\n" in ended.out
    assert ended.out.endswith("Exit code 1: 1 cell grew by more than a budget allows.\n")
    told = json.loads(jaxexport(*words, "--json").out)
    assert [cost["change"]["figure"] for cost in told["costs"]] == ["temp_bytes", "instructions"]
    assert told["counts"]["regressed"] == 1


def test_the_writers_own_cell_may_be_in_another_shard(tmp_path):
    cells = read("0.9.2", 84_000_000), read("0.10.2", 168_000_000)
    plan = {"planned": 2, "cells": hash_of(cells_by_place((cell.key for cell in cells), [cells[0].golden]))}
    for number, cell in enumerate(cells, 1):
        finished(tmp_path / str(number), cell, policy=POLICY, plan=plan, shard=Shard(number, 2))
    merged = merge_shards([tmp_path / "1", tmp_path / "2"])
    assert [cell.judgement for cell in merged.results] == [Judgement.KEPT, Judgement.OVER_BUDGET]
    assert merged.summary.exit_code == 1


@pytest.mark.browser
def test_the_table_draws_the_line_and_the_cell_says_the_budget(opened, summary, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(html_page(document(CELLS, summary)), encoding="utf-8")
    page = opened(file=file)
    # Half of the height, then all of it.
    assert page.locator(".cost polyline").get_attribute("points") == "2.0,8.0 24.0,8.0 46.0,2.0"
    page.locator("#grid .cell.over-budget").click()
    assert "temp_bytes 168,000,000, more than 100,800,000" in page.locator("#cell-facts").inner_text()


def test_the_table_of_costs_has_each_golden_in_its_newest_reader():
    old = result(reader="0.10.2", cost=Cost(temp_bytes=1), timings=Timings(compile=9.0))
    new = result(reader="0.12.0", cost=Cost(temp_bytes=2000, flops=5e6), timings=Timings(compile=0.25, run=0.5))
    silent = result(reader="0.12.0.1")
    table = newest_costs(run_of([new, silent, old]))
    head, *rows = table.lines()
    assert head.split() == ["cost", "of", "reader", "temp", "accessed", "flops", "instructions", "compile", "run"]
    assert [row.split()[1:] for row in rows] == [
        ["0.12.0", "2.0", "kB", "-", "5.0", "M", "-", "250", "ms", "500", "ms"]
    ]
    assert newest_costs(run_of([silent])) is None

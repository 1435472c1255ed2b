"""The report of a plan: its cells and counts, and the CI jobs that run it."""

import io
import re
import shlex
from pathlib import Path

import pytest
from making import NEWEST, day, golden
from rich.console import Console

from export_core.goldens import GoldenStore, Options
from export_core.matrix import Plan, Selection, make_plan
from export_core.readers.cached_environments import EnvironmentsCost
from export_core.releases import JaxlibRelease, JaxRelease, Windows, load_calendar
from export_core.report.plan_report import MOST_JOBS, github_jobs, plan_report, print_plan_report

GOLDENS = [golden("t.a", "0.9.2"), golden("t.a", NEWEST), golden("t.b", NEWEST, options=Options(("cpu", "tpu")))]


def plan(calendar=None, **selection) -> Plan:
    chosen = Selection(**{"readers": "0.11.2-jax0.11.2,0.12.0.1", **selection})
    return make_plan(GOLDENS, calendar or load_calendar(), Windows(), chosen, day("2026-11-21"))


def test_each_cell_has_direction_days_and_promise():
    planned = plan_report(plan(), Windows())
    assert (planned.planned, planned.goldens, len(planned.cells)) == (6, 3, 6)
    first = planned.cells[0]
    assert (first.golden, first.reader.jaxlib, first.reader.jax) == ("t.a/0.9.2-cpu", "0.11.2", "0.11.2")
    assert (first.direction, first.days) == ("backward", 183)
    assert (first.promised, first.promised_until) == (False, day("2026-09-14"))


def test_cells_are_counted_by_reader_writer_platform_and_promise():
    planned = plan_report(plan(platforms=("cpu", "tpu")), Windows())
    assert planned.counts == {
        "reader": {"0.11.2-jax0.11.2": 4, "0.12.0.1": 4},
        "writer": {"0.9.2-cpu": 2, "0.12.0.1-cpu": 6},
        "platform": {"cpu": 6, "tpu": 2},
        "direction": {"backward": 2, "forward": 3, "same": 3},
        "promise": {"outside": 5, "promised": 3},
        "forecast": {"not made": 8},
    }


def test_the_printed_plan_lists_and_counts_its_cells():
    out = io.StringIO()
    print_plan_report(Console(file=out, width=160), plan(), Windows())
    lines = out.getvalue().splitlines()
    assert lines[0] == "t.a/0.9.2-cpu  in 0.11.2 with jax 0.11.2 on cpu  backward 183 days  outside"
    assert "by writer: 2 by 0.9.2-cpu, 4 by 0.12.0.1-cpu" in lines
    assert "by direction: 2 backward, 2 forward, 2 same" in lines
    assert "by promise: 4 outside, 2 promised" in lines


@pytest.mark.parametrize(("readers", "is_stated"), [("tensorflow==2.21.0", True), ("0.12.0.1", False)])
def test_the_printed_plan_says_what_a_runtimes_promise_leaves_out(readers, is_stated):
    out = io.StringIO()
    print_plan_report(Console(file=out, width=200), plan(readers=readers), Windows())
    (line,) = (line for line in out.getvalue().splitlines() if line.startswith("by promise: "))
    assert line.endswith(", such as a custom call, is outside") is is_stated


def test_the_printed_plan_explains_a_jaxlib_that_is_two_readers():
    named = "0.12.0-jax0.12.0: the release just before a writer, with the newest jax of that day, for its goldens alone"
    for readers, is_explained in (("window", True), ("0.12.0-jax0.12.0,0.12.0", False)):
        out = io.StringIO()
        print_plan_report(Console(file=out, width=160), plan(readers=readers), Windows())
        assert "0.12.0-jax0.12.0, 0.12.0" in out.getvalue()
        assert (named in out.getvalue().splitlines()) is is_explained


def test_the_printed_plan_has_the_forecast_of_each_cell():
    store = GoldenStore(Path(__file__).parents[2] / "golden")
    _, lapack = store.find("tests.compat.test_linear_algebra.test_cholesky/0.9.2-cpu")
    planned = make_plan([lapack], load_calendar(), Windows(), Selection(readers="0.9.2,0.10.2"), day("2026-11-21"))
    out = io.StringIO()
    print_plan_report(Console(file=out, width=200), planned, Windows())
    first, second, *lines = out.getvalue().splitlines()
    assert first.endswith("  forecast: no: LAPACK calls crash in a fresh process (lapack-cold-process)")
    assert "forecast" not in second
    assert "by forecast: 1 no, 1 yes" in lines


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (EnvironmentsCost(3, 3, 0, 0), "environments already built: 3 of 3"),
        (
            EnvironmentsCost(3, 1, 1060, 280),
            "environments already built: 1 of 3. A run builds the other 2: at most 1.1 GB of disk and 0.3 GB of "
            "downloads. It is less where environments share files, and where uv's cache has packages.",
        ),
        (
            EnvironmentsCost(3, 2, 0, 3365, 1),
            "environments already built: 2 of 3. A run builds the other 1: at most 0.0 GB of disk and 3.4 GB of "
            "downloads. It is less where environments share files, and where uv's cache has packages. The size of 1 "
            "is not known, and not counted.",
        ),
    ],
    ids=["all built", "missing", "of unknown size"],
)
def test_the_cost_of_environments_is_reported_last(cost, expected):
    out = io.StringIO()
    print_plan_report(Console(file=out, width=400), plan(), Windows(), cost)
    assert out.getvalue().splitlines()[-1] == expected


def test_each_job_runs_a_shard_with_the_plans_options():
    jobs = github_jobs(plan(platforms=("cpu", "tpu")), ["--cases", "t.*", "--as-of", "2026-11-21"])["include"]
    assert sorted((job["name"], job["platforms"], job["cells"]) for job in jobs) == [
        ("jaxlib 0.11.2-jax0.11.2 on cpu", "cpu", 3),
        ("jaxlib 0.11.2-jax0.11.2 on tpu", "tpu", 1),
        ("jaxlib 0.12.0.1 on cpu", "cpu", 3),
        ("jaxlib 0.12.0.1 on tpu", "tpu", 1),
    ]
    for number, job in enumerate(jobs, 1):
        words = shlex.split(job["options"])
        assert words == ["--cases", "t.*", "--as-of", "2026-11-21", "--shard", f"{number}/4"]
        assert job["shard"] == number


def test_jobs_share_a_cache_key_if_environments_match():
    def named(**selection):
        return [job["environments"] for job in github_jobs(plan(**selection), [])["include"]]

    first, second = sorted(named())
    assert re.fullmatch(r"0\.11\.2-jax0\.11\.2-[0-9a-f]{12}", first)
    assert named(cases=("t.b",), readers="0.11.2-jax0.11.2") == [first], "not the cells, but the reader decides"
    assert first not in named(platforms=("tpu",)), "on another machine"
    assert second != first


def test_there_are_at_most_256_jobs_and_no_cell_is_lost():
    versions = [f"0.11.{number}" for number in range(100, 400)]
    calendar = load_calendar().extended(
        {version: JaxlibRelease(day("2026-11-01")) for version in versions},
        {"0.13.0": JaxRelease(day("2026-11-01"), "0.11.100")},
    )
    made = plan(calendar, readers=",".join(versions), platforms=("cpu", "tpu"))
    jobs = github_jobs(made, [])["include"]
    assert 3 * 50 <= len(jobs) <= MOST_JOBS
    assert sum(job["cells"] for job in jobs) == len(made.cells) == 4 * len(versions)
    assert {(job["shard"], shlex.split(job["options"])[-1]) for job in jobs} == {
        (number, f"{number}/{len(jobs)}") for number in range(1, len(jobs) + 1)
    }

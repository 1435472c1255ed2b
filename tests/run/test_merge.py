"""Merging of shards: together they are the undivided run, and inconsistent shards are refused."""

import datetime
import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from commands import timeless

from export_core.base.exit_code import ExitCode
from export_core.cli.app import main
from export_core.matrix import cached_replay as local
from export_core.policy.run_options import Shard
from export_core.readers.environment import this_interpreter
from export_core.readers.worker import client
from export_core.report.annotations import annotation_commands
from export_core.report.view import view
from export_core.run.errors import IncompleteResults, RunError
from export_core.run.merge import merge_shards
from export_core.run.plan_record import PLAN, Evidence, recorded_plan
from export_core.run.results import RESULTS, SUMMARY, read_summary, write_summary

CASES = ("waves", "both", "large", "other_numbers", "x64")
COUNT = 3


def jaxexport(*words: str | Path) -> int:
    """Run the command with this interpreter as the reader, and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["jaxexport", *map(str, words)])
        patch.setattr(local.ReaderEnvironments, "build", lambda _, placement: this_interpreter(placement.reader))
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def ran(golden_folder, here, tmp_path_factory, warm_starts) -> Path:
    """A folder with the results of a whole run, and of each shard."""
    folder = tmp_path_factory.mktemp("runs")
    chosen = [word for case in CASES for word in ("--cases", case)]
    shutil.copytree(golden_folder, folder / "golden")
    shutil.rmtree(folder / "golden" / "no_artifact")
    options = [*chosen, "--readers", here.jaxlib, "--no-cache", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(client, "start_process", warm_starts)
        assert jaxexport("matrix", *options, "--results", "whole") == 1
        codes = [
            jaxexport("matrix", *options, "--results", f"{index}", "--shard", f"{index}/{COUNT}")
            for index in range(1, COUNT + 1)
        ]
    assert sorted(codes) == [0, 0, 1], "each shard is judged by its own cells"
    return folder


@pytest.fixture
def shards(ran, tmp_path, monkeypatch) -> list[Path]:
    """Copies of the shards' folders, which the test may change. It runs in the folder of their goldens."""
    monkeypatch.chdir(ran)
    return [Path(shutil.copytree(ran / str(index), tmp_path / str(index))) for index in range(1, COUNT + 1)]


def test_merged_shards_give_the_files_of_the_undivided_run(ran, shards, tmp_path, capsys):
    out = tmp_path / "merged"
    assert jaxexport("judge", *reversed(shards), "--results", out) == 1
    assert timeless(out) == timeless(ran / "whole")
    assert len(timeless(out)[0]) == len(CASES)
    assert len(read_summary(out).unmeasured) == len(CASES)
    assert (out / PLAN).read_bytes() == (ran / "whole" / PLAN).read_bytes()
    assert "BROKEN: 1 of " in capsys.readouterr().out
    assert jaxexport("judge", out) == 1


def test_a_shards_summary_has_its_number_and_its_plan(ran, shards):
    whole = read_summary(ran / "whole")
    for index, folder in enumerate(shards, 1):
        summary = read_summary(folder)
        assert (summary.plan, summary.shard.index, summary.shard.count) == (whole.plan, index, COUNT)
    assert whole.shard is None
    assert sum(read_summary(folder).planned for folder in shards) == whole.planned


@pytest.mark.parametrize("lost", ["folder", SUMMARY])
def test_a_missing_or_killed_shard_makes_a_run_incomplete(shards, tmp_path, capsys, lost):
    if lost == "folder":
        shutil.rmtree(shards[1])
    else:
        (shards[1] / SUMMARY).unlink()
    out = tmp_path / "merged"
    assert jaxexport("judge", *shards, "--results", out) == 3
    assert "INCOMPLETE  1 of 3 shards missing or not finished: --shard 2/3." in capsys.readouterr().out
    lines, summary = timeless(out)
    assert len(lines) == summary["results"] < summary["planned"] == len(CASES)
    assert not summary["selection"]["whole"]
    assert jaxexport("judge", out) == 3
    capsys.readouterr()
    assert jaxexport("judge", out, shards[0], "--results", tmp_path / "again") == 2
    expected = f"{out}: expected one shard of a plan, found joined ones without 2/3. Join all shards anew"
    assert expected in capsys.readouterr().err


def test_judge_names_each_folder_without_a_shard(shards, tmp_path, capsys):
    shutil.rmtree(shards[1])
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    jaxexport("judge", *shards, tmp_path / "file", tmp_path / "empty", "--results", tmp_path / "merged")
    found = {shards[1]: "none", tmp_path / "file": "a file", tmp_path / "empty": "an empty one or other files"}
    expected = [f"warning: {one}: expected the results folder of a shard, found {it}." for one, it in found.items()]
    assert [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")] == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch/*", "found no such folder. Run them, or correct the name or the pattern."),
        ("empty", "found none. Run them."),
    ],
)
def test_judging_no_shard_is_incomplete_and_says_why(name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert jaxexport("judge", name, "--results", "merged") == 3
    expected = f"{name}: expected finished shards of a plan, each with its summary.json, {message}"
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("given", [1, 2, 3])
def test_merging_a_single_shard_names_the_missing_shards(shards, given):
    merged = merge_shards([shards[given - 1]])
    others = [f"{index}/{COUNT}" for index in (1, 2, 3) if index != given]
    assert [*map(str, merged.summary.missing_shards)] == others
    named = (
        f"2 of 3 shards missing or not finished: --shard {', '.join(others)}. Run them, then judge all shards again."
    )
    assert merged.summary.uncovered == [named]
    assert f"::warning title=INCOMPLETE::{named}" in annotation_commands(view(merged))
    assert merged.summary.plan == read_summary(shards[given - 1]).plan


def test_judge_report_and_badge_say_that_one_shard_is_partial(shards, capsys, tmp_path):
    # `judge shards/*` gets only one folder if the others were lost. One of these shards is broken.
    kept_shard = next(folder for folder in shards if not read_summary(folder).exit_code)
    name = str(read_summary(kept_shard).shard)
    others = [f"{index}/{COUNT}" for index in range(1, COUNT + 1) if f"{index}/{COUNT}" != name]
    for words in (["judge", kept_shard], ["judge", "--results", kept_shard]):
        assert jaxexport(*words) == 3
        printed = " ".join(capsys.readouterr().out.split())
        assert f"2 of 3 shards missing or not finished: --shard {', '.join(others)}." in printed
        assert "KEPT" not in printed
    assert jaxexport("report", kept_shard) == 0
    assert f"partial: shard {name}" in " ".join(capsys.readouterr().out.split())
    assert jaxexport("report", kept_shard, "--badge", tmp_path / "badge.json") == 0
    badge = json.loads((tmp_path / "badge.json").read_bytes())
    assert badge["message"].startswith("partial run, kept: ")
    assert badge["color"] == ExitCode.INCOMPLETE.facts.colour


@pytest.mark.parametrize("lost", [0, 1])
def test_a_merge_is_whole_only_with_every_shard(shards, lost):
    for folder in shards:
        selection = {**recorded_plan(folder).selection, "whole": True}
        other(folder, selection=selection)
        write_summary(folder, msgspec.structs.replace(read_summary(folder), selection=selection))
    assert merge_shards(shards[lost:]).summary.selection["whole"] is (lost == 0)


def test_a_shard_with_all_cells_of_its_plan_is_refused(ran, shards):
    whole, shard = read_summary(ran / "whole"), read_summary(shards[0])
    (shards[0] / RESULTS).write_bytes((ran / "whole" / RESULTS).read_bytes())
    plan = msgspec.structs.replace(recorded_plan(shards[0]), own_cells=recorded_plan(ran / "whole").own_cells)
    (shards[0] / PLAN).write_bytes(msgspec.json.encode(plan))
    claimed = msgspec.structs.replace(whole, plan=plan.digest, shard=shard.shard)
    write_summary(shards[0], claimed)
    with pytest.raises(RunError, match="the 5 cells of their plan, found 5 results that do not match these cells"):
        merge_shards(shards[:1])


def test_a_merged_run_lasts_from_first_start_to_last_end(shards):
    days = [datetime.datetime(2026, 5, day, tzinfo=datetime.UTC) for day in (3, 2, 4)]
    for folder, day in zip(shards, days, strict=True):
        summary = read_summary(folder)
        identity = msgspec.structs.replace(summary.identity, machine=f"machine {day:%d}", started=day, ended=day)
        write_summary(folder, msgspec.structs.replace(summary, identity=identity))
    merged = merge_shards(shards).summary.identity
    assert (merged.started, merged.ended) == (days[1], days[2])
    assert merged.machine == "machine 03", "that of the first shard"


def test_a_shard_given_twice_is_refused(shards, tmp_path):
    again = Path(shutil.copytree(shards[1], tmp_path / "again"))
    with pytest.raises(RunError, match=f"overlap: shard 2/3 is given twice, here and in {shards[1]}"):
        merge_shards([*shards, again])


def other(folder: Path, **changes: object) -> None:
    """Change a shard into one of another plan."""
    record = msgspec.structs.replace(recorded_plan(folder), **changes)
    (folder / PLAN).write_bytes(msgspec.json.encode(record))
    write_summary(folder, msgspec.structs.replace(read_summary(folder), plan=record.digest))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"as_of": "2026-01-01"}, "another --as-of: DAY in 1, 2026-01-01 in 2"),
        ({"policy": "0" * 64}, "another policy"),
        ({"calendar": {"newest_jaxlib": "0.12.0.1", "releases": 1, "sha256": "0" * 64}}, "another calendar of release"),
        ({"goldens": {"t.other": "0" * 64}}, "other goldens"),
        ({"cells": "0" * 64}, "other cells"),
        ({"selection": {"readers": "all"}}, "another selection"),
        ({"limits": {"timeout": 5.0, "memory": 0.0}}, "another --timeout, --memory"),
        ({"tool": "0.0.1"}, "another version of pytest-jaxexport"),
        (
            {"evidence": Evidence.of({"commit": "a" * 40})},
            f"another commit of the project: none in 1, {'a' * 40} in 2. Run all",
        ),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_shards_of_different_plans_name_what_differs(shards, changes, what, number):
    day = recorded_plan(shards[0]).as_of
    other(shards[number], **changes)
    what = what.replace("DAY", str(day)).replace(" in 1", f" in {shards[0]}").replace(" in 2", f" in {shards[number]}")
    message = f"{shards[number]}: mixed plans: expected the plan of {shards[0]}, found {what}"
    with pytest.raises(RunError, match=re.escape(message)):
        merge_shards(shards)


def test_shards_of_3_and_of_4_do_not_merge(shards):
    summary = read_summary(shards[2])
    other(shards[2], shard="3/4")
    write_summary(shards[2], msgspec.structs.replace(summary, shard=Shard(3, 4)))
    with pytest.raises(RunError, match=r"mixed plans: .* found another number of shards: 3 in \S+, 4 in \S+\. Run "):
        merge_shards(shards)


def test_results_lost_or_moved_between_shards_are_refused(shards):
    lines = (shards[0] / RESULTS).read_bytes().splitlines(keepends=True)
    (shards[0] / RESULTS).write_bytes(b"".join(lines[1:]))
    with pytest.raises(IncompleteResults, match=rf"expected one result for each of {len(lines)} planned cells"):
        merge_shards(shards)
    others = (shards[1] / RESULTS).read_bytes().splitlines(keepends=True)
    (shards[0] / RESULTS).write_bytes(b"".join([*lines[1:], others[0]]))
    with pytest.raises(RunError, match=r"1/results.jsonl: expected results of cells in plan.json, found also \w+/"):
        merge_shards(shards)


def test_a_shard_changed_by_hand_is_refused(shards):
    file, summary = shards[0] / RESULTS, (shards[0] / SUMMARY).read_text()
    line = file.read_bytes()
    file.write_bytes(line.replace(b'"stage":"compare"', b'"stage":"run"', 1))
    with pytest.raises(RunError, match=r"results.jsonl: expected the file whose SHA-256 is in summary.json"):
        merge_shards(shards)
    file.write_bytes(line)
    (shards[0] / SUMMARY).write_text(summary.replace('"backward": 180', '"backward": 1'))
    with pytest.raises(RunError, match=r"1/summary.json: policy: expected the values in plan.json beside it"):
        merge_shards(shards)


def test_a_consistent_but_forged_shard_is_refused(shards):
    # plan.json, results and summary of one shard are consistent, but have a cell that the whole plan lacks.
    folder = shards[0]
    line = (folder / RESULTS).read_bytes()
    plan, summary = recorded_plan(folder), read_summary(folder)
    (golden,) = {json.loads(one)["golden"] for one in line.splitlines()}
    other_golden = next(name for name in plan.goldens if name != golden)
    (folder / RESULTS).write_bytes(line.replace(golden.encode(), other_golden.encode()))
    number = sorted(plan.goldens).index(other_golden)
    plan = msgspec.structs.replace(plan, own_cells=dict.fromkeys(plan.own_cells, str(number)))
    (folder / PLAN).write_bytes(msgspec.json.encode(plan))
    digest = hashlib.sha256((folder / RESULTS).read_bytes()).hexdigest()
    write_summary(folder, msgspec.structs.replace(summary, results_sha256=digest))
    with pytest.raises(RunError, match="the 5 cells of their plan, found 5 results that do not match these cells"):
        merge_shards(shards)


@pytest.mark.parametrize("numbers", ["0-999999999", "9" * 5000, "-1", "some"])
def test_a_plan_whose_cells_name_unlisted_goldens_is_refused(shards, numbers):
    plan = json.loads((shards[0] / PLAN).read_text())
    plan["own_cells"] = dict.fromkeys(plan["own_cells"], numbers)
    (shards[0] / PLAN).write_text(json.dumps(plan))
    with pytest.raises(RunError, match=r"expected only cells of goldens that plan.json lists"):
        merge_shards(shards)


def test_a_merge_never_overwrites_a_shard(shards, capsys):
    before = timeless(shards[0])
    assert jaxexport("judge", *shards, "--results", shards[0]) == 2
    assert "this is one of the shards, which are never overwritten" in capsys.readouterr().err
    assert timeless(shards[0]) == before

"""The command `jaxexport atlas`: tables of a finished run, and a candidate next to the releases before it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import assert_bad_input, finished
from making import result

from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.worker.protocol import Stage

GOLDENS = Path(__file__).parents[1] / "golden"
CASE = "tests.compat.test_dtypes.test_dtype[bfloat16]"


@pytest.fixture(autouse=True)
def run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    late = {"stage": Stage.DESERIALIZE, "message": "ValueError: too | old \x1b[31m", "promised": False}
    finished(
        tmp_path / ".jaxexport",
        *(result(case="a"), result(case="b")),
        *(result(Verdict.CRASH, Judgement.BROKEN, case="a", reader="0.11.0", stage=Stage.RUN), result(reader="0.11.0")),
        result(Verdict.REFUSED, Judgement.OUTSIDE, case="b", reader="0.12.0", **late),
    )


def test_each_release_has_a_line_as_reader_and_as_writer(jaxexport):
    ended = jaxexport("atlas")
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0].startswith("5 cells of 3 goldens of 3 cases, in 3 readers, as of ")
    assert "0.10.2 2026-06-17 2 100.0 % 100.0 % 0 0 0 0 0" in lines
    assert "0.11.0 2026-07-16 2 50.0 % 50.0 % 0 0 0 0 0" in lines
    assert "0.12.0 2026-10-16 0 - - 1 0 0 0 0" in lines
    assert "0.9.2 2026-03-18 3 1 91 91 0.11.0 (1 crash), 0.12.0 (1 refused)" in lines
    assert "\x1b" not in ended.out


def test_markdown_is_tables_in_which_nothing_is_markup(jaxexport):
    text = jaxexport("atlas", "--markdown").out
    assert "| reader | built | promised | kept |" in text
    assert r"too \| old" in text
    assert all(line.startswith("|") for line in text.splitlines()[2:] if line)


def test_json_has_the_shares(jaxexport):
    told = json.loads(jaxexport("atlas", "--json").out)
    assert [(row["reader"]["jaxlib"], row["share"]) for row in told["readers"]] == [
        *(("0.10.2", 1.0), ("0.11.0", 0.5), ("0.12.0", None)),
    ]


@pytest.mark.parametrize("option", ["--platforms", "--wheels", "--as-of", "--goldens", "--policy", "--index"])
def test_options_of_a_replay_need_a_release(option, jaxexport):
    ended = jaxexport("atlas", option, "2026-10-25")
    assert_bad_input(ended, f"{option} is for --release; the run in .jaxexport has its own.")


@pytest.mark.parametrize("release", ["window", "0.11.0,0.12.0", "x.whl"])
def test_a_release_is_one_version_or_wheel(release, jaxexport):
    ended = jaxexport("atlas", "--release", release)
    assert_bad_input(
        ended, f"--release: expected one jaxlib version such as 0.12.0.1, or a wheel of jaxlib, found {release!r}."
    )
    assert not Path(".jaxexport/scored").exists()


@pytest.mark.matrix
def test_a_release_is_replayed_with_those_before_it(jaxexport):
    shutil.copytree(GOLDENS / CASE, Path("golden") / CASE)
    usual = jaxexport("atlas").out
    ended = jaxexport("atlas", "--release", "0.10.2", "--before", "1", "--json", "--quiet")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert [row["reader"]["jaxlib"] for row in told["readers"]] == ["0.10.1", "0.10.2"]
    assert all(row["promised"] and row["share"] == 1 and not row["outside"] for row in told["readers"])
    assert jaxexport("atlas", ".jaxexport/scored", "--json").out == ended.out
    assert jaxexport("atlas").out == usual, "the run that was there is as it was"

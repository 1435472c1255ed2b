"""Runs on a full disk, which lose no cell, do not end with 0, and can be resumed."""

import json
import re
import sys
from pathlib import Path

import pytest
from disks import NO_ROOM, on_a_small_disk

from export_core.readers.build import cache_folder

SMALL = ("waves", "both", "eigh", "cholesky", "x64")
CASES = (*SMALL, "large")

pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def project(small) -> Path:
    """A project with the goldens of `CASES`, and a cache that has only the user's environments."""
    (small / "cache").mkdir()
    (small / "cache" / "environments").symlink_to(cache_folder() / "environments")
    return small


def script(project: Path, words: str, *, cases: tuple[str, ...] = CASES, environment: str = "") -> str:
    """Return a script that runs a matrix on a small disk, and prints its exit code."""
    chosen = " ".join(f"--cases {case}" for case in cases)
    matrix = f"{sys.executable} -m export_core matrix {chosen} --readers 0.12.0.1 --timeout 60"
    return (
        f"cd {project}\nexport JAXEXPORT_CACHE={project}/cache PYTHONDONTWRITEBYTECODE= {environment}\n"
        f"limited {matrix} {words}; echo exit $?\n"
    )


def verdicts(folder: Path, cases: tuple[str, ...] = CASES) -> dict[str, str]:
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_bytes().splitlines()]
    assert len({line["case"] for line in lines}) == len(lines) == len(cases), "one result for each"
    return {line["case"]: line["verdict"] for line in lines}


SMALL_EXPECTED = dict.fromkeys(SMALL, "pass")


def test_a_full_disk_for_outputs_leaves_one_cell_not_run(project, tmp_path):
    disk = tmp_path / "disk"
    done = on_a_small_disk(
        disk, 100, script(project, f"--results {tmp_path}/r --no-cache", environment=f"TMPDIR={disk}")
    )
    assert "exit 3" in done.stdout, done
    assert verdicts(tmp_path / "r") == {**SMALL_EXPECTED, "large": "not_run"}
    lines = [json.loads(line) for line in (tmp_path / "r" / "results.jsonl").read_bytes().splitlines()]
    (message,) = [line["message"] for line in lines if line["verdict"] == "not_run"]
    assert re.match(
        f"infrastructure: tried twice, and each time NotWrittenError: the outputs could not be written: .*{NO_ROOM}",
        message,
    )


def test_a_run_ended_by_a_full_disk_for_results_can_be_resumed(project, tmp_path):
    disk = tmp_path / "disk"
    first = script(project, f"--results {disk}/r --no-cache", cases=SMALL)
    resume = first.replace("limited", "").replace("--no-cache", "--resume --no-cache")
    again = f"wc -l {disk}/r/results.jsonl; grow\n{resume}"
    done = on_a_small_disk(disk, 12, f"{first}{again}cp -r {disk}/r {tmp_path}/r", of_a_file=4)
    assert re.findall(r"exit (\d+)", done.stdout) == ["3", "0"], done
    error = " ".join(done.stderr.split())
    assert re.search(f"--results {disk}/r: cannot write there: {NO_ROOM}", error), done
    counts = re.search(
        rf"(\d+) of {len(SMALL)} cells have a result, in .*, and (\d+) are left: the same command with --resume", error
    )
    assert counts
    assert int(counts[1]) + int(counts[2]) == len(SMALL)
    assert f"{counts[1]} {disk}/r/results.jsonl" in done.stdout, "whole lines, and those that it printed"
    assert 0 < int(counts[1]) < len(SMALL)
    assert f"{counts[1]} of {len(SMALL)} cells already have a result" in done.stdout
    assert "Traceback" not in done.stderr
    assert verdicts(tmp_path / "r", SMALL) == SMALL_EXPECTED


def test_a_full_disk_for_the_cache_does_not_affect_results(project, tmp_path):
    disk = tmp_path / "disk"
    prepare = f"mkdir -p {disk}/home && ln -s {cache_folder()}/environments {disk}/home/environments\n"
    text = script(project, f"--results {tmp_path}/r", cases=SMALL, environment=f"JAXEXPORT_CACHE={disk}/home")
    done = on_a_small_disk(disk, 12, prepare + text)
    assert "exit 0" in done.stdout, done
    assert re.search(f"outcomes are not cached, and those of earlier runs are not used: .*{NO_ROOM}", done.stdout), done
    assert verdicts(tmp_path / "r", SMALL) == SMALL_EXPECTED


def test_a_full_disk_leaves_no_partial_environment(project, tmp_path):
    disk = tmp_path / "disk"
    text = script(
        project, f"--results {tmp_path}/r --no-cache", environment=f"JAXEXPORT_CACHE={disk}/home UV_LINK_MODE=copy"
    )
    done = on_a_small_disk(disk, 8000, f"{text}find {disk}/home/environments -mindepth 1 -type d | wc -l")
    assert "exit 3" in done.stdout, done
    assert done.stdout.split()[-1] == "0"
    assert set(verdicts(tmp_path / "r").values()) == {"not_run"}
    line = json.loads((tmp_path / "r" / "results.jsonl").read_bytes().splitlines()[0])
    assert line["message"].startswith("infrastructure: tried twice, ")
    assert "It was to install jax==0.12.0.1" in line["message"]

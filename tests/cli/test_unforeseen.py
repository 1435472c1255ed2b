"""Unexpected failures have exit codes that no answer has: errors, a closed pipe, names that are not UTF-8."""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from commands import finished
from making import ARTIFACTS, manifest, result, write_golden

from export_core.base.json_text import safe_json
from export_core.cli import app, entry
from export_core.features.inspect import screen
from export_core.goldens import GoldenStore
from export_core.judge import Judgement
from export_core.matrix import Cell, Verdict
from export_core.matrix.cache_keys import expected_content
from export_core.matrix.cached_replay import FILE, OutcomeCache
from export_core.matrix.result import new_result
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar

MLP = ARTIFACTS / "0.9.2" / "mlp.jaxexport"
UNFORESEEN = 70
NAME = os.fsdecode(b"m\xffd.jaxexport")  # The name of a file that is not UTF-8.


def words_of(command: click.Command, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command below this one."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from words_of(inner, (*before, name))
    else:
        yield before


COMMANDS = list(words_of(app.jaxexport))


@pytest.fixture
def ends(jaxexport, monkeypatch):
    """A function that runs a command whose parser raises the given error."""

    def run(words, error: Exception):
        def fails(self: click.Command, *_: object) -> None:
            raise error

        whole = click.Group.parse_args
        monkeypatch.setattr(click.Command, "parse_args", fails)
        monkeypatch.setattr(click.Group, "parse_args", whole)
        return jaxexport(*words)

    return run


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_impossible_file_name_is_bad_input(ends, words):
    ended = ends(words, OSError(errno.ENAMETOOLONG, "File name too long", "a" * 5000))
    assert (ended.code, "expected a path that a file can have" in ended.err, len(ended.err) < 300) == (2, True, True)


def test_a_symbolic_link_to_itself_is_bad_input(jaxexport, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    ended = jaxexport("convert", str(tmp_path / "loop"), "--for", "0.12.0.1", "-o", str(tmp_path / "out"))
    assert (ended.code, "Traceback" in ended.err) == (2, False)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_unforeseen_error_ends_with_code_70_and_a_traceback(ends, words):
    ended = ends(words, ZeroDivisionError("what nobody \x1b[2J foresaw"))
    assert (ended.code, ended.out) == (UNFORESEEN, "")
    assert "unexpected ZeroDivisionError: there is no result" in ended.err
    assert "Traceback" in ended.err
    assert "\x1b" not in ended.err


def test_an_unforeseen_error_of_inspect_ends_with_70(monkeypatch, capsys):
    def fails(*_: object, **__: object) -> str:
        raise RecursionError("deep")

    monkeypatch.setattr(screen, "inspect_text", fails)
    monkeypatch.setattr(sys, "argv", ["jaxexport", "inspect", str(MLP)])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert (ended.value.code, "unexpected RecursionError" in capsys.readouterr().err) == (UNFORESEEN, True)


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", MLP),
        ("inspect", "--json", MLP),
        ("audit", "--policy", "export_compat.yaml", MLP),
        ("report", "run", "--html", "/dev/stdout"),
        ("report", "run"),
        ("report", "run", "--full"),
        ("judge", "run"),
    ],
    ids=["inspect", "json", "audit", "page", "report", "full report", "judge"],
)
def test_a_closed_pipe_ends_with_code_141(tmp_path, words):
    (tmp_path / "export_compat.yaml").write_text("goldens: golden\n")
    finished(tmp_path / "run", result())
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", "export_core", *words]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")


def test_judge_keeps_its_exit_code_if_its_output_pipe_is_closed(tmp_path):
    finished(tmp_path / "run", result(Verdict.CRASH, Judgement.BROKEN, stage=Stage.RUN))
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", "export_core", "judge", "run"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, b"")


def printing_into(output: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command whose streams a shell redirects, such as by ``>&-``."""
    command = [sys.executable, "-m", "export_core", *map(str, words)]
    shell = ["sh", "-c", f'"$@" {output}', "sh", *command]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "closed", "code"),
    [
        (("inspect", MLP), ">&-", 0),
        (("inspect", MLP), "2>&-", 0),
        (("judge", "run"), ">&-", 1),
        (("judge", "run"), "2>&-", 1),
        (("inspect", "no"), "<&- >&- 2>&-", 2),
    ],
    ids=["inspect, out", "inspect, err", "judge, out", "judge, err", "an error, all"],
)
def test_a_command_with_closed_streams_keeps_its_exit_code(cwd, words, closed, code):
    finished(Path("run"), result(Verdict.ERROR, Judgement.BROKEN))
    done = printing_into(closed, *words)
    assert (done.returncode, done.stderr) == (code, "")
    assert bool(done.stdout) == (closed == "2>&-")


def test_output_for_a_closed_stream_is_not_written_into_a_file(cwd):
    """The next file that is opened would get the descriptor of the closed stream."""
    finished(Path("run"), result())
    assert printing_into(">&- 2>&-", "report", "run", "--svg", "map.svg").returncode == 0
    assert Path("map.svg").read_text().startswith("<svg")


def test_judge_keeps_its_exit_code_if_a_full_disk_loses_its_output(cwd):
    finished(Path("run"), result(Verdict.ERROR, Judgement.BROKEN))
    done = printing_into(">/dev/full", "judge", "run")
    assert done.returncode == 1
    assert done.stderr == (
        "jaxexport: error: cannot write to standard output: No space left on device.\n"
        "The run is judged, and the exit code is its own: 1.\n"
    )


def test_judge_of_a_kept_run_exits_3_if_a_full_disk_loses_its_output(cwd):
    finished(Path("run"), result())
    done = printing_into(">/dev/full", "judge", "run")
    assert done.returncode == 3
    assert done.stderr.endswith("The run is judged and kept: the exit code is 3, not 0, since a report is missing.\n")


@pytest.fixture
def unnamed(cwd) -> Path:
    """A folder with an artifact, and goldens, whose names are not UTF-8."""
    shutil.copy(MLP, NAME)
    Path("export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.10.2}]\n")
    write_golden(GoldenStore(Path(os.fsdecode(b"g\xff"))), manifest("t.a", "0.9.2"))
    return cwd


GOLDENS = ("--goldens", os.fsdecode(b"g\xff"))
EXIT_CODES = {
    ("inspect", NAME, "--json"): 0,
    ("inspect", NAME, NAME, "--json"): 0,
    ("inspect", ".", "--json"): 0,
    ("inspect", NAME): 0,
    ("audit", NAME): 0,
    ("diff", NAME, NAME): 0,
    ("can-i-deploy", NAME, "--to", "serving", "--json"): 3,
    ("can-i-deploy", NAME, "--to", "serving"): 3,
    ("can-i-deploy", "t.a", "--to", "serving", "--json", *GOLDENS): 3,
    ("goldens", "list", *GOLDENS): 0,
    ("inspect", "t.a", *GOLDENS): 0,
    ("goldens", "verify", *GOLDENS): 0,
    ("matrix", "--dry-run", *GOLDENS, "--readers", "0.10.2"): 0,
    ("matrix", "--dry-run", *GOLDENS, "--readers", "0.10.2", "--json"): 0,
    ("forecast", *GOLDENS, "--json"): 0,
    ("goldens", "add", "--from", ".", "--dry-run"): 0,
}


@pytest.mark.parametrize("words", EXIT_CODES, ids=lambda words: ascii(" ".join(words)))
def test_every_command_accepts_a_file_name_that_is_not_utf8(jaxexport, unnamed, words):
    ended = jaxexport(*words)
    assert (ended.code, ended.err.replace("left out", "")) == (EXIT_CODES[words], ended.err.replace("left out", ""))
    assert "Traceback" not in ended.err
    if "--json" in words:
        lines = ended.out.splitlines() if words[1:2] == (".",) or words[1:3] == (NAME, NAME) else [ended.out]
        assert [json.loads(line) for line in lines]
        ended.out.encode()
        assert NAME not in json.loads(lines[0]).values()


def test_inspect_with_json_prints_a_file_name_that_is_not_utf8(unnamed):
    command = [sys.executable, "-m", "export_core", "inspect", os.fsencode(NAME), "--json"]
    facts = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    json.dumps(facts, ensure_ascii=False).encode()
    assert facts["file"] == "m\\xffd.jaxexport"


def test_json_output_escapes_only_names_that_are_not_utf8():
    value = {"a": [os.fsdecode(b"\xff"), "\N{GRINNING FACE} \xe9"], os.fsdecode(b"\x80"): "\ud800", "n": 1}
    expected = {"a": ["\\xff", "\N{GRINNING FACE} \xe9"], "\\x80": "\\ud800", "n": 1}
    assert json.loads(safe_json(value)) == expected


def test_results_and_cache_keys_accept_names_that_are_not_utf8():
    line = safe_json(result(Verdict.ERROR, message=NAME))
    assert json.loads(line)["message"] == "m\\xffd.jaxexport"
    assert expected_content(manifest(test=NAME, out_shardings=(NAME,)))


def test_an_outcome_that_cannot_be_cached_ends_in_a_warning_only(tmp_path):
    golden = write_golden(GoldenStore(tmp_path / "golden"), manifest())
    cell = Cell(golden, load_calendar().release("0.12.0.1"), "cpu", Mode.RUN)
    warnings: list[str] = []
    with contextlib.closing(OutcomeCache(tmp_path, warnings.append)) as cache:
        cache.put("name", new_result(cell, Stage.READ, Verdict.ERROR, NAME))
    assert "outcomes are not cached" in warnings[0]
    data = b"\xc1 no row of ours"
    with sqlite3.connect(tmp_path / FILE) as file:
        row = ("broken", hashlib.sha256(b"broken" + data).digest()[:8] + data, 10**6)
        file.execute("INSERT INTO cached_outcomes VALUES (?, ?, ?)", row)
    file.close()
    with contextlib.closing(OutcomeCache(tmp_path, warnings.append)) as cache:
        assert cache.get(["broken"]) == {}
    assert len(warnings) == 1

"""The counts and exit codes of `nox -s forecast_check`, `nox -s reader_check` and `nox -s fuzz`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from stored_artifacts import DATA

from export_core.artifact import ArtifactError, read
from studies.artifact import forecast_check, fuzz, reader_check

GOOD = {(True, True): 5000, (False, False): 3000, (None, True): 3}


@pytest.mark.parametrize(
    ("table", "releases", "code"),
    [
        (GOOD, 22, 0),
        ({**GOOD, (True, False): 1}, 22, 1),
        ({**GOOD, (False, True): 40}, 22, 0),
        ({**GOOD, (False, True): 41}, 22, 1),
        (GOOD, 19, 1),
        ({(True, True): 5000}, 22, 1),
        ({}, 22, 1),
    ],
    ids=["true", "a false loads", "1 in 200", "more", "few releases", "nothing refused", "nothing"],
)
def test_false_or_too_few_forecasts_give_exit_code_1(table, releases, code, capsys):
    assert forecast_check.report(Counter(table), releases, 400, 80, 1.0) == code
    assert f'false "loads": {table.get((True, False), 0)};' in capsys.readouterr().out


def test_releases_to_check_are_spread_evenly_and_have_the_newest():
    versions = [str(number) for number in range(33)]
    found = forecast_check.chosen(versions, 22)
    assert len(set(found)) == 22
    assert found == sorted(found, key=int)
    assert found[-1] == "32"
    assert int(found[0]) <= 1
    assert forecast_check.chosen(versions[:5], 22) == versions[:5]


def test_a_field_that_jax_reads_differently_is_reported():
    path = DATA / "0.12.0.1" / "platforms.jaxexport"
    envelope = read(path).envelope
    assert envelope is not None
    ours = reader_check.fields(envelope) | reader_check.walked(read(path).module)
    assert reader_check.differences(path, [ours])[1] == []
    (wrong,) = reader_check.differences(path, [ours | {"platforms": ["cpu"]}])[1]
    assert wrong.startswith("platforms[0]: ")


def test_the_fuzzer_runs_for_the_given_time_and_prints_figures(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--seconds", "0.3", "--seed", "7"])
    assert fuzz.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("seed 7, ")
    assert ", 0 broke a limit; slowest " in lines[-1]


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        (KeyError("key"), 1),
        (MemoryError(), 1),
        (RecursionError(), 1),
        (ArtifactError("this", "that"), 0),
        (ArtifactError("this", "bytes on which it failed"), 1),
        (None, 0),
    ],
    ids=repr,
)
def test_the_fuzzer_counts_other_errors_and_saves_the_bytes(error, broken, monkeypatch, tmp_path):
    def use(data: bytes) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(fuzz, "use", use)
    watched = fuzz.Watched(tmp_path)
    watched.give(b"some bytes")
    assert (watched.inputs, watched.broken) == (1, broken)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"some bytes"] * broken


def test_the_fuzzer_counts_inputs_that_take_much_time_or_memory(monkeypatch):
    held = []
    monkeypatch.setattr(fuzz, "use", lambda data: None)
    monkeypatch.setattr(fuzz, "asked", lambda data: held.append(bytearray(3 * len(data) + fuzz.CONSTANT + 5000)))
    watched = fuzz.Watched(None)
    watched.weigh(bytes(1000))
    assert watched.broken == 1
    monkeypatch.setattr(fuzz, "MAX_SECONDS", -1.0)
    watched.give(b"")
    assert watched.broken == 2


@pytest.mark.weekly
def test_two_releases_agree_with_the_reader_on_their_artifacts():
    words = [sys.executable, "-m", reader_check.__name__, "--releases", "2"]
    here = {**os.environ, "PYTHONPATH": str(Path(DATA).parent)}
    done = subprocess.run(words, env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

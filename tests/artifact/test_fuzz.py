"""The fuzzer, `nox -s fuzz`: it counts every error that is none of the reader's, and what takes too long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fuzz
import pytest

from export_core.artifact import ArtifactError

HERE = Path(__file__).parent


def test_the_fuzzer_runs_for_the_given_time_and_prints_figures():
    words = [sys.executable, str(HERE / "fuzz.py"), "--seconds", "1", "--seed", "7"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("seed 7, ")
    assert ", 0 broke a limit; slowest " in done.stdout.splitlines()[-1]


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


def test_the_fuzzer_counts_what_takes_too_much_time_or_memory(monkeypatch):
    held = []
    monkeypatch.setattr(fuzz, "use", lambda data: None)
    monkeypatch.setattr(fuzz, "asked", lambda data: held.append(bytearray(3 * len(data) + fuzz.CONSTANT + 5000)))
    watched = fuzz.Watched(None)
    watched.weigh(bytes(1000))
    assert watched.broken == 1
    monkeypatch.setattr(fuzz, "MAX_SECONDS", -1.0)
    watched.give(b"")
    assert watched.broken == 2

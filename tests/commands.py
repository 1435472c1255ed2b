"""How tests run the command `jaxexport`: as a real process, or from its entry point in this one (the fixture of conftest.py)."""

from __future__ import annotations

import datetime
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from making import summarize

from export_core.judge import Result
from export_core.policy import Policy
from export_core.runs.results import result_line, write_summary


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def process(*words: str | Path, **options: Any) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "export_core", *words], capture_output=True, text=True, check=False, **options
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def wait_for(what: Callable[[], object], told: str, seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s for {told}")


def assert_bad_input(ended: Ended, *said: str) -> None:
    assert ended.code == 2, ended
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.startswith("jaxexport: error: ")
    for text in said:
        assert text in ended.err


def finished(folder: Path, *results: Result, planned: int | None = None, **told: Any) -> None:
    """A results folder as a run with these results leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.jsonl").write_bytes(b"".join(result_line(each) + b"\n" for each in results))
    made = summarize(
        results,
        planned=len(results) if planned is None else planned,
        as_of=datetime.date(2026, 11, 21),
        seconds=1,
        **{"selection": {"whole": True}, "policy": Policy(), **told},
    )
    write_summary(folder, made)

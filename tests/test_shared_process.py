"""Workers of pytest-xdist share processes: one of them starts a process, which ends after its last user."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shared_process import shared_process

PROGRAM = """
import os, pathlib, select, sys
pathlib.Path(sys.argv[1]).open("a").write(f"{os.getpid()}\\n")
print("a greeting, and ready", flush=True)
select.select([0], [], [])
pathlib.Path(sys.argv[1]).open("a").write("ended\\n")
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")


def lines(path: Path) -> list[str]:
    return path.read_text().split()


def test_a_process_is_started_once_and_ends_after_its_last_user(tmp_path):
    words, log = ["-ISc", PROGRAM, tmp_path / "log"], tmp_path / "log"
    first, second = (shared_process(tmp_path / "shared", words, os.environ) for _ in range(2))
    with first:
        with second:
            (number,) = lines(log)
        assert lines(log) == [number]
    assert lines(log) == [number, "ended"]
    with shared_process(tmp_path / "shared", words, os.environ):
        (new,) = set(lines(log)) - {number, "ended"}
    assert lines(log) == [number, "ended", new, "ended"]


def test_users_that_start_at_once_share_a_process(tmp_path):
    words, log, using = ["-ISc", PROGRAM, tmp_path / "log"], tmp_path / "log", threading.Barrier(3, timeout=60)

    def use(_: int) -> None:
        using.wait()
        with shared_process(tmp_path / "shared", words, os.environ):
            assert lines(log), "it is ready for each user"
            using.wait()

    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(use, range(3))] == [None] * 3
    number, ended = lines(log)
    assert (number.isdigit(), ended) == (True, "ended")

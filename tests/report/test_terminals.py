"""The end of a run in real terminals: 80 and 140 columns, without colour, in a pipe, and without Unicode."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from commands import finished, written_to
from example_runs import AS_OF, broken_run

from export_core.base.layout import wrapped

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
REPORT = (sys.executable, "-m", "export_core", "report", "out")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which `out` has the results of the broken run."""
    base = tmp_path_factory.mktemp("terminals")
    finished(base / "out", *broken_run()[0], as_of=AS_OF)
    return base


def in_terminal(folder, columns: int, **variables: str) -> str:
    """Return what the report prints in a terminal of this width."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"TERM": "xterm-256color", **variables}
    with subprocess.Popen(REPORT, cwd=folder, stdin=follower, stdout=follower, stderr=follower, env=environment) as run:
        os.close(follower)
        printed = b"".join(written_to(leader))
        run.wait()
    os.close(leader)
    return printed.decode().replace("\r\n", "\n")


def test_lines_fit_a_terminal_and_broken_is_red(folder):
    narrow = in_terminal(folder, 80)
    assert "\x1b[1;31mBROKEN: 67 of 1,350" in narrow
    lines = COLOUR.sub("", narrow).splitlines()
    too_long = [line for line in lines if len(line) > 80]
    assert all(
        re.search(" jaxexport (matrix --cases .* --platforms cpu|explain --case .*)$", line) for line in too_long
    )
    assert len(lines) <= 46


def test_no_color_removes_colours_and_leaves_bold(folder):
    text = in_terminal(folder, 140, NO_COLOR="1")
    assert "\x1b[1mBROKEN: 67 of 1,350" in text
    assert set(COLOUR.findall(text)) <= {"\x1b[1m", "\x1b[0m"}


def test_a_log_in_ascii_has_each_sentence_on_a_line(folder):
    variables = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "40"}
    text = subprocess.run(REPORT, cwd=folder, env=variables, capture_output=True, check=True).stdout.decode()
    assert text.isascii()
    assert not any(sign in text for sign in ("\x1b", "\\u", "\\x"))
    readers = "lapack-cold-process in 0.6.2 to 0.9.2, timeout in 0.12.0.1, numerics in 0.12.0 to 0.12.0.1"
    assert f"\nBROKEN: 67 of 1,350 promised cells, 3 causes.\nReaders affected, by cause: {readers}. 4,692 of " in text


def test_a_wrapped_sentence_does_not_break_a_command():
    command = "`jaxexport convert FILE --for iree==3.13.0 -o OUT`"
    lines = wrapped(f"It is refused there: export it again, or {command} if that helps", 60)
    assert lines[0] == "It is refused there: export it again, or"
    assert any(command in line for line in lines)

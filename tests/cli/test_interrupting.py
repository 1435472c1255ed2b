"""An interrupted run leaves whole results, and neither a process nor a folder; it can be continued."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from commands import finished, wait_for, written_to
from making import result

from export_core.goldens import GoldenStore
from export_core.goldens.store import sha256
from export_core.readers.build import cache_folder

CASES = ("both", "cholesky", "hangs", "other_numbers", "waves")
HANGING = ("both", "cholesky", "hangs", "waves")
"""The cases of a run that does not end by itself."""
BROKEN = ("other_numbers", "waves")
PLANNED = len(HANGING)

pytestmark = pytest.mark.matrix


@pytest.fixture(scope="module")
def small(small) -> Path:
    """The project, in which the case `hangs` sleeps as soon as it starts, so that it takes no processor."""
    store = GoldenStore(small / "golden")
    (golden,) = store.generations("hangs")
    files = {**golden.files(), "sleeps.register.py": b"import time\ntime.sleep(600)\n"}
    options = msgspec.structs.replace(golden.manifest.options, register=("sleeps",))
    hashes = {name: sha256(data) for name, data in files.items()}
    store.write(msgspec.structs.replace(golden.manifest, options=options, files=hashes), files)
    return small


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


class Run:
    """A matrix in a process, with a mark in the environment of each process that it starts, and a scratch folder.

    The mark has the name of a locale, since cells inherit only such variables.
    """

    def __init__(
        self,
        small: Path,
        tmp_path: Path,
        *words: str,
        cases: tuple[str, ...] = HANGING,
        stdout: int = subprocess.PIPE,
        **variables: str,
    ):
        self.results = tmp_path / "results"
        self.scratch = tmp_path / "scratch"
        self.scratch.mkdir(exist_ok=True)
        home = tmp_path / "cache"
        if not home.exists():
            home.mkdir()
            (home / "environments").symlink_to(cache_folder() / "environments")
        self.mark = f"LC_JAXEXPORT_TEST_RUN={tmp_path}".encode()
        chosen = [word for case in cases for word in ("--cases", case)]
        words = (*chosen, "--readers", "0.12.0.1", "--jobs", "2", "--results", str(self.results), *words)
        mark = {"LC_JAXEXPORT_TEST_RUN": str(tmp_path), "JAXEXPORT_CACHE": str(home), "TMPDIR": str(self.scratch)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "export_core", "matrix", *words],
            cwd=small,
            env={**os.environ, **mark, **variables},
            stdin=subprocess.DEVNULL if stdout == subprocess.PIPE else stdout,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def results_so_far(self) -> list[dict[str, object]]:
        file = self.results / "results.jsonl"
        return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []

    def processes(self) -> list[int]:
        """Return the processes that this run has started and that still live."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return [pid for pid in found if pid != self.process.pid]

    def workers(self) -> list[int]:
        """Return the processes that run the Python of a reader's environment; others only look for an interpreter."""
        return [pid for pid in self.processes() if b"/environments/" in command_of(pid)]

    def ended(self) -> tuple[int, str]:
        out, _ = self.process.communicate(timeout=120)
        return self.process.returncode, " ".join(out.split())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_run_cleans_up_and_can_be_resumed(small, tmp_path, number, code):
    limit = ("--timeout", "600")  # longer than `ended` waits, so that no cell ends by its timeout
    run = Run(small, tmp_path, *limit)
    wait_for(lambda: len(run.results_so_far()) == PLANNED - 1, "all cells but the one that hangs")
    assert run.processes()
    run.process.send_signal(number)
    ended, printed = run.ended()
    assert ended == code, printed
    assert "Traceback" not in printed
    again = "press Ctrl-C again to quit at once" if number is signal.SIGINT else "a second SIGTERM quits at once"
    assert f"stopping the running cells; {again}" in printed
    summary = f"Interrupted: {PLANNED - 1} of {PLANNED} cells have a result"
    assert summary in printed
    assert "1 is left: the same command with --resume continues. Nothing was judged." in printed
    assert run.processes() == []
    assert list(run.scratch.iterdir()) == []
    assert not (run.results / "summary.json").exists()
    if number is signal.SIGTERM:
        return
    again = Run(small, tmp_path, *limit, "--resume")
    wait_for(again.workers, "a worker for the cell that is left")
    os.kill(another_thread_of(again.process.pid), signal.SIGINT)  # the system may choose any thread
    ended, printed = again.ended()
    assert ended == 130
    assert f"{PLANNED - 1} of {PLANNED} cells already have a result" in printed
    assert summary in printed


def test_a_second_ctrl_c_ends_the_run_and_its_workers(small, tmp_path):
    run = Run(small, tmp_path)
    wait_for(lambda: len(run.results_so_far()) == PLANNED - 1, "all cells but the one that hangs")
    (worker,) = [pid for pid in run.processes() if parent_of(pid) == run.process.pid]
    os.kill(worker, signal.SIGSTOP)  # it cannot end cleanly
    try:
        run.process.send_signal(signal.SIGINT)
        time.sleep(1)  # longer than a repeated signal counts as one
        assert run.process.poll() is None, "it waits for its worker"
        run.process.send_signal(signal.SIGINT)
        assert run.ended()[0] == 130
        assert state_of(worker) == "T", "it is still stopped: the run neither waited for its end nor killed it"
    finally:
        os.kill(worker, signal.SIGCONT)
    wait_for(lambda: not run.processes(), "the end of all that it started")
    assert len(run.results_so_far()) == PLANNED - 1


def another_thread_of(pid: int) -> int:
    """Return a thread of a process other than its main one: Linux delivers a signal to the thread it is sent to."""
    return next(thread for folder in Path(f"/proc/{pid}/task").iterdir() if (thread := int(folder.name)) != pid)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_ctrl_c_ends_the_build_of_an_environment(small, tmp_path):
    home = tmp_path / "another"
    run = Run(small, tmp_path, JAXEXPORT_CACHE=str(home), UV_LINK_MODE="copy")
    installing, *_ = wait_for(
        lambda: [pid for pid in run.processes() if b"\0install\0" in command_of(pid)], "half an environment"
    )
    os.kill(installing, signal.SIGSTOP)  # else it may be done before anybody is interrupted
    run.process.send_signal(signal.SIGINT)
    code, printed = run.ended()
    left = run.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert code == 130, printed
    assert f"Interrupted: 0 of {PLANNED} cells have a result" in printed
    assert left == []
    assert [path for path in (home / "environments").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("where", ["a full disk", "a pipe that nobody reads"])
def test_a_run_that_cannot_print_still_stores_results(small, tmp_path, where):
    ours, theirs = os.pipe()
    os.close(ours)
    output = os.open("/dev/full", os.O_WRONLY) if where == "a full disk" else theirs
    run = Run(small, tmp_path, cases=BROKEN, stdout=output)
    assert run.process.wait(timeout=120) == 1
    assert len(run.results_so_far()) == len(BROKEN)
    assert (run.results / "summary.json").exists()
    for descriptor in {theirs, output}:
        os.close(descriptor)


@pytest.mark.parametrize("words", ["goldens list", "report", "policy show", "--help"])
def test_output_that_cannot_be_written_is_an_error(small, tmp_path, words):
    command = [sys.executable, "-m", "export_core", *words.split()]
    if words == "report":
        finished(tmp_path / "results", result())
        command.append(str(tmp_path / "results"))
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=small, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "jaxexport: error: cannot write to standard output: No space left on device.\n"


# --- watching it ------------------------------------------------------------------------------------------------------


def on_a_terminal(small: Path, tmp_path: Path, *words: str) -> tuple[Run, str]:
    """Start a run on a real terminal, interrupt it after three results, and return it with all that it printed."""
    ours, theirs = pty.openpty()
    run = Run(small, tmp_path, *words, stdout=theirs, COLUMNS="100", TERM="xterm-256color")
    os.close(theirs)
    printed = b""
    stopped = False
    for part in written_to(ours):
        printed += part
        if not stopped and len(run.results_so_far()) == PLANNED - 1 and b"3/4" in printed:
            stopped = True
            run.process.send_signal(signal.SIGINT)
    os.close(ours)
    run.process.wait(timeout=60)
    return run, printed.decode()


def test_a_terminal_shows_progress_and_regains_its_cursor(small, tmp_path):
    run, printed = on_a_terminal(small, tmp_path)
    assert run.process.returncode == 130
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed)
    assert re.search(r"environments 0/1 · promised done: 0 of 4 ", plain)
    assert re.search(r"promised done: 3 of 4 +\S+ +3/4 +0:00:\d\d", plain), plain
    assert plain.count("\r") > 3, "one line that is written over"
    assert (
        max(len(line) for line in re.split(r"[\r\n]+", plain) if line.startswith(("environments", "promised"))) <= 100
    )
    assert printed.rindex("\x1b[?25h") > printed.rindex("\x1b[?25l"), "the cursor is shown again"
    assert f"Interrupted: 3 of {PLANNED} cells have a result" in " ".join(plain.split())


def test_a_log_has_no_control_codes_and_quiet_prints_only_the_report(small, tmp_path):
    code, printed = Run(small, tmp_path, cases=BROKEN).ended()
    assert code == 1, printed
    assert "\x1b" not in printed
    assert "environment of jaxlib 0.12.0.1 is ready" in printed
    assert "broken: other_numbers/" in printed
    state = r"promised cells done: 2 of 2, 1 cause · environments 1/1 · so far 1 broken"
    progress = rf"\[2/2\] jaxlib 0\.12\.0\.1: 1 numerics, 1 pass · {state}"
    assert re.search(progress, printed), printed
    code, quiet = Run(small, tmp_path, "--no-cache", "--quiet", cases=("both", "waves")).ended()
    assert code == 0, quiet
    assert "is ready" not in quiet
    assert "so far" not in quiet
    assert "; partial: only cases " in quiet

"""Users' own comparators, ``module:function``: imported and called in a process of their own, never in this one.

Whatever such code does (`sys.exit(0)`, a crash, a loop without end) is an error here, and never the end of a run.
"""

import contextlib
import json
import secrets
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from export_core.base.json_text import decode_json
from export_core.base.processes import ask, kill_group, passed_variables, signal_name
from export_core.base.scratch import scratch_folder
from export_core.base.tolerances import problem_of_name
from export_core.goldens.arrays import Leaf, to_npz
from export_core.numbers import CompareError

PROGRAM = Path(__file__).with_name("user_program.py")
START_SECONDS = 120.0  # How long the process may take to import NumPy.
SECONDS = 120.0  # How long the import of a user's module may take, and one comparison.
_LONGEST_ANSWER = 1 << 24
_LATE = "did not answer within"  # How the problem of a process begins that took too long.


class _Answer(msgspec.Struct, frozen=True):
    """The answer of the process that runs users' functions.

    `message` is what a function found wrong, and `problem` is the reason why nothing could be compared.
    """

    id: int
    message: str | None = None
    problem: str = ""


def check_spelling(name: str) -> None:
    """Raise `CompareError` if `name` cannot be the name of a comparator. Nothing is imported."""
    if problem := problem_of_name(name):
        raise CompareError(problem)
    if not all(name.partition(":")) and ":" in name:
        what = "'module:function', such as 'my_package.checks:close_enough'"
        raise CompareError(f"compare={name!r}: expected {what}.")


class UserCode:
    """The process that runs users' functions.

    The first request starts the process, and the next request starts it again if it has died, until `close` is called.
    Its `sys.path` is that of this process with the folder `root` first, since a project's own checks are seldom
    installed. It answers one request at a time, also for several threads, each within `seconds`. It gets the
    environment variables that a cell gets, and thus no token of a CI system. `variables` are the names that the policy
    adds.
    """

    def __init__(self, root: Path | None = None, seconds: float = SECONDS, variables: Iterable[str] = ()) -> None:
        self._root = (root or Path.cwd()).resolve()
        self._variables = tuple(variables)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def check(self, name: str) -> None:
        """Raise `CompareError` if no comparator has this name. A comparator named ``module:function`` is imported."""
        check_spelling(name)
        if ":" in name:
            self._ask(name)

    def compare(self, name: str, expected: Sequence[Leaf], actual: Sequence[Leaf]) -> str | None:
        """Return what a user's function finds wrong with the actual outputs; None if it finds nothing wrong.

        Raises `CompareError` if the function itself fails.
        """
        with scratch_folder() as folder:
            paths = {side: folder / f"{side}.npz" for side in ("expected", "actual")}
            paths["expected"].write_bytes(to_npz(expected))
            paths["actual"].write_bytes(to_npz(actual))
            return self._ask(name, **{side: str(path) for side, path in paths.items()}).message

    def close(self) -> None:
        """End the process. A thread that waits for an answer gets a `CompareError`."""
        self._closed = True
        # Without the lock, which a thread that waits for an answer holds.
        if process := self._process:
            kill_group(process)
        with self._lock:
            self._end()

    def _ask(self, name: str, **files: str) -> _Answer:
        """Return the answer to a request for the comparator `name`; `files` are the paths of the outputs.

        Raises `CompareError` if the answer reports a problem, or if there is no answer.
        """
        with self._lock:
            if self._closed:
                raise CompareError(f"compare={name!r}: the run was stopped. Nothing was compared.")
            if self._process is None:
                self._start()
            answer = self._exchange({"name": name, **files}, self._seconds)
        if isinstance(answer, str):
            raise CompareError(f"compare={name!r}: the process that ran it {answer}. Nothing was compared.")
        if answer.problem:
            raise CompareError(answer.problem)
        return answer

    def _start(self) -> None:
        try:
            self._process = subprocess.Popen(
                # -u: what the user's code prints is seen even if it dies next; on stderr, answers have stdout.
                [sys.executable, "-u", "-P", str(PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=passed_variables(self._variables),
                start_new_session=True,  # Ctrl-C is for the coordinator
            )
        except OSError as error:
            raise CompareError(f"{sys.executable}: cannot start the process of comparators: {error}.") from error
        # Who gives cells more time has a slow machine.
        answer = self._exchange({"path": sys.path, "root": str(self._root)}, max(START_SECONDS, self._seconds))
        if isinstance(answer, str):
            problem = f"{PROGRAM}: the process that runs comparators did not start: it {answer}."
            if answer.startswith(_LATE):
                slow = shlex.join([sys.executable, "-P", "-X", "importtime", "-c", "import numpy"])
                problem += f" `{slow}` shows what takes the time. A longer --timeout of a matrix gives it more."
            raise CompareError(problem)

    def _exchange(self, request: dict[str, object], seconds: float) -> _Answer | str:
        """Send a request line, and return the answer, or a text with what the process did instead of answering.

        If the process did not answer, it is ended.
        """
        assert self._process
        number, started = secrets.randbits(53), time.monotonic()
        line = ask(self._process, json.dumps({"id": number, **request}).encode(), seconds, _LONGEST_ANSWER)
        late = time.monotonic() - started >= seconds
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            answer: _Answer = decode_json(line, _Answer)
            if answer.id == number:  # else it is one that user code has made up, or sent twice
                return answer
        status = self._end()
        if late:
            return f"{_LATE} {seconds:g} s"
        if line:
            return f"sent something that is no answer: {line[:80]!r}"
        return f"died by {signal_name(-status)}" if status < 0 else f"ended with exit status {status}"

    def _end(self) -> int:
        """End the process and return its exit status: negative for a signal, and 0 if there was no process."""
        process, self._process = self._process, None
        if process is None:
            return 0
        # It may have sent its last message and still be ending: only then is the status its own.
        for pipe in filter(None, (process.stdout, process.stdin)):
            with contextlib.suppress(OSError):
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        kill_group(process)
        return process.wait()

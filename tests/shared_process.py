"""Processes that the workers of pytest-xdist share: the first one that needs a process starts it."""

import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


@contextlib.contextmanager
def shared_process(
    folder: Path, words: Sequence[str | Path], variables: Mapping[str, str], *, own_session: bool = False
) -> Iterator[None]:
    """Start `python WORDS` with these variables, unless another process that has this folder did.

    To start it takes one to two seconds of a processor, which each worker of xdist would spend.

    Args:
        folder: a folder of this process alone. It exists during the block, for sockets.
        words: a program, and its arguments. It prints a line that ends with "ready", and ends once its stdin, of which
            it reads nothing, is at its end: each of its users holds it open.
        variables: the variables of the process.
        own_session: without the terminal that this process may have.
    """
    folder.mkdir(exist_ok=True)
    users, process = folder / "users", None
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            user = os.open(users, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # there is none, or nothing reads it: the process of earlier users has ended
            for path in set(folder.iterdir()) - {folder / "lock"}:
                path.unlink()
            os.mkfifo(users)
            stdin = os.open(users, os.O_RDONLY | os.O_NONBLOCK)
            user = os.open(users, os.O_WRONLY)
            process = subprocess.Popen(
                [sys.executable, *words],
                stdin=stdin,
                stdout=subprocess.PIPE,
                env=dict(variables),
                start_new_session=own_session,
            )
            os.close(stdin)
            assert process.stdout
            assert process.stdout.readline().endswith(b"ready\n")
    yield
    os.close(user)
    if process:  # who starts it counts its processor time, and so waits for its other users
        process.communicate()

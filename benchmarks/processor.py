"""The processor seconds of a command and all processes that it starts, even if they outlive their parents.

The file is also a program: `python benchmarks/processor.py COMMAND…` prints the seconds in its last line, and exits
with the command's exit code. A process whose parent has ended becomes a child of this program, which waits for all.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def processor_seconds(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> float:
    """Run a command in a folder; return the processor seconds, user and system, of all its processes.

    Raises:
        SystemExit: the command fails.
    """
    done = subprocess.run(
        [sys.executable, __file__, *command], cwd=folder, env=dict(variables), capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return float(done.stdout.split()[-1])


def main() -> int:
    """Run the command that the program's arguments are, wait for all of its processes, and return its exit code."""
    become_subreaper = 36  # PR_SET_CHILD_SUBREAPER of Linux: https://man7.org/linux/man-pages/man2/prctl.2.html
    if ctypes.CDLL(None).prctl(become_subreaper, 1, 0, 0, 0):
        raise SystemExit("expected a system with PR_SET_CHILD_SUBREAPER, found one without: seconds would be missing")
    command = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
    seconds, status = 0.0, 0
    while True:
        try:
            pid, ended, used = os.wait4(-1, 0)
        except ChildProcessError:
            break
        status = os.waitstatus_to_exitcode(ended) if pid == command else status
        seconds += used.ru_utime + used.ru_stime  # with those of the children that it has waited for
    sys.stderr.flush()
    print(f"\n{seconds:.3f}")
    return abs(status)


if __name__ == "__main__":
    sys.exit(main())

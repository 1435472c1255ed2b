"""A count of how often the program changes rooms: in an unchanged marked test, and in a cell of a matrix with its page.

``python -m tools.walk`` runs both with the jaxlib of this interpreter. For each it prints the number of changes, and
the pairs of rooms that have the most. A change is a call of a function in a different room than its caller's, even if
code of a library is between the two on the same thread. `sys.setprofile` counts the changes. The bodies of modules and
classes, which run once on import, do not count; a generator counts when it begins.
"""

from __future__ import annotations

import dis
import functools
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parents[1]
PACKAGES = ("export_core", "pytest_jaxexport")
MOST_SHOWN = 12
TEST = """
import pytest

@pytest.mark.export_compat
def test_marked(export_golden):
    import jax, jax.numpy as jnp, numpy as np
    export_golden(jax.jit(jnp.sin), np.arange(3.0, dtype=np.float32))
"""
PAIRS: Counter[tuple[str, str]] = Counter()
"""The number of room changes in this process, by the room of the caller and the room of the called function."""


def count_changes(frame: FrameType, event: str, _: object) -> None:
    """Count the call of a function if the caller is in a different room; `sys.setprofile` calls this function."""
    code = frame.f_code
    is_body = not code.co_flags & inspect.CO_NEWLOCALS
    if event != "call" or is_body or not (room := room_of(code)) or frame.f_lasti > first_of(code):
        return
    above = frame.f_back
    while above and not room_of(above.f_code):
        above = above.f_back
    if above and (caller := room_of(above.f_code)) != room:
        PAIRS[caller, room] += 1


@functools.cache
def first_of(code: CodeType) -> int:
    """Return the offset in Python's bytecode at which a function begins. A generator resumes at a later offset."""
    return next(part.offset for part in dis.get_instructions(code) if part.opname == "RESUME")


@functools.cache
def room_of(code: CodeType) -> str:
    """Return the room that contains this code, or "" if the code belongs to another package.

    The code is that of a function, or of the body of a module or class.
    """
    parts = Path(os.path.relpath(code.co_filename, ROOT)).with_suffix("").parts
    if parts[0] not in PACKAGES:
        return ""
    return "plugin" if parts[0] == "pytest_jaxexport" else parts[1]


def walk(command: str, words: list[str]) -> None:
    """Run pytest or `jaxexport` in this process, and then print the room changes as a line of JSON.

    Args:
        command: `pytest`, or anything else for `jaxexport`.
        words: the arguments of the command.
    """
    threading.setprofile(count_changes)
    sys.setprofile(count_changes)
    try:
        if command == "pytest":
            import pytest

            pytest.main(words)
        else:
            from export_core.cli.entry import main as run

            sys.argv[1:] = words
            run()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    print(json.dumps([[*pair, count] for pair, count in PAIRS.most_common()]))


def walked(folder: Path, *words: str) -> Counter[tuple[str, str]]:
    """Run a command in a folder and in a new process, and return its room changes by pairs of rooms.

    Args:
        folder: the folder.
        words: the arguments of `walk`: `pytest` or `jaxexport`, and the arguments of that command.
    """
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-m", "tools.walk", *words],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return Counter({(caller, room): count for caller, room, count in json.loads(done.stdout.splitlines()[-1])})


def main() -> None:
    """Print the room changes of an unchanged marked test, and those of a cell of a matrix."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "test_walk.py").write_text(TEST, encoding="utf-8")
        walked(folder, "pytest", "-q", "--update-goldens", "--noise=later")
        walked(folder, "pytest", "-q")  # stores the outcome of the golden
        version = next(folder.glob("golden/*/*")).name.partition("-")[0]
        cell = "matrix", "--readers", version, "--quiet", "--html", "page.html"
        walked(folder, "jaxexport", *cell)  # builds the environment
        walks = {
            "an unchanged marked test": walked(folder, "pytest", "-q"),
            "one cell of a matrix, with its page": walked(folder, "jaxexport", *cell, "--no-cache"),
        }
    for title, pairs in walks.items():
        print(f"{title}: {pairs.total():,} room changes")
        for (caller, room), count in pairs.most_common(MOST_SHOWN):
            print(f"    {count:4} {caller} to {room}")


if __name__ == "__main__":
    if sys.argv[1:]:
        walk(sys.argv[1], sys.argv[2:])
    else:
        main()

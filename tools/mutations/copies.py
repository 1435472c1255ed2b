"""Copies of the checkout in which one place of the program is changed and some tests are run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 300
"""The time limit of a run of tests. A mutation with which the tests take longer counts as noticed."""


def make_copy(folder: Path) -> None:
    """Copy the checkout into a folder: all files but those that git ignores, as tests read any of them."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, folder / name
        if source.is_file():  # a file may be deleted and not yet committed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def write(target: Path, text: str) -> None:
    """Replace the text of a Python module in a copy, and delete its bytecode.

    Python would use the old bytecode if the old and the new text are of the same second and the same length.
    """
    target.write_text(text, encoding="utf-8")
    Path(importlib.util.cache_from_source(str(target))).unlink(missing_ok=True)


def exit_code(tests: Sequence[str], folder: Path, *words: str, seconds: float = SECONDS, **variables: str) -> int:
    """Run tests in a copy; return pytest's exit code: 0 all pass, 1 one fails, 2 or 4 a module cannot be imported.

    Args:
        tests: the ids of the tests.
        folder: the copy of the checkout.
        words: more arguments of pytest.
        seconds: the time limit; a run that takes longer counts as one with a test that fails.
        variables: more environment variables.

    Raises:
        SystemExit: pytest ends with a different exit code.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *words, *tests]
    given = {**os.environ, "PYTHONPATH": str(folder), **variables}
    given.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        done = subprocess.run(command, cwd=folder, env=given, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return 1
    if done.returncode not in (0, 1, 2, 4):
        problem = f"expected exit code 0, 1, 2 or 4, found {done.returncode}"
        raise SystemExit(f"{' '.join(command)}: {problem}:\n{done.stdout.decode()[-2000:]}")
    return done.returncode

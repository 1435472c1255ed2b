"""The folders in which the printed commands of pages run: see tools/printed.py."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from commands import finished
from making import manifest, result, write_golden

from export_core.goldens import GoldenStore
from export_core.judge import Judgement
from export_core.matrix import Verdict

ROOT = Path(__file__).parents[1]


def make(name: str, folder: Path) -> Path:
    """Make the folder of this name: a function below, or else a path in the repository."""
    folder.mkdir(parents=True)
    maker = {
        "empty": _empty,
        "repository": _repository,
        "three-goldens": _three_goldens,
        "api-example": _api_example,
    }.get(name)
    if maker is not None:
        maker(folder)
    else:
        shutil.copytree(ROOT / name, folder, dirs_exist_ok=True)
    return folder


def _empty(folder: Path) -> None:
    pass


def _repository(folder: Path) -> None:
    """What git keeps of the repository: commands may write here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copyfile(ROOT / name, folder / name)


def _three_goldens(folder: Path) -> None:
    """One case with goldens of three writers, for what depends on dates only: its artifacts are placeholders."""
    for jaxlib in ("0.9.2", "0.11.0", "0.12.0.1"):
        write_golden(GoldenStore(folder / "golden"), manifest("t.test_f", jaxlib))


def _api_example(folder: Path) -> None:
    """Artifacts, and a finished run of two cells."""
    shutil.copytree(ROOT / "tests" / "artifact" / "data" / "0.12.0.1", folder, dirs_exist_ok=True)
    broken = result(Verdict.CRASH, Judgement.BROKEN, case="t.g", signal=11, message="signal 11 (SIGSEGV)")
    finished(folder / ".jaxexport", result(), broken)

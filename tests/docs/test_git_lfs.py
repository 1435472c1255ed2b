"""The part of docs/how-to/store-goldens.md that needs git-lfs, run only if git-lfs is installed."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tools.page_folders import make
from tools.printed import check, read

PAGE = read(Path(__file__).parents[2] / "docs" / "how-to" / "store-goldens.md")

FIRST = "tests.compat.test_accelerators."
"""The first cases by name, one of which the page shows. All goldens are checked by their own matrix."""


@pytest.mark.matrix
@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_goldens_are_replayed_from_a_clone_with_git_lfs(tmp_path):
    folder = make(PAGE.folder, tmp_path / "project")
    for case in (folder / "golden").iterdir():
        if not case.name.startswith(FIRST):
            shutil.rmtree(case)
    for command in (["add", "golden"], ["commit", "-qm", "Goldens"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    part = tuple(
        replace(block, not_run="") for block in PAGE.blocks if block.not_run or block.title == ".gitattributes"
    )
    check(replace(PAGE, blocks=part), folder)

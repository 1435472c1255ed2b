"""docs/how-to/export.md is a project that passes as it stands: its goldens are written and replayed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from warm_pytest import LITTLE_NOISE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "export.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w+ title=\"(\S+)\"\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TESTS = re.findall(r"^def (test_\w+)", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    for name in dict.fromkeys(name for name, _ in BLOCKS):
        text = "\n\n".join(block for title, block in BLOCKS if title == name)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "conftest.py").write_text(LITTLE_NOISE)
    return folder


def _pytest(folder: Path, *words: str) -> str:
    foreign = ("PYTEST_", "JAX_", "XLA_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    without = (word for name in ("xdist", "hypothesispytest", "jaxtyping") for word in ("-p", f"no:{name}"))
    command = [sys.executable, "-m", "pytest", *without, *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**variables, "JAX_PLATFORMS": "cpu", "COLUMNS": "160"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_guide_runs_and_every_reader_here_keeps_its_promise(project):
    assert f"{len(TESTS)} goldens new" in _pytest(project, "--update-goldens")
    replayed = len(TESTS) - 2  # the kernels for TPU
    assert f"{len(TESTS)} cases checked against {replayed} goldens: {replayed} kept" in _pytest(project)


def test_the_guide_shows_every_keyword_that_changes_an_export():
    from dataclasses import fields

    from export_core.export import ExportOptions

    assert [field.name for field in fields(ExportOptions) if not re.search(rf"\b{field.name}=", PAGE)] == []

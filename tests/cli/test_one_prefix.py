"""Every error begins with one prefix, whichever command, nox session or test run prints it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from commands import assert_bad_input, process

from export_core.base.errors import PREFIX
from pytest_jaxexport.settings import usage_error


@pytest.mark.parametrize(
    "words",
    [
        ("matrix", "--nope"),
        ("matrix", "--jobs", "none"),
        ("nope",),
        ("inspect",),
        ("inspect", "no-file"),
        ("audit", "no-file"),
        ("report", "no-folder"),
        ("judge", "--json"),
        ("plan", "--platforms", "gpu"),
    ],
)
def test_every_error_of_a_command_has_the_prefix(words, tmp_path):
    assert_bad_input(process(*words, cwd=tmp_path))


def test_an_unusable_policy_ends_nox_with_the_prefix(tmp_path):
    (tmp_path / "export_compat.yaml").write_text("golden: typo")
    (tmp_path / "noxfile.py").write_text("from pytest_jaxexport.sessions import register\nregister()\n")
    done = subprocess.run(
        [sys.executable, "-m", "nox", "--list"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"{PREFIX}export_compat.yaml:1: golden: unknown key.")
    assert "Traceback" not in done.stderr


def test_the_plugins_errors_have_it_without_loading_the_core():
    assert str(usage_error("wrong")) == f"{PREFIX}wrong"

"""The command that pytest prints for a failed cell names goldens and policy if `jaxexport` would find others."""

from __future__ import annotations

from pathlib import Path

import pytest

from export_core.policy import Policy
from pytest_jaxexport.replayer import run_options
from pytest_jaxexport.settings import Settings


def settings(root: Path, directory: Path, goldens: str = "golden", policy: str | None = None) -> Settings:
    file = root / policy if policy else None
    return Settings(root / goldens, "", Policy(), None, None, None, policy_file=file, directory=directory)


def test_a_run_in_the_project_names_neither(tmp_path):
    (tmp_path / "export_compat.yaml").write_text("readers: window")
    options = run_options(settings(tmp_path, tmp_path, policy="export_compat.yaml"))
    assert (options.goldens, options.policy_file, options.results) == (None, None, None)


@pytest.mark.parametrize(("goldens", "policy"), [("golden", "export_compat.yaml"), ("other/goldens", "strict.yaml")])
def test_a_run_in_a_subfolder_names_both_relative_to_it(tmp_path, goldens, policy):
    (tmp_path / policy).write_text("readers: window")
    (tmp_path / "tests").mkdir()
    options = run_options(settings(tmp_path, tmp_path / "tests", goldens, policy))
    assert (options.goldens, options.policy_file) == (Path("..") / goldens, f"../{policy}")

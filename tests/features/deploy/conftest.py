"""A project with two deployment targets, and the command that asks about them."""

from pathlib import Path

import pytest
from asking import CASE, OTHER, POLICY, ran
from commands import stored
from making import manifest, write_golden

from export_core.goldens import GoldenStore
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with two deployment targets, and a golden of one case by jaxlib 0.9.2, which both load."""
    Path("export_compat.yaml").write_text(POLICY)
    write_golden(GoldenStore(tmp_path / "golden"), manifest(CASE, "0.9.2"))
    return tmp_path


@pytest.fixture
def ask(project, jaxexport):
    """The function that runs `jaxexport can-i-deploy WHAT --to TARGET` in `project`."""
    return lambda what, to, *words, **ends: jaxexport("can-i-deploy", what, "--to", to, *words, **ends)


@pytest.fixture
def store_two(project):
    """A function that stores these results, and results of two cases: one fails in the target, the other one passes."""
    write_golden(GoldenStore(project / "golden"), manifest(OTHER, "0.9.2"))

    def store(*later: Result) -> None:
        crash = ran(Verdict.CRASH, "0.9.2", stage=Stage.RUN, message="died by signal 11 (SIGSEGV)")
        stored(crash, ran(Verdict.PASS, "0.9.2", case=OTHER), *later)

    return store

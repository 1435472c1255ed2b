"""Deletion of features: the program works without a feature's folder and its line in `export_core.features`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import export_core
from export_core.base.feature import features
from export_core.features import FEATURES

PACKAGE = Path(export_core.__file__).parent
PROGRAM = """
import json
from pathlib import Path
from click.testing import CliRunner
from commands import finished
from making import result
from export_core.cli.app import jaxexport
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
crash = result(Verdict.CRASH, Judgement.BROKEN, case="t.b", stage=Stage.RUN, message="died by signal 11", signal=11)
finished(Path("run"), result(case="t.a"), crash)
commands = ["--help"], ["judge", "run"], ["report", "run", "--markdown", "-"], ["report", "run", "--html", "page.html"]
ended = [CliRunner().invoke(jaxexport, words) for words in commands]
print(json.dumps([[each.exit_code, each.output, repr(each.exception)] for each in ended]))
"""
"""A program that shows the help, stores a run, and judges and reports it."""


def program_with(features: tuple[str, ...], folder: Path) -> list[tuple[int, str, str]]:
    """Run the program with only these features, and return exit code, output and exception of each command."""
    room = folder / "export_core" / "features"
    room.mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name not in ("features", "__pycache__"):
            (folder / "export_core" / path.name).symlink_to(path)
    for feature in features:
        (room / feature).symlink_to(PACKAGE / "features" / feature)
    (room / "__init__.py").write_text(f"FEATURES = {features!r}\n")
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    words = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[tuple[int, str, str]]:
    return program_with(FEATURES, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    "deleted", [("backfill",), ("forecast",), ("remote",), FEATURES], ids=["backfill", "forecast", "remote", "all"]
)
def test_without_features_a_run_is_judged_and_reported(deleted, whole, tmp_path):
    help_before, judged, *reported = whole
    assert (judged[0], "1 broken" in judged[1]) == (1, True)
    help_after, judged_now, *reported_now = program_with(tuple(set(FEATURES) - {*deleted}), tmp_path)
    assert judged_now == judged
    # A page may lack what a feature adds to it.
    assert [(code, error) for code, _, error in reported_now] == [(code, error) for code, _, error in reported]
    gone = {words for name in deleted for words in features()[name].commands if " " not in words}
    assert commands_in(help_after[1]) == commands_in(help_before[1]) - gone


def commands_in(text: str) -> set[str]:
    return set(re.findall(r"^  ([a-z][\w-]*) ", text.partition("Options:")[2], re.MULTILINE))

"""A feature can be deleted: without its folder and its line in `export_core.features`, the program works."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import finished
from making import result

import export_core
from export_core.features import FEATURES
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage

PACKAGE = Path(export_core.__file__).parent
CRASH = result(Verdict.CRASH, Judgement.BROKEN, case="t.b", stage=Stage.RUN, message="died by signal 11", signal=11)
PROGRAM = """
import json
from click.testing import CliRunner
from export_core.cli.app import jaxexport
commands = ["--help"], ["judge", "run"], ["report", "run", "--markdown", "-"], ["report", "run", "--html", "page.html"]
ended = [CliRunner().invoke(jaxexport, words) for words in commands]
print(json.dumps([[each.exit_code, each.output, repr(each.exception)] for each in ended]))
"""
"""Shows the help, and judges and reports a stored run."""


def program_with(features: tuple[str, ...], folder: Path) -> list[tuple[int, str, str]]:
    """What the program says of itself and of a stored run, where the package has these features only."""
    room = folder / "export_core" / "features"
    room.mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name not in ("features", "__pycache__"):
            (folder / "export_core" / path.name).symlink_to(path)
    for feature in features:
        (room / feature).symlink_to(PACKAGE / "features" / feature)
    (room / "__init__.py").write_text(f"FEATURES = {features!r}\n")
    finished(folder / "run", result(case="t.a"), CRASH)
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[tuple[int, str, str]]:
    return program_with(FEATURES, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("feature", ["backfill", "forecast", "remote"])
def test_without_a_feature_a_run_is_judged_and_reported_as_before(feature, whole, tmp_path):
    (_, help_before, _), judged, *reported = whole
    assert (judged[0], "1 broken" in judged[1]) == (1, True)
    (_, help_after, _), *after = program_with(tuple(name for name in FEATURES if name != feature), tmp_path)
    assert after == [judged, *reported]
    assert commands_in(help_after) == commands_in(help_before) - {feature}


def commands_in(text: str) -> set[str]:
    return set(re.findall(r"^  ([a-z][\w-]*) ", text.partition("\nArtifacts:")[2], re.MULTILINE))

"""The examples of apart.py, in a new process, in which an ini option of this plugin sets eight devices."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

APART = Path(__file__).with_name("apart.py")
NAMES = [node.name for node in ast.parse(APART.read_text()).body if getattr(node, "name", "").startswith("test_")]


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The problems of each example of apart.py, by its name; "" if it passed."""
    report = tmp_path_factory.mktemp("apart") / "report.xml"
    foreign = ("PYTEST_", "JAX_", "XLA_")
    alone = ["-o", "export_devices=8", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *alone, f"--junitxml={report}", str(APART)],
        env={name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        | {"JAX_PLATFORMS": "cpu"},
        cwd=APART.parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    wrong: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        name = str(case.get("name")).partition("[")[0]
        wrong[name] = wrong.get(name, "") + "".join(child.text or child.tag for child in case)
    return wrong


@pytest.mark.parametrize("name", NAMES)
def test_each_example_of_apart_py_passes_in_another_process(problems, name):
    assert problems[name] == ""

"""Projects of a user: their files, runs of pytest in other processes, and the outcome of each test."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs
from warm_pytest import NO_NOISE, WarmPytest, own_variables, warm_pytest

from export_core.goldens import Golden, GoldenStore
from export_core.goldens.manifest_file import dump_manifest
from export_core.readers.build import cache_folder
from export_core.releases import load_calendar

TWO_TESTS = """
import os, time
from pathlib import Path
import jax, numpy as np, pytest

X = np.ones(3, "float32")

@pytest.mark.export_compat
def test_first(export_golden):
    export_golden(jax.jit(lambda x: x + 1), X)

@pytest.mark.export_compat
def test_second(export_golden):
    export_golden(jax.jit(lambda x: x + 2), X)
"""
"""Tests that export, to whose end a test adds what the second one does after its export."""
# Plugins that only other tests need are left out: hypothesis takes 0.3 s of each run, and jaxtyping (of equinox)
# loads numpy.
INI = """
[pytest]
addopts = --import-mode=importlib -p no:hypothesispytest -p no:jaxtyping
pythonpath = .
filterwarnings = error
"""


@dataclass(frozen=True)
class TestOutcome:
    """The outcome of one test: passed, failed, error or skipped, and the text that pytest shows."""

    outcome: str
    text: str = ""


@dataclass(frozen=True)
class Run:
    """A finished run of pytest. `tests` is by the test's name, ``test_f[x]``, or ``folder.module.Class.test_f``."""

    code: int
    text: str
    tests: Mapping[str, TestOutcome]

    def __getitem__(self, name: str) -> TestOutcome:
        found = {key: test for key, test in self.tests.items() if key == name or key.endswith(f".{name}")}
        assert len(found) == 1, f"{name} is none or several of {list(self.tests)}:\n{self.text}"
        return next(iter(found.values()))

    def outcomes(self) -> dict[str, list[str]]:
        """Return the names of tests by outcome."""
        names: dict[str, list[str]] = {}
        for name, test in self.tests.items():
            names.setdefault(test.outcome, []).append(name)
        return names


@dataclass(frozen=True)
class Project:
    """A user's project: a folder with tests."""

    folder: Path
    warm: WarmPytest
    cache: Path
    noise: str  # Code of warm_pytest.py that sets how forked runs measure the noise of goldens.

    @property
    def goldens(self) -> Path:
        """The default folder of goldens."""
        return self.folder / "golden"

    def write(self, **files: str) -> None:
        """Write Python files: ``write(test_a="...")`` writes test_a.py, ``write(sub__test_a="...")`` sub/test_a.py."""
        for name, text in files.items():
            path = self.folder / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")

    def use_warm_workers(self) -> None:
        """Use forked workers also in new interpreters, where each worker would import jax for 0.7 s of a processor."""
        with (self.folder / "conftest.py").open("a", encoding="utf-8") as file:
            file.write(self.warm.workers_too)

    def pytest(
        self,
        *words: str,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        cold: bool = False,
        twice: bool = False,
    ) -> Run:
        """Run pytest in a process of its own: a fork of one that has imported jax, or a new interpreter if `cold`.

        Variables that are read when jax is imported need a new interpreter. A second export takes another new
        interpreter, and is only made if `twice`.
        """
        report, output = (self.folder.parent / f"{self.folder.name}.{kind}" for kind in ("xml", "txt"))
        report.unlink(missing_ok=True)
        once = [] if twice or "no:jaxexport" in words else ["--no-second-export"]
        arguments, cwd = [f"--junitxml={report}", *once, *words], cwd or self.folder
        variables = {
            **own_variables(),
            "JAXEXPORT_CACHE": str(self.cache),
            "PYTEST_DEBUG_TEMPROOT": str(self.cache.parent),  # else this run deletes the folders of earlier sessions
            **(environment or {}),
        }
        if not cold:
            code = self.warm.run(arguments, cwd, variables, output, self.noise)
        else:
            with output.open("wb") as file:
                command = [sys.executable, "-m", "pytest", *arguments]
                code = subprocess.run(command, cwd=cwd, env=variables, stdout=file, stderr=file, check=False).returncode
        return Run(code, output.read_text(encoding="utf-8"), _outcomes(report) if report.exists() else {})

    def copy(self, folder: Path) -> Project:
        """Copy the project into another folder."""
        ignored = shutil.ignore_patterns("__pycache__", ".pytest_cache")
        return replace(self, folder=Path(shutil.copytree(self.folder, folder, ignore=ignored)))

    def stored(self, below: str = "") -> dict[str, bytes]:
        """Return every file of the goldens, or of one folder of them, by its path there."""
        folder = self.goldens / below
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    def add_older_generation(self, case: str) -> Path:
        """Add a golden by the release before this one: a copy of this one's golden, with that writer."""
        calendar = load_calendar()
        (own,) = GoldenStore(self.goldens).generations(case)
        versions = calendar.versions()
        before = calendar.release(versions[versions.index(own.manifest.writer.jaxlib) - 1])
        writer = structs.replace(own.manifest.writer, jax=before.jax, jaxlib=before.jaxlib, built=before.built)
        return self.add_golden(own, writer=writer)

    def add_golden(self, golden: Golden, **changes: Any) -> Path:
        """Add a copy of the golden with changes in its manifest, such as another writer or test."""
        manifest = structs.replace(golden.manifest, **changes)
        folder = self.goldens / manifest.case / manifest.writer.id
        shutil.copytree(golden.folder, folder)
        (folder / "golden.yaml").write_bytes(dump_manifest(manifest))
        return folder

    def manifest(self, case: str, folder: str = "golden") -> dict[str, Any]:
        """Read golden.yaml of the case's only golden."""
        (path,) = (self.folder / folder / case).glob("*/golden.yaml")
        manifest: dict[str, Any] = yaml.safe_load(path.read_bytes())
        return manifest


Projects = Callable[..., Project]


@pytest.fixture(scope="session")
def forked_pytest(shared_folder: Path, usual_workers: Path, compiled_folder: Path) -> Iterator[WarmPytest]:
    """Runs of pytest that are forks of a process of warm_pytest.py."""
    with warm_pytest(shared_folder / "warm-pytest", own_variables(), usual_workers, compiled_folder) as warm:
        yield warm


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory, forked_pytest: WarmPytest) -> Projects:
    """The function that makes a project of these files, with a strict ini file: ``projects(test_a="...")``."""

    # A cache of its own, since workers here may be fake: outcomes must not come from, or go to, other runs.
    cache = tmp_path_factory.mktemp("cache")
    (cache / "environments").symlink_to(cache_folder() / "environments")

    def make(*, noise: str = NO_NOISE, **files: str) -> Project:
        made = Project(tmp_path_factory.mktemp("user") / "project", forked_pytest, cache, noise)
        made.folder.mkdir()
        (made.folder / "pytest.ini").write_text(INI)
        made.write(**files)
        return made

    return make


def _outcomes(report: Path) -> dict[str, TestOutcome]:
    tests = {}
    for case in ET.parse(report).iter("testcase"):
        child = next(iter(case), None)
        outcome = {"failure": "failed", "error": "error", "skipped": "skipped"}.get(
            child.tag if child is not None else ""
        )
        text = "" if child is None else child.text or ""
        tests[f"{case.get('classname')}.{case.get('name')}"] = TestOutcome(outcome or "passed", text)
    return tests

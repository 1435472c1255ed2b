"""Goldens of an older release, written by running the same tests in its environment, and checked here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from making import day, make_wheel
from projects import Projects

from export_core.features.backfill import backfill
from export_core.features.backfill.backfill import choose_writers
from export_core.goldens import GoldenStore
from export_core.readers.environment import requirements
from export_core.releases import JaxlibRelease, ReleaseError, load_calendar

TESTS = """
import jax, jax.numpy as jnp, pytest

@pytest.mark.export_compat
def test_wave(export_golden):
    export_golden(jax.jit(lambda x: jnp.sin(x) @ x), jnp.ones((3, 3)))

def test_plain():
    raise AssertionError("backfill runs marked tests only")
"""

PYTEST = [sys.executable, "-m", "pytest", *backfill._PLUGIN, "-q", "-p", "no:cacheprovider"]


@pytest.mark.matrix
def test_an_older_writer_writes_a_golden_that_pytest_judges(projects: Projects) -> None:
    """Backfill a golden by jaxlib 0.6.2, which this jax refuses; README.md backfills one that it reads."""
    writer = "0.6.2"
    project = projects(test_a=TESTS)
    assert project.pytest("--update-goldens", "-k", "wave").code == 0
    own = project.stored()
    (project.folder / "held.txt").write_text("iniconfig==2.0.0\n")
    command = [sys.executable, "-m", "export_core", "goldens", "backfill", "--writers", writer, "--install", "numpy"]
    # A second export here would take two more interpreters; the README's page makes it.
    command += ["--constraints", "held.txt", "--", "--no-second-export"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=project.folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    older = {name: data for name, data in project.stored().items() if name not in own}
    assert {name.split("/")[1] for name in older} == {f"{writer}-cpu"}
    assert {name: data for name, data in project.stored().items() if name in own} == own
    packages = yaml.safe_load(older[f"test_a.test_wave/{writer}-cpu/golden.yaml"])["packages"]
    assert (packages["jaxlib"], packages["iniconfig"]) == (writer, "2.0.0")
    assert f"test_a.test_wave/{writer}-cpu/noise.npz" in older
    held = project.pytest("-k", "wave")
    assert held.code == 0
    assert "1 case checked against 2 goldens: 1 kept, 1 outside" in held.text
    assert "test_a.test_wave/0.6.2-cpu: stage deserialize: ValueError: Exported being" in held.text
    place = str(project.folder.parent).encode()
    assert [name for name, data in older.items() if place in data] == []


@pytest.mark.parametrize(
    ("conftest", "code", "message"),
    [
        ("", 0, ""),
        ("import sys; sys.exit(0)", 3, "pytest ended with 0 before its session did"),
        ("import os; os._exit(0)", 3, "pytest ended with 0 before its session did"),
        ("import os; os._exit(5)", 1, ""),
    ],
)
def test_backfill_is_incomplete_if_pytest_exits_early(
    projects: Projects, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    conftest: str, code: int, message: str,
) -> None:  # fmt: skip
    project = projects(test_a="def test_f(): pass", conftest=conftest)
    monkeypatch.chdir(project.folder)
    assert backfill._run_to_its_end(PYTEST, (), backfill.Progress(), "0.10.2") == code
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("file", "text", "install", "added", "options"),
    [
        ("conftest", "import eqnx", (), '"-e.", "eqnx"', "-e. --install eqnx"),
        ("test_a", "import eqnx.nn", ("optax>1",), '"optax>1", "eqnx"', "'optax>1' --install eqnx"),
        ("test_a", "def test_f():\n    import eqnx", ("-e.",), '"-e.", "eqnx"', "-e. --install eqnx"),
    ],
)
def test_backfill_says_how_to_install_a_missing_module(
    projects: Projects, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    file: str, text: str, install: tuple[str, ...], added: str, options: str,
) -> None:  # fmt: skip
    project = projects(**{file: text})
    (project.folder / "pyproject.toml").touch()
    monkeypatch.chdir(project.folder)
    assert backfill._run_to_its_end(PYTEST, install, backfill.Progress(), "0.10.2") == 1
    message = capfd.readouterr().err
    assert "this environment has no module eqnx, which the tests import" in message
    assert f"run this command with --install {options}, or write backfill_install: [{added}] into" in message


def test_no_install_is_advised_for_a_missing_submodule(
    projects: Projects, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(projects(test_a="import json.eqnx").folder)
    assert backfill._run_to_its_end(PYTEST, (), backfill.Progress(), "0.10.2") == 1
    printed = capfd.readouterr()
    assert "No module named 'json.eqnx'" in printed.out
    assert "this environment has no module" not in printed.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("-k", "wave"), "--update-goldens=missing"),
        (("--update-goldens",), "--update-goldens"),
        (("--update-goldens=dry-run", "-x"), "--update-goldens=dry-run"),
    ],
)
def test_backfill_replaces_goldens_only_if_asked(words: tuple[str, ...], option: str) -> None:
    assert backfill.update_option(words) == option


def test_backfill_prints_the_command_that_replaces_an_unchanged_golden(
    projects: Projects, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A changed constant fails the test; only the printed command replaces the golden, which is pinned."""
    project = projects(test_a=TESTS)
    assert project.pytest("--update-goldens", "--noise=later", "-k", "wave").code == 0
    before = project.stored()
    (stored,) = GoldenStore(project.goldens).goldens()
    golden, writer = stored.id, stored.manifest.writer.jaxlib
    (project.folder / "export_compat.yaml").write_text(
        f"retention:\n  pinned:\n  - goldens: [{golden}]\n    reason: what users have\n"
    )
    project.write(test_a=TESTS.replace("jnp.sin(x)", "jnp.sin(2 * x)"))
    monkeypatch.chdir(project.folder)
    where = Path(backfill.__file__).parents[3]  # pytest gets no PYTHONPATH, and must import this package
    run = ["env", f"PYTHONPATH={where}", *PYTEST, "-m", "export_compat", "--noise=later", "--no-second-export"]
    command = [*run, backfill.update_option(())]
    assert backfill._run_to_its_end(command, ("optax",), backfill.Progress(), writer) == 1
    printed = capfd.readouterr().out
    again = f"jaxexport goldens backfill --writers {writer} --install optax -- --update-goldens"
    assert f"1 golden left unchanged: {golden}; {again} test_a.py::test_wave replaces it" in printed
    assert f"If the change is intended: {again}" in printed
    assert project.stored() == before
    assert backfill._run_to_its_end([*run, "--update-goldens"], (), backfill.Progress(), writer) == 0
    assert f"  {golden}: pinned by the policy (what users have); " in capfd.readouterr().out
    assert project.stored() != before


@pytest.mark.parametrize("named", ["", " , ", "window", "0.10.2,all"])
def test_writers_option_takes_versions_but_no_words_such_as_window(named: str) -> None:
    with pytest.raises(ReleaseError, match=r"--writers: expected jaxlib versions such as .*, found"):
        choose_writers(named, load_calendar())


def test_a_wheel_needs_a_build_date_to_be_a_writer(tmp_path: Path) -> None:
    candidate = "0.13.0rc1"
    wheel = make_wheel(tmp_path, "jaxlib", candidate)
    make_wheel(tmp_path, "jax", candidate, needs="jaxlib>=0.12.0")
    with pytest.raises(
        ReleaseError, match=r"found jaxlib 0\.13\.0rc1\. `jaxexport releases refresh --wheels DIR` adds"
    ):
        choose_writers(str(wheel), load_calendar(), wheels=(str(tmp_path),))
    calendar = load_calendar().extended({candidate: JaxlibRelease(day("2026-11-20"), ("3.12",))}, {})
    chosen = choose_writers(str(wheel), calendar, wheels=(str(tmp_path),))
    (release,) = chosen.chosen
    assert (release.pair, release.built) == (f"{candidate}-jax{candidate}", day("2026-11-20"))
    assert f"jaxlib @ {wheel.as_uri()}" in requirements(release, chosen.calendar, chosen.sources)
    assert chosen.sources.options() == (f"--find-links={tmp_path}",)


TOML = '[project]\nname = "p"\nversion = "1"\ndependencies = ["hypothesis>=6"]\noptional-dependencies.t = ["optax"]\n'


@pytest.mark.parametrize(
    ("toml", "install", "lacking"),
    [
        ("", (), "eqnx, hypothesis, optax"),
        (TOML, (), "eqnx, optax"),
        (TOML, ("-e.[t]",), "eqnx"),
        (TOML, ("optax", "hypothesis"), "eqnx"),
        ('[project]\nname = "p"\ndynamic = ["dependencies"]\n', (), ""),  # nobody knows them without a build
    ],
)
def test_a_dry_run_names_packages_that_the_tests_import_but_will_lack(toml, install, lacking, jaxexport, cwd):
    """Imports of marked tests and of the modules they import count; optional imports and other tests do not."""
    Path("tests").mkdir()
    Path("tests/test_a.py").write_text(
        "import jax, numpy, os, pytest\nfrom model.net import f\ndef test_f(export_golden):\n    import eqnx.nn\n"
    )
    Path("tests/test_plain.py").write_text("import not_needed\n")
    Path("tests/conftest.py").write_text("try:\n    import torch\nexcept ImportError:\n    pass\n")
    Path("model").mkdir()
    Path("model/__init__.py").touch()
    Path("model/net.py").write_text("from . import layers\nimport hypothesis, yaml\n")
    Path("model/layers.py").write_text("import optax\n")
    if toml:
        Path("pyproject.toml").write_text(toml)
    words = [word for package in install for word in ("--install", package)]
    out = jaxexport("goldens", "backfill", "--writers", "0.10.2", "--dry-run", *words, code=0).out
    assert out.count("warning: ") == bool(lacking)
    assert ("installed beside them: pytest; the working folder has no pyproject.toml" in out) == (
        not toml and not install
    )
    assert f"warning: the tests import {lacking}, which none of these packages brings along" in out or not lacking
    assert ("brings along hypothesis>=6" in out) == (toml == TOML and install != ("optax", "hypothesis"))


def test_a_dry_run_names_the_writers_and_builds_nothing(jaxexport, tmp_path):
    words = ("--writers", "0.10.2,0.9.2,0.10.1,0.10.0-jax0.10.0", "--install", "flax", "--dry-run")
    assert jaxexport("goldens", "backfill", *words, code=0).out.splitlines() == [
        "would write goldens with jax 0.9.2, jaxlib 0.9.2 (built 2026-03-18)",
        "would write goldens with jax 0.10.0, jaxlib 0.10.0 (built 2026-04-16)",
        "would write goldens with jax 0.10.2, jaxlib 0.10.1 (built 2026-05-18): the newest jax that works on this "
        "jaxlib; --writers 0.10.1-jax0.10.1 takes that of its number",
        "would write goldens with jax 0.10.2, jaxlib 0.10.2 (built 2026-06-17)",
        "installed beside them: pytest, flax",
    ]


def test_a_list_of_packages_for_install_is_refused(jaxexport):
    words = ("--writers", "0.10.2", "--dry-run", "--install", ".", "--install", "interpax,quadax")
    error = " ".join(jaxexport("goldens", "backfill", *words, code=2).err.split())
    assert "--install: expected a requirement as pip takes it, such as optax==0.2.5, found 'interpax,quadax': " in error
    assert "Give each package separately." in error

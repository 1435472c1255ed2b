"""An environment that broke is found by the hashes of its files, and the run ends as if nothing had happened."""

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from making import make_wheel

from export_core.matrix import Verdict
from export_core.readers import build as module
from export_core.readers.build import EnvironmentLocks, Recipe
from export_core.readers.environment import Environment, cell_variables
from export_core.readers.worker.client import start_worker

CHECK = "import tiny; print(tiny.__version__)"
MODULES = {"sitecustomize.py": "import os".ljust(60)}
SPOILED = "import os; os.environ['XLA_FLAGS'] = '--no'".ljust(60)
"""A cell whose XLA has this flag is aborted; the worker itself starts."""
NEVER_STARTS = "raise SystemExit(1)".ljust(60)


@pytest.fixture
def environment_of(tmp_path, monkeypatch) -> Callable[..., Environment]:
    """A reader that is built: jax of this interpreter, and a package that is installed in an environment of its own."""
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))  # the tests damage it
    wheel = make_wheel(tmp_path, "tiny", "1.0", modules=MODULES)
    recipe = Recipe("jaxlib-tiny", sys.executable, (str(wheel),), CHECK)
    variables = {**cell_variables(), "PYTHONPATH": sysconfig.get_paths()["purelib"]}

    def build(release: object) -> Environment:
        with EnvironmentLocks() as locks:
            built = module.build(recipe, locks)
        return Environment(release, built.python, variables, built.content_hash, folder=built.folder)

    return build


def site(environment: Environment) -> Path:
    (folder,) = environment.python.parents[1].glob("lib/python*/site-packages")
    return folder


def in_place(file: Path, text: str) -> None:
    """Also in the installer's cache, which has the same file."""
    assert file.stat().st_nlink > 1
    file.write_text(text)


def planted(file: Path, text: str) -> None:
    file.with_name("usercustomize.py").write_text(text)
    file.with_name("planted.pth").write_text("import usercustomize\n")


@pytest.mark.parametrize(
    ("damage", "text"),
    [(in_place, SPOILED), (planted, NEVER_STARTS)],
    ids=["in the cache too", "a file of no package, and no worker starts"],
)
def test_damage_that_no_size_shows_is_healed(run, here, environment_of, damage, text):
    before = environment_of(here)
    file = site(before) / "sitecustomize.py"
    assert len(text) == len(MODULES[file.name]) == file.stat().st_size
    damage(file, text)
    assert environment_of(here).python == before.python, "sizes show nothing"
    notes: list[str] = []
    outcomes = run("waves", "other_numbers", environment_of=environment_of, start=start_worker, notify=notes.append)
    assert outcomes["waves"].verdict is Verdict.PASS
    assert file.read_text() == MODULES[file.name]
    assert not file.with_name("planted.pth").exists()
    culprit = "planted.pth" if damage is planted else "sitecustomize.py"
    assert any("is built again: " in note and culprit in note for note in notes), notes


def test_a_sound_environment_is_looked_at_once_and_stays(run, here, environment_of, monkeypatch):
    from export_core.readers import environment as environments

    looks: list[Path] = []
    changed_in = environments.changed_in
    monkeypatch.setattr(environments, "changed_in", lambda folder: looks.append(folder) or changed_in(folder))
    before = environment_of(here)
    built_at = (before.python.parents[1] / "ready.json").stat().st_mtime_ns
    outcomes = run("other_numbers", "waves", environment_of=environment_of, start=start_worker)
    assert outcomes["other_numbers"].verdict is Verdict.NUMERICS
    assert looks == [before.python.parents[1]]
    assert (looks[0] / "ready.json").stat().st_mtime_ns == built_at

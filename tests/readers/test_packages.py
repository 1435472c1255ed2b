"""Packages: the constraints of a project, what registered modules can import, and what backfill installs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import Distribution, PathDistribution, version
from pathlib import Path

import pytest
from making import golden, make_wheel, release

from export_core.matrix import Cell
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import Policy
from export_core.policy.run_options import CellLimits
from export_core.readers import environment as environments
from export_core.readers.build import Built, EnvironmentLocks, Recipe, build, uv_command
from export_core.readers.cached_environments import cached_environments
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.packages import constraints_of, import_problems, installed_packages, make_own_requirement
from export_core.readers.placement import Placement
from export_core.releases import load_calendar

pytestmark = pytest.mark.usefixtures("cache")

# --- constraints of a project -----------------------------------------------------------------------------------------

FROZEN = """
# by pip-compile
--index-url https://index
-e git+https://host/mine#egg=mine
numpy==2.3.1 \\
    --hash=sha256:00 \\
    --hash=sha256:11
Flax_Thing>=1,<2  # via mine
jax==0.9.2
optax @ file:///tmp/optax.whl
scipy==1.15.3 ; python_version < "3.11"
scipy==1.17.1 ; python_version >= "3.11"
"""


def test_jax_and_lines_uv_cannot_read_are_left_out_of_constraints(tmp_path):
    (tmp_path / "requirements.txt").write_text(FROZEN)
    assert constraints_of(tmp_path / "requirements.txt") == ("flax-thing<2,>=1", "numpy==2.3.1")


@pytest.mark.parametrize("text", ["not a requirement", "-r base.txt"])
def test_a_constraints_file_that_cannot_be_read_is_an_error(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(EnvironmentFailed, match=r"--constraints .*a\.txt: expected requirements, .*: "):
        constraints_of(tmp_path / "a.txt")


def test_installed_packages_are_listed_by_name():
    assert installed_packages()["jaxlib"] == version("jaxlib")


def test_constraints_set_the_installed_version(tmp_path):
    for number in ("1.0", "2.0"):
        make_wheel(tmp_path, "tiny", number)
    top = str(make_wheel(tmp_path, "top", "1.0", needs="tiny"))
    options = ("--no-index", f"--find-links={tmp_path}")
    plain = Recipe("tiny", sys.executable, (top,), "import tiny; print(tiny.__version__)", options=options)
    with EnvironmentLocks() as locks:
        assert build(plain, locks).checked == "2.0"
        assert build(replace(plain, constraints=("tiny==1.0",)), locks).checked == "1.0"
        with pytest.raises(EnvironmentFailed, match=r"(?s)installing .*tiny==3\.0"):
            build(replace(plain, constraints=("tiny==3.0",)), locks)


# --- imports of a module that a golden registers ----------------------------------------------------------------------

IN_READERS = """
from __future__ import annotations
import collections.abc, os, jax, jaxlib.xla_client, numpy as np, scipy.linalg, ml_dtypes, opt_einsum, flatbuffers
from jax import export
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import msgspec
try:
    import msgspec
except ImportError:
    msgspec = None
"""


def problems(source: str, *packages: str, **before: str) -> list[str]:
    files = {f"{name}.register.py": text.encode() for name, text in {**before, "nodes": source}.items()}
    return import_problems({"artifact.jaxexport": b"import nothing", **files}, packages)


def test_imports_that_every_reader_has_are_accepted():
    assert problems(IN_READERS) == []
    assert problems("import first", first="") == [], "the reader has imported it before"


@pytest.mark.parametrize(
    ("source", "way"),
    [
        ("import msgspec.json", "(`reader_packages: [msgspec]`, or msgspec=="),
        ("def decode(data):\n    from yaml import load", "(`reader_packages: [PyYAML]`, or PyYAML=="),
        ("import nodes_of_this_project", "Make the module self-contained"),
        ("from . import other", "Make the module self-contained"),
        ("try:\n    import msgspec\nexcept ValueError:\n    pass", "(`reader_packages: [msgspec]`"),
        ("import 7", "is not a Python module"),
    ],
    ids=["a package", "in a function", "a local module", "beside it", "not guarded", "no Python"],
)
def test_imports_that_a_reader_lacks_are_reported_with_a_remedy(source, way):
    (problem,) = problems(source)
    assert problem.startswith("register='nodes' i")
    assert way in problem


def test_packages_of_the_policy_are_accepted():
    assert problems("import yaml, msgspec", "msgspec", "PyYAML>=6") == []
    assert problems("import jinja2, markupsafe", "jinja2") != [], "what it brings along is named, too"


@pytest.fixture
def wheels(tmp_path) -> Path:
    for number in ("1.0", "2.0"):
        make_wheel(tmp_path, "reader", number)
    make_wheel(tmp_path, "added", "1.0", needs="reader>=2")
    return tmp_path


def recipe(wheels: Path, reader: str, *packages: str) -> Recipe:
    options = ("--no-index", f"--find-links={wheels}")
    return Recipe("jaxlib-1.0", sys.executable, (f"reader=={reader}",), "", options=options, packages=packages)


def test_packages_of_the_policy_give_a_separate_environment(wheels):
    with EnvironmentLocks() as locks:
        plain = build(recipe(wheels, "2.0"), locks)
        added = build(recipe(wheels, "2.0", "added"), locks)
    assert plain.folder != added.folder
    assert plain.content_hash != added.content_hash, "outcomes of one are not those of the other"
    assert list(added.folder.glob("lib/*/site-packages/added")) != []
    listed = {cached.folder: cached.packages for cached in cached_environments()}
    assert listed == {plain.folder: (), added.folder: ("added",)}


def test_a_package_that_needs_another_reader_release_is_an_error(wheels):
    conflict = r"(?s)all versions of added depend on reader>=2.*It was to install reader==1\.0, added\."
    with EnvironmentLocks() as locks, pytest.raises(EnvironmentFailed, match=conflict):
        build(recipe(wheels, "1.0", "added"), locks)


def test_a_replay_builds_readers_with_the_policys_packages(monkeypatch):
    asked = []

    def fake(recipe: Recipe, *_: object, **__: object) -> Built:
        asked.append(recipe)
        raise EnvironmentFailed("not built here")

    monkeypatch.setattr(environments, "build", fake)
    options = ReplayOptions(load_calendar(), Policy(reader_packages=("optax==0.2.5",)), CellLimits(jobs=1))
    with ReaderEnvironments(load_calendar()) as plain, pytest.raises(EnvironmentFailed):
        plain.build(Placement(release("0.12.0.1")))
    list(replay_here([Cell(golden("t.a"), release("0.12.0.1"), "cpu")], options))
    assert [one.packages for one in asked][:2] == [(), ("optax==0.2.5",)]
    assert asked[0].folder != asked[1].folder


# --- backfill installs the code that runs here, not what an index has under its name ----------------------------------


def install(wheel: str | Path, folder: Path) -> Distribution:
    command = [uv_command(), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
    subprocess.run([*command, "--target", folder, wheel], check=True)
    (info,) = folder.glob("*.dist-info")
    return PathDistribution(info)


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "fork").rglob("*.*") if path.suffix != ".pyc"}


@pytest.fixture
def installed(tmp_path) -> Distribution:
    """A package that was installed from a wheel file, now deleted, and then changed in place."""
    wheel = make_wheel(tmp_path, "fork", "1.0", modules={"fork/more.py": "", "fork/data/table.yaml": "a: 1"})
    package = install(wheel, tmp_path / "here")
    wheel.unlink()
    # A new file, since the installer's cache shares the old one by a hard link.
    (tmp_path / "here" / "fork" / "more.py").unlink()
    (tmp_path / "here" / "fork" / "more.py").write_text("changed = True")
    return package


def test_local_changes_of_a_package_are_installed_too(installed, tmp_path):
    requirement = make_own_requirement(installed)
    install(requirement, tmp_path / "there")
    assert content(tmp_path / "there") == content(tmp_path / "here")
    assert content(tmp_path / "there")["more.py"] == "changed = True"
    assert make_own_requirement(installed) == requirement, "the same code is the same environment"
    (tmp_path / "here" / "fork" / "more.py").write_text("changed = 2")
    assert make_own_requirement(installed) != requirement, "and other code is another one"


def test_a_lost_file_of_a_package_is_reported(installed, tmp_path):
    (tmp_path / "here" / "fork" / "more.py").unlink()
    with pytest.raises(EnvironmentFailed, match=r"one of its files cannot be read: .*more\.py.*Install"):
        make_own_requirement(installed)


def test_an_editable_package_is_installed_from_its_folder(tmp_path):
    info = tmp_path / "fork-1.0.dist-info"
    info.mkdir()
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///a%20b/fork", "dir_info": {"editable": True}}))
    assert make_own_requirement(PathDistribution(info)) == "-e/a b/fork"

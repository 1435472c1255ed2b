"""A module that a golden registers may import what readers have: jax's packages, and those that the policy adds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from making import golden, make_wheel, release

from export_core.matrix import Cell
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import Policy
from export_core.readers import environment as environments
from export_core.readers.build import Built, EnvironmentLocks, Recipe, build
from export_core.readers.cell import Limits
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.inventory import cached_environments
from export_core.readers.packages import import_problems
from export_core.readers.placement import Placement
from export_core.releases import load_calendar

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


def test_what_every_reader_has_may_be_imported():
    assert problems(IN_READERS) == []
    assert problems("import first", first="") == [], "the reader has imported it before"


@pytest.mark.parametrize(
    ("source", "way"),
    [
        ("import msgspec.json", "(`reader_packages: [msgspec]`, or msgspec=="),
        ("def decode(data):\n    from yaml import load", "(`reader_packages: [PyYAML]`, or PyYAML=="),
        ("import nodes_of_this_project", "Let the module be self-contained"),
        ("from . import other", "Let the module be self-contained"),
        ("try:\n    import msgspec\nexcept ValueError:\n    pass", "(`reader_packages: [msgspec]`"),
        ("import 7", "is no module of Python"),
    ],
    ids=["a package", "in a function", "a local module", "beside it", "not guarded", "no Python"],
)
def test_anything_else_is_told_with_the_way_out(source, way):
    (problem,) = problems(source)
    assert problem.startswith("register='nodes' i")
    assert way in problem


def test_the_policys_packages_and_what_they_need_may_be_imported():
    assert problems("import yaml, msgspec", "msgspec", "PyYAML>=6") == []
    assert problems("import click, jinja2, markupsafe", "jinja2==3.1.6 ; python_version > '3'") != []
    assert problems("import jinja2, markupsafe", "jinja2") == []


# --- environments -----------------------------------------------------------------------------------------------------


@pytest.fixture
def wheels(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    for number in ("1.0", "2.0"):
        make_wheel(tmp_path, "reader", number)
    make_wheel(tmp_path, "added", "1.0", needs="reader>=2")
    return tmp_path


def recipe(wheels: Path, reader: str, *packages: str) -> Recipe:
    options = ("--no-index", f"--find-links={wheels}")
    return Recipe("jaxlib-1.0", sys.executable, (f"reader=={reader}",), "", options=options, packages=packages)


def test_packages_are_installed_in_an_environment_of_their_own(wheels):
    with EnvironmentLocks() as locks:
        plain = build(recipe(wheels, "2.0"), locks)
        added = build(recipe(wheels, "2.0", "added"), locks)
    assert plain.folder != added.folder
    assert plain.content_hash != added.content_hash, "outcomes of one are not those of the other"
    assert list(added.folder.glob("lib/*/site-packages/added")) != []
    assert {cached.folder: cached.packages for cached in cached_environments()} == {
        plain.folder: (),
        added.folder: ("added",),
    }


def test_a_package_never_changes_the_reader_itself(wheels):
    with (
        EnvironmentLocks() as locks,
        pytest.raises(EnvironmentFailed, match=r"(?s)reader==1\.0, added failed.*reader>=2"),
    ):
        build(recipe(wheels, "1.0", "added"), locks)


def test_the_policys_packages_are_in_every_readers_environment(monkeypatch):
    asked = []

    def fake(recipe: Recipe, *_: object, **__: object) -> Built:
        asked.append(recipe)
        raise EnvironmentFailed("not built here")

    monkeypatch.setattr(environments, "build", fake)
    options = ReplayOptions(load_calendar(), Policy(reader_packages=("optax==0.2.5",)), Limits(jobs=1))
    with ReaderEnvironments(load_calendar()) as plain, pytest.raises(EnvironmentFailed):
        plain.build(Placement(release("0.12.0.1")))
    list(replay_here([Cell(golden("t.a"), release("0.12.0.1"), "cpu")], options))
    assert [one.packages for one in asked][:2] == [(), ("optax==0.2.5",)]
    assert asked[0].folder != asked[1].folder

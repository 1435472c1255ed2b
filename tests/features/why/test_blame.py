"""Which of jax and jaxlib is to blame, what changed between two releases, and a jax that takes every jaxlib."""

from __future__ import annotations

import importlib.metadata
import inspect
import itertools
import zipfile
from pathlib import Path

import jax._src.lib
import pytest
from making import release

from export_core.features.why.bisect.bisection import part_to_blame
from export_core.features.why.bisect.changes import changes_between, commits_between
from export_core.features.why.bisect.mixed_pairs import wheel_without_checks, without_check, without_jaxlib
from export_core.readers.environment import Environment
from export_core.readers.errors import EnvironmentFailed
from export_core.releases import load_calendar

COMMITS = {"0.11.1": "a" * 40, "0.11.2": "b" * 40}


@pytest.mark.parametrize("needed", [{"jax"}, {"jaxlib"}, {"jax", "jaxlib"}])
def test_the_part_that_is_needed_is_to_blame(needed):
    """A failure that needs the new version of these parts, in each pair that may or may not answer."""
    for known in itertools.product([True, False], repeat=2):
        truth = (needed <= {"jax"}, needed <= {"jaxlib"})
        blamed = part_to_blame(*(fails if answers else None for fails, answers in zip(truth, known, strict=True)))
        right = needed.copy().pop() if len(needed) == 1 else "both"
        # With one answer it is said which part is needed at least.
        assert blamed in {right} if all(known) else {right, *needed, ""}, (needed, known)
        assert bool(blamed) == any(known)


def test_either_part_is_to_blame_where_each_alone_is_enough():
    assert part_to_blame(True, True) == "either"


def environment_folder(tmp_path: Path, version: str, package: str = "jaxlib") -> Path:
    """What is looked at of an environment: the metadata of a package, and its version.py."""
    site = tmp_path / version / "lib" / "python3.12" / "site-packages"
    (site / f"{package}-{version}.dist-info").mkdir(parents=True)
    (site / package).mkdir()
    (site / package / "version.py").write_text(f"_git_hash: str | None = '{COMMITS[version]}'\n")
    return tmp_path / version


def test_a_jaxlib_links_the_commits_that_it_says_it_was_built_from(tmp_path):
    folders = {version: environment_folder(tmp_path, version) for version in COMMITS}
    good, bad = release("0.11.1"), release("0.11.2")
    links = commits_between(good, bad, lambda release: folders[release.jaxlib])
    assert [(link.name, link.link.removeprefix("https://github.com/jax-ml/jax/")) for link in links] == [
        ("jax", "compare/jax-v0.11.1...jax-v0.12.0.1"),
        ("jaxlib", f"compare/{'a' * 40}...{'b' * 40}"),
        ("XLA of jaxlib 0.11.1", f"tree/{'a' * 40}/third_party/xla"),
        ("XLA of jaxlib 0.11.2", f"tree/{'b' * 40}/third_party/xla"),
    ]
    assert commits_between(bad, good, lambda release: folders[release.jaxlib]) == links, "from the older to the younger"


def test_what_did_not_change_is_left_out():
    calendar = load_calendar()
    changes = changes_between(release("0.12.0"), release("0.12.0.1"), calendar)
    assert [change.name for change in changes] == ["jaxlib"]
    assert [link.name for link in commits_between(release("0.12.0"), release("0.12.0.1"), lambda _: None)] == ["jaxlib"]


def test_the_check_of_jaxlib_can_be_left_out_of_the_jax_that_is_installed():
    source = inspect.getsource(jax._src.lib)
    space: dict[str, object] = {}
    free = without_check(source)
    exec(free[: free.index("version_str =")], {"__name__": "jax._src.lib"}, space)
    with pytest.raises(RuntimeError):
        jax._src.lib.check_jaxlib_version("0.9.0", "0.12.0.1", "0.9.0")
    assert space["check_jaxlib_version"]("0.9.0", "0.12.0.1", "0.9.0") == (0, 12, 0, 1)
    assert len(free.splitlines()) < len(source.splitlines())


def test_a_jax_without_its_check_is_told():
    with pytest.raises(ValueError, match="expected one function check_jaxlib_version"):
        without_check("x = 1\n")


def test_only_the_requirement_of_jaxlib_is_left_out():
    requirements = ("jaxlib<=0.9.2,>=0.9.2", "numpy>=2.0", "jaxlib==0.9.1; extra == 'ci'")
    metadata = "Name: jax\n" + "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements)
    assert without_jaxlib(metadata) == "Name: jax\nRequires-Dist: numpy>=2.0\n"


def test_the_wheel_of_an_installed_jax_has_all_of_it(tmp_path, monkeypatch, here):
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path))
    (package,) = importlib.metadata.distributions(name="jax")
    info = Path(str(package.locate_file(f"jax-{package.version}.dist-info")))
    folder = tmp_path / "environment"
    (folder / "lib" / "python3.12").mkdir(parents=True)
    (folder / "lib" / "python3.12" / "site-packages").symlink_to(info.parent)
    path = wheel_without_checks(Environment(here, Path("python"), {}, folder=folder))
    assert path == wheel_without_checks(Environment(here, Path("python"), {}, folder=folder))
    with zipfile.ZipFile(path) as wheel:
        assert "jax/numpy/__init__.py" in wheel.namelist()
        assert b"check_jaxlib_version" in wheel.read("jax/_src/lib/__init__.py")
        assert b"Requires-Dist: jaxlib" not in wheel.read(f"{info.name}/METADATA")


def test_an_environment_without_jax_is_told(tmp_path, here):
    with pytest.raises(EnvironmentFailed, match="is not installed in"):
        wheel_without_checks(Environment(here, Path("python"), {}, folder=tmp_path))

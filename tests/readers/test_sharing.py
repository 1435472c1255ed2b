"""Environments of one run share the Python bytecode of the files that they share; see test_ahead.py for their notes."""

import py_compile
from pathlib import Path

import pytest

from export_core.readers.sharing import share

SITE = Path("lib/python3.12/site-packages")


@pytest.fixture
def compiled(tmp_path) -> Path:
    """An environment whose packages are compiled."""
    for name in ("numpy/__init__.py", "numpy/core.py", "jax/__init__.py", "jax/gone.py"):
        source = tmp_path / "compiled" / SITE / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"NAME = {name!r}")
        py_compile.compile(str(source))
    return tmp_path / "compiled"


@pytest.fixture
def new(compiled) -> Path:
    """An environment as the installer leaves it: it shares the files of NumPy with the other, and not those of jax."""
    new = compiled.with_name("new")
    for name in ("numpy/__init__.py", "numpy/core.py"):
        (new / SITE / name).parent.mkdir(parents=True, exist_ok=True)
        (new / SITE / name).hardlink_to(compiled / SITE / name)
    (new / SITE / "jax").mkdir()
    (new / SITE / "jax" / "__init__.py").write_text("NAME = 'jax/__init__.py'")
    return new


def bytecode(folder: Path) -> set[str]:
    return {f"{path.parents[1].name}.{path.name.partition('.')[0]}" for path in folder.rglob("*.pyc")}


def test_a_file_shared_by_environments_is_compiled_once(compiled, new):
    share(new, [compiled])
    assert bytecode(new) == {"numpy.__init__", "numpy.core"}
    (one,) = new.rglob("core.*.pyc")
    assert one.samefile(compiled / one.relative_to(new))


def test_an_environment_used_before_keeps_its_pyc_files(compiled, new):
    py_compile.compile(str(new / SITE / "numpy" / "__init__.py"))
    share(new, [compiled])
    assert bytecode(new) == {"numpy.__init__"}


def test_pyc_files_come_from_the_first_environment(compiled, new, tmp_path):
    (tmp_path / "empty").mkdir()
    share(new, [tmp_path / "empty", compiled, compiled])
    assert bytecode(new) == {"numpy.__init__", "numpy.core"}

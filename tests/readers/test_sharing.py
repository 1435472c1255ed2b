"""Environments of one run share the Python bytecode of equal files; see test_ahead.py for their notes."""

import os
import py_compile
import subprocess
import sys
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
    """An environment as the installer leaves it: it shares files of NumPy with `compiled`, but has a different jax."""
    new = compiled.with_name("new")
    for name in ("numpy/__init__.py", "numpy/core.py"):
        (new / SITE / name).parent.mkdir(parents=True, exist_ok=True)
        (new / SITE / name).hardlink_to(compiled / SITE / name)
    (new / SITE / "jax").mkdir()
    (new / SITE / "jax" / "__init__.py").write_text("NAME = 'jax/__change__'")
    return new


def bytecode(folder: Path) -> set[str]:
    return {f"{path.parents[1].name}.{path.name.partition('.')[0]}" for path in folder.rglob("*.pyc")}


def test_a_file_shared_by_environments_is_compiled_once(compiled, new):
    share(new, [compiled])
    assert bytecode(new) == {"numpy.__init__", "numpy.core"}
    (one,) = new.rglob("core.*.pyc")
    assert one.samefile(compiled / one.relative_to(new))


def test_an_environment_with_pyc_files_gets_none_of_another(compiled, new):
    py_compile.compile(str(new / SITE / "numpy" / "__init__.py"))
    share(new, [compiled])
    assert bytecode(new) == {"numpy.__init__"}


def test_pyc_files_come_from_the_first_environment_that_has_them(compiled, new, tmp_path):
    (tmp_path / "empty").mkdir()
    share(new, [tmp_path / "empty", compiled, compiled])
    assert bytecode(new) == {"numpy.__init__", "numpy.core"}


def import_jax(folder: Path) -> tuple[str, str]:
    """Import the jax of an environment; return the file that its code names, and what Python says of its bytecode."""
    code = f"import sys; sys.path.insert(0, {str(folder / SITE)!r}); import jax; print(jax.where.__code__.co_filename)"
    done = subprocess.run([sys.executable, "-vIc", code], capture_output=True, text=True, check=True)
    return done.stdout.strip(), next(line for line in done.stderr.splitlines() if "jax/__init__" in line)


@pytest.mark.parametrize("seconds", [0, 60], ids=["same time", "another time"])
def test_equal_files_that_are_not_links_are_compiled_once(compiled, new, seconds):
    for folder in (compiled, new):
        (folder / SITE / "jax" / "__init__.py").write_text("def where(): pass")
    source = compiled / SITE / "jax" / "__init__.py"
    py_compile.compile(str(source))
    own = new / SITE / "jax" / "__init__.py"
    os.utime(own, (source.stat().st_mtime + seconds,) * 2)
    share(new, [compiled])
    named, loaded = import_jax(new)
    assert named == str(own), "a traceback names the file of this environment"
    assert loaded.startswith("# ")
    assert " matches " in loaded, "Python takes the bytecode"


def test_bytecode_of_an_older_source_is_not_shared(compiled, new):
    source, own = (folder / SITE / "jax" / "__init__.py" for folder in (compiled, new))
    source.write_text("NAME = 'jax/__before__'")
    os.utime(source, (1_000, 1_000))
    py_compile.compile(str(source))
    source.write_bytes(own.read_bytes())
    share(new, [compiled])
    assert "jax.__init__" not in bytecode(new)

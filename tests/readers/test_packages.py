"""The versions that a project holds its packages to, from its lock, its requirements or what is installed."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import version

import pytest
from making import make_wheel

from export_core.readers import build as module
from export_core.readers.build import EnvironmentLocks, Recipe
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.packages import constraints_of, installed_constraints, installed_packages

UV_LOCK = """
version = 1
[[package]]
name = "mine"
version = "0.1"
source = { editable = "." }
[[package]]
name = "Optax"
version = "0.2.5"
source = { registry = "https://index" }
[[package]]
name = "jaxlib"
version = "0.9.2"
[[package]]
name = "scipy"
version = "1.15.3"
[[package]]
name = "scipy"
version = "1.17.1"
"""
PYLOCK = """
lock-version = "1.0"
[[packages]]
name = "numpy"
version = "2.3.1"
[[packages]]
name = "folder"
"""
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
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("uv.lock", UV_LOCK, ("optax==0.2.5",)),
        ("pylock.toml", PYLOCK, ("numpy==2.3.1",)),
        ("requirements.txt", FROZEN, ("flax-thing<2,>=1", "numpy==2.3.1")),
    ],
)
def test_a_lock_holds_what_the_writer_does_not_decide(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text)
    assert constraints_of(tmp_path / name) == expected


@pytest.mark.parametrize(
    ("name", "text"), [("uv.lock", "no toml"), ("a.txt", "not a requirement"), ("a.txt", "-r base.txt")]
)
def test_a_file_that_is_no_lock_is_told(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(EnvironmentFailed, match=rf"--constraints .*{name}: expected a lock .*: "):
        constraints_of(tmp_path / name)


def test_what_is_installed_here_is_held_without_jax_and_folders():
    held = installed_constraints()
    assert f"numpy=={version('numpy')}" in held
    assert not [line for line in held if line.startswith(("jax==", "jaxlib==", "pytest-jaxexport=="))]
    assert installed_packages()["jaxlib"] == version("jaxlib")


def test_constraints_decide_what_is_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    for number in ("1.0", "2.0"):
        make_wheel(tmp_path, "tiny", number)
    top = make_wheel(tmp_path, "top", "1.0", needs="tiny")
    options = ("--no-index", f"--find-links={tmp_path}")
    check = "import tiny; print(tiny.__version__)"
    plain = Recipe("tiny", sys.executable, (str(top),), check, options=options)
    held = Recipe("tiny", sys.executable, (str(top),), check, options=options, constraints=("tiny==1.0",))
    with EnvironmentLocks() as locks:
        assert module.build(plain, locks).checked == "2.0"
        assert module.build(held, locks).checked == "1.0"
        with pytest.raises(EnvironmentFailed, match=r"(?s)installing .*tiny==3\.0"):
            module.build(replace(held, constraints=("tiny==3.0",)), locks)

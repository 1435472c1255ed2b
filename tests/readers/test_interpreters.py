"""How a CPython is found: on PATH, by pyenv, by uv or by a download, without shims that lead nowhere."""

import sys
from pathlib import Path

import pytest
from making import day

from export_core.readers import environment as environments
from export_core.readers.build import Built, Recipe, find_python, interpreter_for, interpreter_here, python_for
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.placement import Placement
from export_core.releases import JaxlibRelease, Release, load_calendar

WANTED = "3.77"  # a version that does not exist


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def python(path: Path, version: str = f"{WANTED}.1") -> Path:
    return script(path, f"echo Python {version}")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with an empty PATH, no pyenv, and a uv that can download nothing."""
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    script(tmp_path / "uv-command", "echo 'error: no download found for 3.77' >&2; exit 2")
    return tmp_path


def find(machine: Path, version: str = WANTED) -> str:
    return find_python(version, str(machine / "uv-command"))


def test_the_version_of_this_python_needs_no_search(machine):
    found = find(machine, f"{sys.version_info.major}.{sys.version_info.minor}")
    assert Path(found) == Path(sys._base_executable)


@pytest.mark.parametrize("folder", ["path", f"pyenv/versions/{WANTED}.1/bin", f"uv/cpython-{WANTED}.1-linux/bin"])
def test_a_python_of_path_pyenv_or_uv_is_found(machine, folder):
    expected = python(machine / folder / f"python{WANTED}")
    assert find(machine) == str(expected)


def test_relative_pyenv_and_uv_folders_are_in_the_working_folder(machine, monkeypatch):
    monkeypatch.chdir(machine)
    for variable, folder in (("PYENV_ROOT", "pyenv"), ("UV_PYTHON_INSTALL_DIR", "uv")):
        monkeypatch.setenv(variable, folder)
    old = python(machine / f"uv/cpython-{WANTED}.1-linux/bin/python{WANTED}")
    assert find(machine) == str(old)
    new = python(machine / f"pyenv/versions/{WANTED}.1/bin/python{WANTED}")
    assert find(machine) == str(new)


@pytest.mark.parametrize(
    "shim",
    [
        "echo 'pyenv: version 3.77 is not installed' >&2; exit 127",
        "echo Python 3.6.1",
        "exit 0",
        "echo Python 3.77.1; exit 1",
        None,
    ],
    ids=["not activated", "another version", "silent", "fails", "no program"],
)
def test_a_shim_that_leads_nowhere_is_skipped(machine, shim):
    path = script(machine / "path" / f"python{WANTED}", shim or "")
    if shim is None:
        path.chmod(0o644)
    expected = python(machine / "pyenv" / "versions" / f"{WANTED}.0" / "bin" / f"python{WANTED}")
    assert find(machine) == str(expected)


def test_uv_downloads_a_python_that_is_missing(machine):
    script(machine / "uv-command", f'[ "$*" = "python install {WANTED}" ]')
    assert find(machine) == WANTED


def test_a_downloaded_python_is_found_at_the_same_path_again(machine):
    expected = machine / "uv" / f"cpython-{WANTED}.1-linux" / "bin" / f"python{WANTED}"
    downloading = (
        f"mkdir -p {expected.parent}; printf '#!/bin/sh\necho Python {WANTED}.1\n' > {expected}; chmod +x {expected}"
    )
    script(machine / "uv-command", f"PATH=/bin:/usr/bin; {downloading}")
    assert find(machine) == find(machine) == str(expected)


def test_finding_the_folder_of_an_environment_downloads_nothing(machine, monkeypatch):
    script(machine / "uv-command", f"echo asked > {machine}/asked")
    monkeypatch.setattr(environments, "uv_command", lambda: str(machine / "uv-command"))
    calendar = load_calendar().extended({"9.9": JaxlibRelease(day("2026-11-20"), ("3.76", WANTED))}, {})
    release = Release(jax="0.12.0.1", jaxlib="9.9", built=day("2026-11-20"))
    placement, readers = Placement(release), ReaderEnvironments(calendar)
    assert interpreter_here(("3.76", WANTED)) is readers.folder(placement) is readers.find(placement) is None
    other = python(machine / "path" / "python3.76", "3.76.1")
    assert interpreter_here(("3.76", WANTED)).python == str(other)
    assert readers.folder(placement)
    assert not (machine / "asked").exists()


def test_the_error_without_any_python_says_what_to_do(machine):
    with pytest.raises(EnvironmentFailed) as raised:
        find(machine)
    assert "CPython 3.77 is needed and was not found" in str(raised.value)
    assert "error: no download found for 3.77" in str(raised.value)
    assert "put python3.77 on PATH" in str(raised.value)


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        (("3.10", "3.12", "3.13"), "3.12"),
        (("3.9", "3.10"), "3.10"),
        (("3.13", "3.14"), "3.14"),
        (("3.8", "3.9", "3.10", "3.11"), "3.11"),
    ],
)
def test_a_release_runs_on_python_3_12_or_else_on_its_newest_python(pythons, chosen):
    assert python_for(pythons) == chosen


def test_a_release_runs_on_another_python_if_the_best_is_missing(machine):
    python(machine / "path" / "python3.75", "3.75.1")
    expected = python(machine / "pyenv" / "versions" / "3.76.1" / "bin" / "python3.76", "3.76.1")
    chosen = interpreter_for(("3.75", "3.76", WANTED), str(machine / "uv-command"))
    assert chosen.python == str(expected)
    assert chosen.note == "runs on CPython 3.76, since CPython 3.77 was not found here"


def test_the_preferred_python_is_downloaded_though_another_is_here(machine):
    python(machine / "path" / "python3.76", "3.76.1")
    script(machine / "uv-command", f'echo "$*" >> {machine}/asked')
    chosen = interpreter_for(("3.76", WANTED), str(machine / "uv-command"))
    assert (chosen.python, chosen.note) == (WANTED, "")
    assert (machine / "asked").read_text() == f"python install {WANTED}\n"


def test_a_failed_download_is_not_tried_again(machine):
    script(machine / "uv-command", f'echo "$*" >> {machine}/asked; exit 2')
    for _ in range(3):
        with pytest.raises(
            EnvironmentFailed, match=r"put python3\.77 on PATH\. The release has wheels for CPython 3\.76, 3\.77, "
        ):
            interpreter_for(("3.76", WANTED), str(machine / "uv-command"))
    assert (machine / "asked").read_text() == f"python install {WANTED}\n"


def test_a_fallback_python_gets_its_own_environment(machine, monkeypatch):
    recipes: list[Recipe] = []

    def build(recipe: Recipe, *_: object, **__: object) -> Built:
        recipes.append(recipe)
        return Built(recipe.folder, '["0.12.0.1", "9.9"]', "hash")

    monkeypatch.setattr(environments, "build", build)
    monkeypatch.setattr(environments, "uv_command", lambda: str(machine / "uv-command"))
    calendar = load_calendar().extended({"9.9": JaxlibRelease(day("2026-11-20"), ("3.76", WANTED))}, {})
    release = Release(jax="0.12.0.1", jaxlib="9.9", built=day("2026-11-20"))
    notes: list[str] = []
    for version in ("3.76", WANTED):
        python(machine / "path" / f"python{version}", f"{version}.1")
        environment = ReaderEnvironments(calendar, notify=notes.append).build(Placement(release))
        assert environment.note == (notes[0].removeprefix("jaxlib 9.9 ") if version == "3.76" else "")
    assert notes == ["jaxlib 9.9 runs on CPython 3.76, since CPython 3.77 was not found here"]
    assert recipes[0].folder != recipes[1].folder

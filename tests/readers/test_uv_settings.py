"""Settings of uv: the working folder decides nothing in the environments that all projects share."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import sys
import tarfile
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from making import make_wheel, release

from export_core.features.backfill import backfill
from export_core.policy import Policy
from export_core.readers import build as module
from export_core.readers import uv_settings
from export_core.readers.build import Built, EnvironmentLocks, Recipe, build, find_python
from export_core.readers.environment import ReaderEnvironments, Sources
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.placement import Placement
from export_core.readers.uv_settings import project_place
from export_core.releases import load_calendar

CHECK = "import tiny, json, sys; print(tiny.__version__)"
BACKEND = """
import os, pathlib, zipfile
pathlib.Path({marker!r}).write_text(os.environ.get("SECRET_TOKEN", "no token"))

def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(os.path.join(folder, "tiny-99.0-py3-none-any.whl"), "w") as archive:
        info = "tiny-99.0.dist-info"
        archive.writestr("tiny/__init__.py", "__version__ = '99.0'")
        archive.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 99.0\\n")
        archive.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(info + "/RECORD", "")
    return "tiny-99.0-py3-none-any.whl"
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def make_sdist(folder: Path, marker: Path) -> None:
    """Make a package tiny 99.0 whose build writes a file, which shows that code ran and whether it had a token."""
    source = folder / "tiny-99.0"
    source.mkdir(parents=True)
    (source / "pyproject.toml").write_text(PYPROJECT + '[project]\nname = "tiny"\nversion = "99.0"\n')
    (source / "backend.py").write_text(BACKEND.format(marker=str(marker)))
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 99.0\n")
    with tarfile.open(folder / "tiny-99.0.tar.gz", "w:gz") as archive:
        archive.add(source, "tiny-99.0")


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """The configuration folder of a user without a configuration of uv and without its variables."""
    for name in list(os.environ):
        if name.startswith("UV_"):
            monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    (tmp_path / "xdg_config_home" / "uv").mkdir(parents=True)
    return tmp_path / "xdg_config_home" / "uv"


@pytest.fixture
def wheels(tmp_path) -> Path:
    (tmp_path / "wheels").mkdir()
    make_wheel(tmp_path / "wheels", "tiny", "1.0")
    return tmp_path / "wheels"


@pytest.fixture
def project(tmp_path, cache, home, monkeypatch) -> Path:
    """A working folder with all that could influence an environment: configurations, sources, modules, variables."""
    parent = tmp_path / "parent"
    folder = parent / "project"
    make_sdist(folder / "links", tmp_path / "ran")
    (folder / "uv.toml").write_text('find-links = ["./links"]\noverride-dependencies = ["tiny==99.0"]\n')
    (parent / "pyproject.toml").write_text(
        f'[project]\nname = "x"\nversion = "1"\nrequires-python = "==2.7"\n[tool.uv]\nfind-links = ["{folder}/links"]\n'
    )
    (folder / ".python-version").write_text("2.7")
    for name in ("tiny", "jax", "jaxlib"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('a module of the working folder')")
    (folder / "json.py").write_text("raise SystemExit('a module of the working folder')")
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    # Temporary files are below the project too, which must not matter.
    (folder / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(folder)
    return folder


def recipe(wheels: Path, *requirements: str, **more: object) -> Recipe:
    options = ("--offline", f"--find-links={wheels}")
    return Recipe("tiny", sys.executable, requirements or ("tiny",), CHECK, options=options, **more)


def test_the_working_folder_does_not_affect_a_reader(project, wheels, tmp_path):
    with EnvironmentLocks() as locks:
        built = build(recipe(wheels), locks)
    assert built.checked == "1.0"
    assert not (tmp_path / "ran").exists(), "code of the project ran"


def test_uv_runs_in_the_project_only_for_the_projects_environments(project, wheels, tmp_path, monkeypatch):
    uv = tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\npwd >> {tmp_path}/folders\nls >> {tmp_path}/files\nexit 1\n")
    uv.chmod(0o755)
    monkeypatch.setattr(module, "uv_command", lambda: str(uv))
    with EnvironmentLocks() as locks, pytest.raises(EnvironmentFailed, match="tried twice"):
        build(recipe(wheels), locks)
    module._why_not_downloaded("3.98", str(uv))
    assert len(used := (tmp_path / "folders").read_text().split()) == 3
    assert {Path(folder).parent for folder in used} == {project / "tmp"}
    assert {*(tmp_path / "files").read_text().split()} == {"owner.lock", "uv.toml"}
    with EnvironmentLocks() as locks, pytest.raises(EnvironmentFailed, match="tried twice"):
        build(recipe(wheels, project=str(project)), locks)
    assert {*(tmp_path / "folders").read_text().split()[3:]} == {str(project)}


def test_a_package_without_a_wheel_is_not_built(project, tmp_path):
    links = recipe(project / "links")
    with EnvironmentLocks() as locks:
        with pytest.raises(EnvironmentFailed, match=r"(?s)tiny.*reader_packages_from_source"):
            build(links, locks)
        assert not (tmp_path / "ran").exists()
        assert build(replace(links, from_source=("tiny",)), locks).checked == "99.0"
    assert (tmp_path / "ran").read_text() == "no token"


def test_a_projects_configuration_applies_to_its_writers(project, tmp_path, wheels):
    (project / "tiny" / "__init__.py").unlink()
    with EnvironmentLocks() as locks:
        built = build(recipe(wheels, project=str(project)), locks)
    assert (built.checked, (tmp_path / "ran").read_text()) == ("99.0", "s3cret")


def test_setuptools_leaves_no_egg_info_in_a_project(tmp_path, monkeypatch):
    monkeypatch.delenv("DIST_EXTRA_CONFIG", raising=False)
    with project_place(str(tmp_path / "project")) as place:
        settings = configparser.RawConfigParser()  # as distutils reads it
        settings.read(place.variables["DIST_EXTRA_CONFIG"])
        base = Path(settings["egg_info"]["egg_base"])
        assert base.is_dir()
        assert tmp_path / "project" not in (base, *base.parents)
    assert not base.exists()
    monkeypatch.setenv("DIST_EXTRA_CONFIG", "own.cfg")
    with project_place(str(tmp_path)) as place:
        assert place.variables["DIST_EXTRA_CONFIG"] == "own.cfg"


def test_writers_of_two_projects_have_separate_environments(tmp_path, cache, home, monkeypatch):
    asked: list[Recipe] = []

    def fake(recipe: Recipe, *_: object, **__: object) -> Built:
        asked.append(recipe)
        return Built(tmp_path, "0.12.0.1 0.12.0.1", "")

    monkeypatch.setattr(backfill, "build", fake)
    chosen = backfill.choose_writers("0.12.0.1", load_calendar())
    for name, configuration in (("a", ""), ("b", ""), ("a", "offline = true")):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "uv.toml").write_text(configuration)
        monkeypatch.chdir(tmp_path / name)
        backfill._build_writer(chosen.chosen[0], chosen, ("numpy",), (), EnvironmentLocks(), None)
    assert [one.project for one in asked] == [str(tmp_path / name) for name in "aba"]
    assert len({one.folder for one in asked}) == 3


# --- settings of the user ---------------------------------------------------------------------------------------------


def test_an_installation_gets_only_allowed_variables(tmp_path, home, monkeypatch):
    passed = {
        *("PATH", "HOME", "LC_ALL", "HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE", "UV_INDEX_MINE_PASSWORD"),
        *("UV_DEFAULT_INDEX", "UV_CACHE_DIR"),
    }
    dropped = {
        *("SECRET_TOKEN", "AWS_SECRET_ACCESS_KEY", "UV_OVERRIDE", "UV_CONSTRAINT", "UV_NO_BINARY", "UV_PROJECT"),
        *("UV_WORKING_DIRECTORY", "UV_CONFIG_FILE", "PYTHONPATH", "VIRTUAL_ENV", "JAX_ENABLE_X64", "LD_PRELOAD"),
    }
    monkeypatch.chdir(tmp_path)
    for name in passed | dropped:
        monkeypatch.setenv(name, "a-value")
    with uv_settings.shared_place() as place:
        passed_on = {name: value for name, value in place.variables.items() if "a-value" in value}
        assert place.variables["UV_CONFIG_FILE"] == str(place.folder / "uv.toml")
    assert passed_on.keys() == passed
    assert passed_on["UV_CACHE_DIR"] == str(tmp_path / "a-value"), "uv runs in another folder"


def test_only_known_keys_of_uv_toml_are_used(tmp_path, home, monkeypatch):
    (home / "uv.toml").write_text(
        'index-url = "https://me:s3cret@index"\nfind-links = ["links", "https://host/x"]\nno-proxy = ["a"]\n'
        'override-dependencies = ["jax==0.1"]\nno-binary-package = ["numpy"]\n'
        '[[index]]\nname = "mine"\nurl = "simple"\ndefault = true\n[pip]\nno-index = true\noverrides = ["x"]\n'
    )
    machine = tmp_path / "xdg_config_dirs" / "uv"
    machine.mkdir(parents=True)
    (machine / "uv.toml").write_text('index-url = "https://other"\nno-proxy = ["b"]\noffline = true\n')
    with uv_settings.shared_place() as place:
        written = tomllib.loads((place.folder / "uv.toml").read_text())
    assert written == {
        "index-url": "https://me:s3cret@index",
        "find-links": [str(home / "links"), "https://host/x"],
        "no-proxy": ["a", "b"],
        "offline": True,
        "index": [{"name": "mine", "url": str(home / "simple"), "default": True}],
        "pip": {"no-index": True},
    }
    assert "s3cret" not in json.dumps(uv_settings.index_settings())


def test_the_users_configuration_reaches_uv(project, home, wheels):
    (home / "uv.toml").write_text(f'find-links = ["{os.path.relpath(wheels, home)}"]\nno-index = true\n')
    with EnvironmentLocks() as locks:
        assert build(replace(recipe(wheels), options=()), locks).checked == "1.0"


def test_a_configuration_that_is_not_toml_is_reported(home):
    (home / "uv.toml").write_text("index = [")
    with pytest.raises(EnvironmentFailed, match=r"uv\.toml: expected uv's configuration in TOML: "):
        uv_settings.index_settings()


# --- an environment's name --------------------------------------------------------------------------------------------


def test_settings_that_choose_packages_change_an_environments_name(cache, home, wheels, monkeypatch):
    plain = recipe(wheels)
    before = plain.folder
    names = {before, replace(plain, from_source=("tiny",)).folder, replace(plain, project="/a").folder}
    for url in ("https://a/x", "https://b/x"):
        monkeypatch.setenv("UV_INDEX_URL", url)
        names.add(plain.folder)
    monkeypatch.delenv("UV_INDEX_URL")
    for key in uv_settings.INDEX_KEYS:
        (home / "uv.toml").write_text(f'{key} = ["x"]')
        names.add(plain.folder)
    assert len(names) == 5 + len(uv_settings.INDEX_KEYS)
    (home / "uv.toml").write_text("offline = true")
    assert plain.folder == before, "where packages are fetched from decides, not how"


def test_an_environments_name_ignores_passwords(cache, home, wheels, monkeypatch):
    folders = set()
    for password in ("one", "two"):
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"https://me:{password}@index/simple")
        monkeypatch.setenv("UV_INDEX_MINE_PASSWORD", password)
        folders.add(recipe(wheels).folder)
    assert len(folders) == 1


def test_the_name_of_an_environment_without_settings_never_changes(cache, home):
    assert Recipe("a", "3.12", ("tiny",), "").folder.name == "a-5196d69de463"


def test_a_package_index_given_as_a_folder_is_made_absolute(tmp_path, monkeypatch):
    contents = set()
    for name in ("a", "b"):
        (tmp_path / name / "simple").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        sources = Sources(indexes=("simple",))
        assert f"--index={tmp_path / name / 'simple'}" in sources.options()
        contents.add(sources.content(release("0.12.0.1")))
    assert len(contents) == 2


def test_the_policy_names_packages_to_build_from_source(monkeypatch, cache):
    asked: list[Recipe] = []
    monkeypatch.setattr("export_core.readers.environment.build", lambda recipe, *_, **__: asked.append(recipe))
    policy = Policy(reader_packages=("optax",), reader_packages_from_source=("optax",))
    with ReaderEnvironments.of(policy, load_calendar()) as environments, pytest.raises(AttributeError):
        environments.build(Placement(release("0.12.0.1")))
    assert [one.from_source for one in asked] == [("optax",)]


# --- every call in the source code ------------------------------------------------------------------------------------

PROGRAMS_BY_PATH = ("PROGRAM", "program", "SECOND_RUN_FILE")
"""Programs of ours that are started by path, so that `sys.path` has their folder and not the working folder."""
TESTS_OF_THE_PROJECT = "[str(environment.python), '-m', 'pytest', *_PLUGIN, *words, *pytest_args]"


def test_every_python_is_started_without_the_working_folder():
    lists = [
        (node, node.elts if isinstance(node, ast.List) else node.args)
        for node in nodes("sys.executable", ".python)", "interpreter_in(")
        if isinstance(node, ast.List | ast.Call)
    ]
    commands = {ast.unparse(node): parts for node, parts in lists if len(parts) > 1 and is_interpreter(parts[0])}
    started = {text: parts for text, parts in commands.items() if "'-" in text or "PROGRAM" in text}
    assert len(started) == 11, f"a start that this test does not know: {[*started]}"
    unsafe = [
        text
        for text, parts in started.items()
        if not {"'-I'", "'-P'", "'--version'"} & {ast.unparse(part) for part in parts}
        and not any(name in ast.unparse(part) for part in parts for name in PROGRAMS_BY_PATH)
    ]
    assert unsafe == [TESTS_OF_THE_PROJECT], "-I, or -P where PYTHONPATH counts"


def test_process_pools_start_without_project_modules():
    having = [path for path in source_files() if re.search(r"multiprocessing|ProcessPool", path.read_text())]
    assert [path.name for path in having if path.name != "processes.py"] == ["folders.py"]
    (archive,) = (ast.parse(path.read_text()) for path in having if path.name == "folders.py")
    starts = ("ProcessPoolExecutor(", "pool.submit(")
    safely = [
        node
        for node in ast.walk(archive)
        if isinstance(node, ast.With) and ast.unparse(node.items[0]) == "starting_processes()"
    ]
    inside = [ast.unparse(node.body[0]) for node in safely]
    assert [ast.unparse(archive).count(start) for start in starts] == [1, 1]
    assert [sum(start in text for text in inside) for start in starts] == [1, 1]


def test_every_start_of_uv_in_the_source_chooses_its_folder():
    having = [path.name for path in source_files() if "find_uv_bin" in path.read_text()]
    assert having == ["build.py"], "uv is started in one module"
    starting = ("_run", "subprocess.run", "subprocess.Popen")
    calls = [node for node in nodes("find_uv_bin") if isinstance(node, ast.Call)]
    starts = [ast.unparse(node) for node in calls if ast.unparse(node.func) in starting]
    assert len(starts) == 6, starts
    assert [text for text in starts if not ("place" in text or "cwd=os.sep" in text)] == []


def source_files() -> list[Path]:
    root = Path(module.__file__).parents[2]
    return [path for name in ("export_core", "pytest_jaxexport") for path in sorted((root / name).rglob("*.py"))]


def nodes(*words: str) -> list[ast.AST]:
    """Return all nodes of the source files that contain one of the words."""
    texts = [path.read_text() for path in source_files()]
    return [node for text in texts if any(word in text for word in words) for node in ast.walk(ast.parse(text))]


def is_interpreter(node: ast.expr) -> bool:
    text = ast.unparse(node)
    interpreter = r"str\(.*(\.python|interpreter_in\((recipe\.)?folder\))\)"
    return text == "sys.executable" or re.fullmatch(interpreter, text) is not None


def test_a_python_in_the_working_folder_is_not_used(tmp_path, monkeypatch):
    for folder in (tmp_path / "project", tmp_path / "bin"):
        folder.mkdir()
        (folder / "python3.99").write_text("#!/bin/sh\necho Python 3.99.0\n")
        (folder / "python3.99").chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", str(tmp_path / "bin")]))
    assert find_python("3.99", "uv") == str(tmp_path / "bin" / "python3.99")

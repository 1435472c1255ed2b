"""The layers of the code: imports run downwards only, and only some modules import jax, pytest or nox."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from export_core.features import FEATURES

ROOT = Path(__file__).parents[1]

ROOMS = (
    ("base",),
    ("releases",),
    ("artifact", "runtimes"),
    ("knowledge",),
    ("policy",),
    ("goldens",),
    ("export", "readers"),
    ("numbers",),
    ("matrix",),
    ("judge",),
    ("run",),
    ("report", "scripting"),
    ("cli",),
)
"""The folders (rooms) of the kernel, lowest first. A module may import from its own room and from lower ones."""

FLOORS = {f"export_core.{room}": floor for floor, rooms in enumerate(ROOMS) for room in rooms}
FLOORS |= {f"export_core.features.{name}": len(ROOMS) for name in FEATURES}
FLOORS |= {"export_core.features": len(ROOMS), "export_core.__main__": len(ROOMS), "pytest_jaxexport": len(ROOMS) + 1}

JAX = {
    "export_core.readers.worker.jaxlib_worker",
    "export_core.readers.worker.moved_inside",
    "export_core.runtimes.pjrt_worker",
    "export_core.runtimes.stablehlo_worker",
    "export_core.features.inspect.printed_module",
    "export_core.features.convert.rewriting.rewriting_program",
    "export_core.features.convert.rewriting.lapack",
    "export_core.features.convert.rewriting.shardy",
    "export_core.features.convert.rewriting.export_again",
    "export_core.features.why.explain.bundle_script",
    "export_core.features.why.reduce.editing.editing_program",
    "export_core.features.why.reduce.editing.program_parts",
}
"""Modules outside of export/ that import jax or jaxlib: programs that run in readers, and the printing of modules."""

PUBLISHED = {
    *("export_core.policy", "export_core.scripting"),
    *("export_core.artifact", "export_core.base", "export_core.goldens", "export_core.releases"),  # the errors
}
"""The rooms whose names can be imported from the package itself."""

UPWARDS = []
"""Accepted imports that run upwards or between features. There are none, and none may be added."""

NUMERIC = {"jax", "jaxlib", "numpy", "ml_dtypes"}
MODULES = sorted(path for package in ("export_core", "pytest_jaxexport") for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports_of(path: Path, *, at_load_only: bool = False) -> tuple[str, ...]:
    """Return every module that a file imports. Unless `at_load_only`, imports in functions and for types count too."""
    return tuple(_imports_of(path, at_load_only))


def _imports_of(path: Path, at_load_only: bool) -> Iterator[str]:
    nodes: list[ast.AST] = [parsed(path)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # The worker's files find each other where there is no package of ours.
            beside = path.parent.name == "worker" and node.level == 1
            assert beside or not node.level, f"{path}: a relative import hides which floor it goes to"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if at_load_only and (isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or _for_types(node)):
            continue
        nodes += (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def packages_of(path: Path, *, at_load_only: bool = False) -> set[str]:
    return {imported.split(".")[0] for imported in imports_of(path, at_load_only=at_load_only)}


@functools.cache
def room_of(module: str) -> str | None:
    rooms = [room for room in FLOORS if module == room or module.startswith(room + ".")]
    return max(rooms, key=len, default=None)


def test_every_module_belongs_to_a_room_of_the_house():
    assert [name_of(path) for path in MODULES if room_of(name_of(path)) is None] == ["export_core"]


def test_imports_run_downwards_only():
    """The package itself imports only what it makes public, and only when that is used."""
    upwards = {
        f"{name_of(path)} -> {room_of(imported)}"
        for path in MODULES
        for imported in imports_of(path)
        if not may_look(room_of(name_of(path)), room_of(imported))
    }
    assert sorted(upwards) == UPWARDS


def may_look(here: str | None, there: str | None) -> bool:
    if there is None or here is None:
        return there is None or there in PUBLISHED
    return there == here or FLOORS[there] < FLOORS[here]


def test_only_export_and_the_worker_import_jax():
    having = {name_of(path) for path in MODULES if packages_of(path) & {"jax", "jaxlib"}}
    assert {name for name in having if not name.startswith("export_core.export")} == JAX


def test_the_core_does_not_import_pytest_or_nox():
    core = [path for path in MODULES if name_of(path).startswith("export_core")]
    assert [name_of(path) for path in core if packages_of(path) & {"pytest", "_pytest", "nox"}] == []


def test_the_worker_imports_nothing_of_ours_and_nothing_heavy():
    for name in ("program", "calls", "moved_inside", "jaxlib_worker"):
        worker = ROOT / "export_core" / "readers" / "worker" / f"{name}.py"
        assert all(room_of(imported) is None for imported in imports_of(worker))
        # The kernel imports `program` too. The others run in a process of their own, which imports jax.
        assert name != "program" or not packages_of(worker, at_load_only=True) & NUMERIC


def test_artifact_and_release_code_imports_no_jax_or_numpy():
    light = ("export_core.artifact", "export_core.releases", "export_core.knowledge")
    these = [path for path in MODULES if room_of(name_of(path)) in light]
    assert [name_of(path) for path in these if packages_of(path, at_load_only=True) & NUMERIC] == []


@pytest.mark.parametrize(
    "name", ["plugin", "marker", "options", "collected", "ledger", "reviewing", "stash", "__init__"]
)
def test_modules_that_every_pytest_run_loads_are_light(name):
    found = set(imports_of(ROOT / "pytest_jaxexport" / f"{name}.py", at_load_only=True))
    assert not {imported for imported in found if imported.split(".")[0] in {*NUMERIC, "export_core", "nox"}}


def test_only_nox_sessions_imports_nox():
    assert [name_of(path) for path in MODULES if "nox" in packages_of(path)] == ["pytest_jaxexport.nox_sessions"]
    loaded = packages_of(ROOT / "pytest_jaxexport" / "nox_sessions.py", at_load_only=True)
    assert loaded <= {
        "nox",
        "export_core",
        "pytest_jaxexport",
        "__future__",
        "sys",
        "pathlib",
        "datetime",
        "collections",
    }


def test_every_module_has_a_docstring():
    assert [name_of(path) for path in MODULES if not ast.get_docstring(parsed(path))] == []


def test_no_docstring_begins_by_referring_to_another():
    """A docstring such as "The same for ..." would be understood only with the one above it."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [(path, node) for path in MODULES for node in ast.walk(parsed(path)) if isinstance(node, documented)]
    assert len(nodes) > 2000
    leaning = ("The same ", "That of ", "Those of ", "See ")
    texts = [(path.name, ast.get_docstring(node) or "") for path, node in nodes]
    assert [(file, text) for file, text in texts if text.startswith(leaning)] == []

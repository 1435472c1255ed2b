"""The packages that the environment of a writer will have and lack for a project's tests, before it is built."""

import ast
import os
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from export_core.base.untrusted import read_named, read_regular
from export_core.readers.packages import imported_modules, packages_with

_ALWAYS = ("jax", "jaxlib", "numpy", "pytest", "pytest-jaxexport")  # What each of these requires is there too.
_MARKED = (b"export_compat", b"export_golden")  # What a file with a marked test contains.
_DEPENDENCIES = frozenset(("dependencies", "optional-dependencies"))  # Keys of a project in pyproject.toml.
_MOST_FILES = 5_000  # So many files of Python are looked at.


def project_dependencies(requirement: str) -> list[str] | None:
    """Return the project's dependencies if a requirement, such as ``-e.`` or ``.[test]``, is the working folder.

    The list is empty for any other requirement. None if the project does not list its dependencies in pyproject.toml.
    """
    path, _, extras = requirement.removeprefix("-e").strip().removeprefix("file://").partition("[")
    if not path or (Path(path).name and not os.path.lexists(path)) or Path(path).resolve() != Path.cwd():
        return []
    try:
        project = tomllib.loads(read_named(Path("pyproject.toml")).decode()).get("project")
    except (OSError, ValueError):
        return None
    if not isinstance(project, dict) or _DEPENDENCIES.intersection(project.get("dynamic", ())):
        return None
    own, optional = project.get("dependencies", []), project.get("optional-dependencies", {})
    named = [extra.strip() for extra in extras.removesuffix("]").split(",")]
    # What cannot be read so, the installer refuses.
    added = [optional.get(extra, []) for extra in named] if isinstance(optional, dict) else []
    return [str(text) for part in (own, *added) if isinstance(part, list) for text in part]


def lacking_modules(requirements: Sequence[str], pytest_args: Sequence[str]) -> dict[str, str]:
    """Return the modules that marked tests import and that no requirement installs, each with its package here.

    The package is "" for a module that is not installed here. Imports by modules of the project count too. What a
    requirement installs is known only of packages that are installed here. The result is empty if the project does not
    list its dependencies.

    Args:
        requirements: What is installed beside jax, as pip names it.
        pytest_args: The arguments of pytest, whose paths say which tests are run.
    """
    installed = {*_ALWAYS}
    for text in requirements:
        own = project_dependencies(text)
        if own is None:
            return {}
        installed |= {*own, *([] if own or text.startswith("-e") else [text])}
    names = _with_dependencies(installed)
    lacking = {}
    for module in sorted(_imported_modules(_test_files(pytest_args))):
        packages = packages_with(module)
        if module not in sys.stdlib_module_names and names.isdisjoint(map(canonicalize_name, (module, *packages))):
            lacking[module] = next(iter(packages), "")
    return lacking


def _with_dependencies(requirements: Iterable[str]) -> set[str]:
    """Return the names of these packages and of all that they require, as far as they are installed here."""
    names: set[str] = set()
    seen: set[str] = set()
    left = list(requirements)
    while left:
        text = left.pop()
        if text in seen:
            continue
        seen.add(text)
        try:
            requirement = Requirement(text)
        except InvalidRequirement:  # a folder or a file
            continue
        names.add(canonicalize_name(requirement.name))
        try:
            own = metadata.requires(requirement.name) or ()
        except metadata.PackageNotFoundError:
            continue
        for each in map(Requirement, own):
            extras = requirement.extras or {""}
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras):
                left.append(f"{each.name}[{','.join(sorted(each.extras))}]" if each.extras else each.name)
    return names


def _test_files(pytest_args: Sequence[str]) -> list[Path]:
    """Return the files of marked tests that pytest would collect, and each conftest.py above one."""
    named = [Path(word.partition("::")[0]) for word in pytest_args if not word.startswith("-")]
    found = [file for path in [path for path in named if path.exists()] or [Path()] for file in _python_files(path)]
    marked = [
        file
        for file in found
        if (file.name.startswith("test_") or file.stem.endswith("_test") or file in named)
        and any(word in _content(file) for word in _MARKED)
    ]
    above = {folder / "conftest.py" for file in marked for folder in file.parents}
    return [*marked, *(file for file in sorted(above) if file.is_file())]


def _python_files(path: Path) -> Iterator[Path]:
    """Yield the Python files at or below a path, without those of environments and hidden folders."""
    if path.is_file():
        yield path
        return
    count = 0
    for parent, folders, names in os.walk(path):
        folders[:] = sorted(
            name for name in folders if name[0] != "." and not os.path.lexists(f"{parent}/{name}/pyvenv.cfg")
        )
        for name in sorted(names):
            if name.endswith(".py") and count < _MOST_FILES:
                count += 1
                yield Path(parent, name)


def _content(file: Path) -> bytes:
    try:
        return read_regular(file)
    except (OSError, ValueError):
        return b""


def _imported_modules(files: Iterable[Path]) -> set[str]:
    """Return the top-level modules that these files import, directly or through modules of the project."""
    left, seen, others = list(files), set[Path](), set[str]()
    while left:
        file = left.pop()
        if file in seen or len(seen) > _MOST_FILES:
            continue
        seen.add(file)
        code = _parsed(file)
        modules = {*imported_modules(code)}
        for module in modules:
            own = [*_files_of(module, file)]
            left += own
            if not own and not module.startswith("."):
                others.add(module.partition(".")[0])
        # `from package import name` may import a module.
        for node in ast.walk(code):
            if isinstance(node, ast.ImportFrom) and (base := "." * node.level + (node.module or "")) in modules:
                names = (f"{base}{'' if base.endswith('.') else '.'}{alias.name}" for alias in node.names)
                left += [found for name in names for found in _files_of(name, file)]
    return others


def _parsed(file: Path) -> ast.AST:
    try:
        return ast.parse(_content(file))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _files_of(module: str, importer: Path) -> Iterator[Path]:
    """Yield the files of the project that an import in a file loads; none if the module is not the project's."""
    name = module.lstrip(".")
    level = len(module) - len(name)
    folders = [importer.parents[level - 1]] if 0 < level <= len(importer.parents) else []
    folders = folders if level else [importer.parent, Path(), Path("src")]
    parts = name.split(".") if name else []
    for folder in folders:
        for end in range(0 if level else 1, len(parts) + 1):
            place = folder.joinpath(*parts[:end])
            yield from (file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file())
        if parts and (folder / parts[0]).is_dir() and not level:  # a namespace package
            yield from (folder / parts[0]).glob("__init__.py")

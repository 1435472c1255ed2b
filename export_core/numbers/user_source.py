"""A hash of the source code of a user's comparator: its Python module and what that imports. No code of it is run.

What the comparator reads itself, such as a file of numbers, does not count.
"""

import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from export_core.base.untrusted import LARGEST, read_named

_TOOL = __name__.partition(".")[0]
_ALSO_OURS = ("numpy", "ml_dtypes")
"""Packages that do not count: this program's own comparators work with any version of them. Their versions may differ
on another machine on which a run is judged."""
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*(?:import[ \t]+(?P<modules>[^\n;#]+)"
    rb"|from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t]*(?P<names>\((?:#[^\n]*|[^)#])*\)|(?:\\\n|[^\n;#])+))",
    re.MULTILINE,
)
"""What may be an import. Text that only looks like an import adds modules that do no harm; to parse the source would
take ten times as long."""


def source_hash(name: str) -> str:
    """Return a hash of the source of a comparator, ``module:function``; empty if its Python module is not found.

    The hash covers the module, the packages around it, and each module of the project that one of them imports, at any
    depth. If the comparator is installed, the hash covers its whole package. Of other installed packages, only the
    version counts; NumPy, ml_dtypes and Python's own modules do not count. Modules are searched for as by a `UserCode`
    with the working folder as its root.
    """
    module = name.partition(":")[0]
    if not all(part.isidentifier() for part in module.split(".")):  # from a plan that was changed
        return ""
    own = module.partition(".")[0]
    finder = _Finder(Path.cwd().resolve())
    waiting, files, versions = [module], dict[str, str](), dict[str, str]()
    while waiting:
        imported = waiting.pop()
        top = imported.partition(".")[0]
        for spec in () if top in (*versions, *_ALSO_OURS) else finder.found(imported):
            if spec.name in files:
                continue
            if _is_of_python(spec):
                break
            if top == _TOOL or _is_installed(spec):  # this program's own code has its part of the evidence
                versions[top] = _version(top) + (_hash_of_package(spec) if top == own else "")
                break
            content = _content(spec.origin if spec.has_location else None)
            files[spec.name] = hashlib.sha256(content).hexdigest()
            waiting += _imports(content, spec)
    if module not in files and own not in versions:
        return ""
    return hashlib.sha256(repr((sorted(files.items()), sorted(versions.items()))).encode()).hexdigest()


class _Finder:
    """A finder of Python modules that imports nothing. It searches where a `UserCode` with this root would import."""

    def __init__(self, root: Path) -> None:
        self._path = sys.path if str(root) in sys.path else [str(root), *sys.path]
        self._specs: dict[str, ModuleSpec | None] = {}

    def found(self, module: str) -> Iterator[ModuleSpec]:
        """Yield the packages around a module, the outermost first, then the module itself.

        It stops at the first module that is not found.
        """
        path: Sequence[str] | None = self._path
        names = module.split(".")
        for number in range(1, len(names) + 1):
            name = ".".join(names[:number])
            if name not in self._specs:
                self._specs[name] = self._find(name, path) if path is not None else None
            if (spec := self._specs[name]) is None:
                return
            yield spec
            path = spec.submodule_search_locations

    @staticmethod
    def _find(name: str, path: Sequence[str]) -> ModuleSpec | None:
        if (spec := PathFinder.find_spec(name, path)) or "." in name:
            return spec
        for finder in sys.meta_path:  # such as that of a package which is being developed
            with contextlib.suppress(Exception):  # of somebody else
                if spec := finder.find_spec(name, None):
                    return spec
        return None


def _places(spec: ModuleSpec) -> list[str]:
    """Return the paths of a Python module: its file and, if it is a package, its folders."""
    return [*([spec.origin] if spec.has_location and spec.origin else []), *(spec.submodule_search_locations or ())]


def _is_installed(spec: ModuleSpec) -> bool:
    return any(_INSTALLED & {*Path(place).parts} for place in _places(spec))


def _is_of_python(spec: ModuleSpec) -> bool:
    """Return whether a module belongs to Python itself.

    A project may have a module of the same name, such as `test`.
    """
    if spec.name.partition(".")[0] not in sys.stdlib_module_names or _is_installed(spec):
        return False
    library = Path(os.__file__).parent
    return all(Path(place).is_relative_to(library) for place in _places(spec))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _content(path: str | Path | None) -> bytes:
    """Return the bytes of a file; no bytes for None, the file of a package without __init__.py."""
    try:
        return read_named(path, LARGEST) if path else b""
    except OSError:
        return b"not readable"


def _hash_of_package(spec: ModuleSpec) -> str:
    folders = map(Path, spec.submodule_search_locations or ())
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    digest = hashlib.sha256()
    for path in paths or map(Path, _places(spec)):
        digest.update(hashlib.sha256(_content(path)).digest())
    return digest.hexdigest()


def _imports(source: bytes, spec: ModuleSpec) -> Iterator[str]:
    """Yield the absolute names of the modules that the source of a module may import.

    For ``from a import b``, both a and a.b are yielded. `spec` is the spec of the module, for its relative imports.
    """
    package = spec.name if spec.submodule_search_locations is not None else spec.name.rpartition(".")[0]
    for match in _IMPORT.finditer(source):
        modules, module, names = (part.decode(errors="replace") if part else "" for part in match.groups())
        yield from re.findall(r"(?:^|,)\s*([\w.]+)", modules)
        if module:
            name = module.lstrip(".")
            level = len(module) - len(name)
            above = ".".join(package.split(".")[: len(package.split(".")) - level + 1]) if level else ""
            base = ".".join(filter(None, (above, name)))
            yield from (
                base,
                *(f"{base}.{part}" for part in re.findall(r"(?:^|[,(])[\s\\]*(\w+)", re.sub("#.*", "", names))),
            )

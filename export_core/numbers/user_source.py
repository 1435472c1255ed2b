"""The source of a user's comparator, by a hash: of its module, and of what that imports. No code of it is run.

What it reads in another way, such as a file of numbers, is not seen.
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
"""Packages that this program's own comparators use in any version: a run is also judged on other machines."""
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_IMPORT = re.compile(
    rb"(?:^|[;:])[ \t]*(?:import[ \t]+(?P<modules>[^\n;#]+)"
    rb"|from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t]*(?P<names>\((?:#[^\n]*|[^)#])*\)|(?:\\\n|[^\n;#])+))",
    re.MULTILINE,
)
"""What may be an import. Lines of a text that look like one only add modules; to parse the source takes ten times as
long."""


def source_hash(name: str) -> str:
    """Return a hash of the source of a comparator, ``module:function``; empty where its module is not found.

    It covers the module, the packages around it, and each module of the project that one of them imports, at any depth.
    Of a comparator that is installed, it covers all of its package. Other installed packages count by their versions;
    NumPy, ml_dtypes and Python's own modules do not count. Modules are looked for as `UserCode` does in the working
    folder.
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
    """Finds modules as `UserCode` imports them, each once, and imports none."""

    def __init__(self, root: Path) -> None:
        self._path = sys.path if str(root) in sys.path else [str(root), *sys.path]
        self._specs: dict[str, ModuleSpec | None] = {}

    def found(self, module: str) -> Iterator[ModuleSpec]:
        """Find the packages around a module, the outermost first, then itself, up to the first that is not there."""
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
    """Return the file of a module, and the folders of a package."""
    return [*([spec.origin] if spec.has_location and spec.origin else []), *(spec.submodule_search_locations or ())]


def _is_installed(spec: ModuleSpec) -> bool:
    return any(_INSTALLED & {*Path(place).parts} for place in _places(spec))


def _is_of_python(spec: ModuleSpec) -> bool:
    """Return whether a module is Python's own.

    A project may have one of such a name, as `test`.
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
    """Return the bytes of a file; none for a folder without __init__.py, which is a package too."""
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
    """Return the names of modules that a source may import, absolute: of ``from a import b``, also a.b."""
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

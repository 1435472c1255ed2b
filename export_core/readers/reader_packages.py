"""What a reader's environment can import: jax and what it needs, and the packages that the policy adds."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_IN_EVERY_READER = ("jax", "jaxlib", "numpy", "flatbuffers")
_MODULE = ".register.py"
_GUARDS = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


def import_problems(files: Mapping[str, bytes], packages: Sequence[str]) -> list[str]:
    """What the registration modules among a golden's files import and no reader has, a sentence for each.

    `packages` are the policy's `reader_packages`. Imports in functions count: a reader may call them. Those that may
    fail (``try``) and those for types do not.
    """
    problems = []
    registered: set[str] = set()
    for file in (file for file in files if file.endswith(_MODULE)):
        name = file.removesuffix(_MODULE)
        try:
            missing = _missing(files[file], tuple(packages), registered)
        except (SyntaxError, ValueError) as error:
            problems.append(f"register={name!r} is no module of Python: {error}.")
            continue
        problems += [_problem(name, module) for module in sorted(missing)]
        registered.add(name)
    return problems


def _missing(source: bytes, packages: tuple[str, ...], registered: Collection[str]) -> set[str]:
    imported = {name: name.partition(".")[0] for name in _imports(ast.parse(source)) if name not in registered}
    return {
        name
        for name, package in imported.items()
        if package not in sys.stdlib_module_names and not _is_brought(package, packages)
    }


def _imports(node: ast.AST) -> Iterator[str]:
    """The modules that code needs, by their full names; one that is relative begins with a dot."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, level=level):
            yield "." * level + (module or "")
        case ast.Try(handlers=handlers) if any(_catches_imports(handler) for handler in handlers):
            for statement in (*node.orelse, *node.finalbody):
                yield from _imports(statement)
        case ast.If(test=test) if ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for statement in node.orelse:
                yield from _imports(statement)
        case _:
            for part in ast.iter_child_nodes(node):
                yield from _imports(part)


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(name in ast.unparse(handler.type) for name in _GUARDS)


def _is_brought(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a reader has a module: a package that is installed with it has it here, or is called like it."""
    brought = _brought_by((*_IN_EVERY_READER, *packages))
    return not brought.isdisjoint(map(canonicalize_name, (module, *packages_distributions().get(module, ()))))


@functools.cache
def _brought_by(requirements: tuple[str, ...]) -> frozenset[str]:
    """The packages that are installed with these, as far as they are installed here too."""
    names: set[str] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        if (name := canonicalize_name(requirement.name)) in names:
            continue
        names.add(name)
        try:
            needs = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue
        extras = ("", *requirement.extras)
        left += [need for need in needs if not need.marker or any(need.marker.evaluate({"extra": e}) for e in extras)]
    return frozenset(names)


def _problem(register: str, module: str) -> str:
    has = "jax, numpy, scipy, ml_dtypes, flatbuffers and the standard library"
    packages = packages_distributions().get(module.partition(".")[0], ())
    if module.startswith(".") or not packages:
        way = "Let the module be self-contained: the golden has a copy of it alone"
    else:
        way = (
            f"Name its package in the policy, to install it for every reader (`reader_packages: [{packages[0]}]`, or "
            f"{packages[0]}=={version(packages[0])} for a single version), or do without it"
        )
    return f"register={register!r} imports {module}, and readers have {has}. {way}."

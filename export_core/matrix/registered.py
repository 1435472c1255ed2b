"""Does all that a registration module does follow from its bytes and the reader's packages, or does it reach for more?"""

from __future__ import annotations

import ast

HARMLESS = frozenset(
    [
        "__future__",
        "abc",
        "collections",
        "copy",
        "dataclasses",
        "enum",
        "functools",
        "itertools",
        "json",
        "math",
        "numbers",
        "operator",
        "re",
        "string",
        "struct",
        "types",
        "typing",
        "jax",
        "jaxlib",
        "ml_dtypes",
        "numpy",
    ]
)
"""Packages that a reader's lock stands for, and modules of Python with which no file, variable, library or clock is reached."""
REACHING = frozenset(
    [
        "open",
        "exec",
        "eval",
        "compile",
        "getattr",
        "__import__",
        "__builtins__",
        "__loader__",
        "globals",
        "vars",
        "input",
        "breakpoint",
    ]
)
READING = frozenset(
    [
        "load",
        "loadtxt",
        "genfromtxt",
        "fromfile",
        "memmap",
        "open_memmap",
        "DataSource",
        "ctypeslib",
        "load_library",
        "distributed",
        "os",
        "sys",
        "ctypes",
        "importlib",
        "pathlib",
        "io",
        "environ",
        "attrgetter",
        "methodcaller",
    ]
)
"""Attributes and names by which NumPy, jax or a module that they have imported read what is outside."""


def self_contained(source: bytes) -> bool:
    """Whether a module imports nothing but what is known to be `HARMLESS`, and uses no way around that.

    A yes allows to take an outcome from an earlier run, so all that is not understood is a no.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return not any(_reaches(node) for node in ast.walk(tree))


def _reaches(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(_outside(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return bool(node.level) or _outside(node.module or "") or any(alias.name in READING for alias in node.names)
    if isinstance(node, ast.Name):
        return node.id in REACHING
    if isinstance(node, ast.Attribute):
        return node.attr in READING or (node.attr.startswith("__") and node.attr not in ("__init__", "__name__"))
    return False


def _outside(module: str) -> bool:
    first, *rest = module.split(".")
    return first not in HARMLESS or not READING.isdisjoint(rest)

"""Whether a registration module is self-contained: what it does depends on its own content alone."""

from __future__ import annotations

import ast

IMPORTS = frozenset(
    {
        "__future__",
        "abc",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "enum",
        "functools",
        "inspect",
        "itertools",
        "jax",
        "json",
        "math",
        "ml_dtypes",
        "numbers",
        "numpy",
        "operator",
        "re",
        "string",
        "types",
        "typing",
    }
)
"""What it may import: packages whose content is in the key, and modules of the standard library that read nothing."""
REACHES = frozenset(
    {
        "DataSource",
        "__builtins__",
        "__file__",
        "__import__",
        "__loader__",
        "__spec__",
        "breakpoint",
        "compilation_cache",
        "ctypes",
        "ctypeslib",
        "datetime64",
        "environ",
        "eval",
        "exec",
        "fromfile",
        "fromregex",
        "genfromtxt",
        "getenv",
        "import_module",
        "io",
        "load",
        "load_library",
        "loadtxt",
        "memmap",
        "open",
        "open_memmap",
        "os",
        "pathlib",
        "random",
        "recfromcsv",
        "recfromtxt",
        "subprocess",
        "sys",
        "time",
    }
)
"""Names of functions and modules that read something else: files, variables, the clock, native libraries."""


def is_self_contained(source: bytes) -> bool:
    """Whether a module imports only `IMPORTS` and uses no name of `REACHES`: then the same bytes do the same again.

    Anything else may load a library, or read a file, a variable or the time. This check is for honest code; it is no
    protection against code that tries to get around it.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: a source that nests too deep
        return False
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                imported = [alias.name.partition(".")[0] for alias in names]
                used = [part for alias in names for part in alias.name.split(".")]
            case ast.ImportFrom(module=module, names=names, level=level):
                imported = ["." if level else (module or "").partition(".")[0]]
                used = [alias.name for alias in names] + (module or "").split(".")
            case ast.Name(id=name) | ast.Attribute(attr=name):
                imported, used = [], [name]
            case _:
                continue
        if not IMPORTS.issuperset(imported) or REACHES.intersection(used):
            return False
    return True

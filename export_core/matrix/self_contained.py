"""Is what a registration module does decided by what stands in it?"""

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
"""What it may import: the reader's locked packages, and of the standard library what knows nothing of the world."""
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
"""Names that lead out of it, of whatever they are names."""


def decided_by_content(source: bytes) -> bool:
    """Whether a module imports nothing but `IMPORTS` and has none of the names in `REACHES`: then the same bytes do the same again.

    Anything else may load a library or read a file, a variable or the time. This is for honest code: who wants to can get around it.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
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

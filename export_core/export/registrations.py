"""Modules that a reader imports before it reads an artifact: they register tree nodes, effects or custom-call targets.

The golden holds a copy of each, since a golden must not depend on the source code that made it; the worker imports the
copy under the module's own name, since that is part of what jax serializes of an effect.
"""

from __future__ import annotations

import sys
from pathlib import Path

from export_core.export.case import Case
from export_core.export.errors import ExportError


def registration_files(case: Case) -> dict[str, bytes]:
    """The source of each module that the case registers, by its file name in the golden.

    Raises `ExportError` for a module that this process has not imported, or not from a .py file.
    """
    return {f"{name}.register.py": _source(case, name) for name in case.options.register}


def _source(case: Case, name: str) -> bytes:
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None)
    if path is None or not path.endswith(".py"):
        raise ExportError(
            f"{case.test}: register={name!r}: expected the name of a module that this test has imported from a .py "
            f"file, found {'none' if module is None else repr(path)}. The reader imports a copy of it, which may "
            "import only jax, numpy, the standard library and the policy's reader_packages."
        )
    return Path(path).read_bytes()

"""What must a reader import before it can read an artifact? Modules that register tree nodes, effects or custom-call targets.

The golden holds a copy of each, since a golden must not depend on the source that made it; the worker imports the copy under the
module's own name, which is part of what jax serializes of an effect.
"""

from __future__ import annotations

import sys
from pathlib import Path

from export_core.export.case import Case
from export_core.export.errors import ExportError


def registration_files(case: Case) -> dict[str, bytes]:
    """The files of the modules that the case names, by their name in the golden. Raises `ExportError` for one not imported."""
    return {f"{name}.register.py": _source(case, name) for name in case.asked.register}


def _source(case: Case, name: str) -> bytes:
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None)
    if path is None or not path.endswith(".py"):
        raise ExportError(
            f"{case.test}: register={name!r}: expected the name of a module that this test has imported from a .py file, found "
            f"{'none' if module is None else repr(path)}. The reader imports a copy of it: it may import jax, numpy and what Python has."
        )
    return Path(path).read_bytes()

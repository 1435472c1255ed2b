"""How are cells run, and which of them run the same?"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from export_core.matrix.cell import Cell
from export_core.matrix.checks import request_of

GIB = 1 << 30
_OUTPUTS = Path("outputs")


@dataclass(frozen=True)
class Limits:
    """How cells are run. `timeout` in seconds and `memory` in bytes of resident size, each for one cell; 0 is no limit.

    `device_jobs` is how many of the `jobs` may be on an accelerator at once: its memory is not shared by halves.
    """

    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    timeout: float = 120.0
    memory: int = 8 * GIB
    fork: bool = hasattr(os, "fork")
    device_jobs: int = 1


class Runs:
    """Names what a cell runs by content: its request, with the SHA-256 of each file of the golden in the place of its path."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[tuple[str, str, str], str] = {}

    def of(self, cell: Cell) -> str:
        """The same for two cells of one reader that do the same there, whatever outputs are expected of them."""
        key = (cell.golden.id, cell.platform, cell.mode)
        if key not in self._known:
            # A timeout does not change what the artifact does, and is never kept as a verdict.
            told = msgspec.to_builtins(request_of(cell, _OUTPUTS, timeout=0.0, memory=self._limits.memory))
            folder = str(cell.golden.folder.resolve())
            content = _with_content(told, folder, cell.golden.manifest.files)
            self._known[key] = hashlib.sha256(
                msgspec.json.encode([cell.platform, cell.mode, content], order="deterministic")
            ).hexdigest()
        return self._known[key]


def _with_content(value: Any, folder: str, files: Mapping[str, str]) -> Any:
    """The value with each path below `folder` replaced by what the manifest says is in the file."""
    if isinstance(value, str):
        name = os.path.relpath(value, folder) if value.startswith(folder + os.sep) else ""
        # A file that no manifest lists is its own content, and shared with nobody.
        return f"sha256:{files[name]}" if name in files else value
    if isinstance(value, dict):
        return {key: _with_content(each, folder, files) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_content(each, folder, files) for each in value]
    return value

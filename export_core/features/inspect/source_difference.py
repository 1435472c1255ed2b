"""The changes in what a test exports since its golden was written: jaxprs, then StableHLO."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from export_core.artifact import ArtifactError, read_bytes
from export_core.artifact.bytecode.constants import without_digits
from export_core.base.untrusted import open_regular, read_regular
from export_core.features.inspect.listings import jaxpr_difference, module_difference
from export_core.features.inspect.module_text import TextError, module_text
from export_core.goldens import JaxprSummary, Manifest
from export_core.goldens.store import ARTIFACT, JAXPR_TEXT, MODULE_TEXT


def source_difference(folder: Path, files_now: Mapping[str, bytes], then: Manifest, now: Manifest) -> list[str]:
    """Lines that show what is exported now beside what a golden holds; none where both listings say the same.

    Args:
        folder: the golden's. Without module.mlir, the modules of both artifacts are compared, if the installed jaxlib
            can print them. A jaxpr that it lacks, as a golden that was added without its source does, is left out.
        files_now: files as `produce` gives them, by name.
        then: the golden's manifest.
        now: today's.
    """
    lines = summary_difference(then.jaxpr, now.jaxpr)
    for name, what, difference in (
        (JAXPR_TEXT, "jaxpr", jaxpr_difference),
        (MODULE_TEXT, "StableHLO", module_difference),
    ):
        old, new = _text(_listing(folder / name)), _text(files_now.get(name))
        if name == MODULE_TEXT and old is None:  # of both artifacts: two printers would differ everywhere
            name = ARTIFACT
            old, new = _module(_read(folder / name)), _module(files_now.get(name))
        if old is not None and new is not None and (differing := difference(old, new)):
            lines += [f"{what} (- golden, + now; {folder / name}):", *(f"  {line}" for line in differing)]
    # Another jax lowers the same source to other operations: that is no change of the test.
    if lines and then.writer.id != now.writer.id:
        lines.append(
            f"The golden is by jax {then.writer.jax}, this is jax {now.writer.jax}: "
            "part of these differences may be jax's own."
        )
    return lines


def summary_difference(then: JaxprSummary | None, now: JaxprSummary | None) -> list[str]:
    """A line each for primitives, constants and effects that changed: ``primitives: tanh 2 → 3; new: erf 1``."""
    if then is None or now is None:
        return []
    lines = []
    changed = [
        f"{name} {count} → {now.primitives[name]}"
        for name, count in sorted(then.primitives.items())
        if now.primitives.get(name, count) != count
    ]
    new = [f"{name} {count}" for name, count in sorted(now.primitives.items()) if name not in then.primitives]
    gone = [f"{name} {count}" for name, count in sorted(then.primitives.items()) if name not in now.primitives]
    parts = [", ".join(changed), f"new: {', '.join(new)}" if new else "", f"gone: {', '.join(gone)}" if gone else ""]
    if any(parts):
        lines.append(f"primitives: {'; '.join(filter(None, parts))}")
    for what, old, today in (("constants", then.constants, now.constants), ("effects", then.effects, now.effects)):
        if Counter(old) != Counter(today):
            lines.append(f"{what}: golden {_counted(old)}; now {_counted(today)}")
    return lines


def _counted(names: tuple[str, ...]) -> str:
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in Counter(names).items()) or "none"


def _read(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def _listing(path: Path) -> bytes | None:
    """A listing. Earlier versions of this tool spelled all constants, which may be far longer than the rest."""
    try:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return without_digits(content)
    except OSError:
        return None
    except ValueError:  # an empty file cannot be mapped
        return b""


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


def _module(artifact: bytes | None) -> str | None:
    """The module of an artifact as text; None where it cannot be read, or not printed here."""
    try:
        return None if artifact is None else module_text(read_bytes(artifact), spelled=False)
    except (ArtifactError, TextError):
        return None

"""The parts of a stored golden that `--update-goldens` replaces, for a line of the summary."""

from collections.abc import Iterator
from typing import Any

from export_core.base.text import few
from export_core.export.produce import ProducedGolden
from export_core.goldens import Check, Comparison, Golden, GoldenError
from export_core.goldens.store import INPUTS, MANIFEST, NOISE, OUTPUTS, sha256
from export_core.numbers.compare import GoldenOutputs
from pytest_jaxexport.changes import changed_inputs, changed_settings, changes_since
from pytest_jaxexport.summary import ENVELOPE, MODULE


def replaced_parts(produced: ProducedGolden, wanted: GoldenOutputs, *, noise_to_come: bool = False) -> list[str]:
    """Return the differences between a stored golden and the new one that replaces it, each as a text.

    Args:
        produced: The new golden.
        wanted: The stored golden, and the rules by which this run compares numbers with it.
        noise_to_come: Whether the new golden lacks noise only because this is a dry run, which measures none.
    """
    now, then = produced.manifest.files, wanted.golden.manifest.files
    # First: by the new comparison, whatever else changed may be within what is allowed.
    changed = ", ".join(_changed_comparison(produced.manifest.comparison, wanted.golden.manifest.comparison))
    parts = [f"comparison: {changed}"] if changed else []
    settings = changed_settings(produced.manifest, wanted.golden.manifest)
    parts += [f"{flag}: {_in_words(old)} → {_in_words(new)}" for flag, (old, new) in settings.items()]
    known = len(parts)
    try:
        changes = changes_since(produced, wanted)
        parts += [line.partition("\n")[0] for line in changes.other]
        if not any(part.startswith("numbers:") for part in parts):
            parts += _numbers_within_limits(produced, wanted)
        parts += [line if line.startswith(MODULE) else f"{ENVELOPE}{line}" for line in changes.export]
        if names := changed_inputs(produced, wanted.golden):
            parts.append(f"inputs: {', '.join(names)}")
    except GoldenError:
        return [*parts[:known], _damage(wanted.golden) or "what is stored is damaged"]
    # Damaged files for the eye, such as module.mlir, are not read above.
    damage = [text] if (text := _damage(wanted.golden)) else []
    skipped = {NOISE} - now.keys() if noise_to_come else set()
    files = [name for name in {**then, **now} if now.get(name) != then.get(name) and name not in skipped]
    return [*parts, *damage] or files or [MANIFEST]


def _damage(golden: Golden) -> str:
    """Return in words which files of a stored golden are damaged or missing; "" if all are as they were written."""
    names = []
    for name, expected in golden.manifest.files.items():
        try:
            is_whole = sha256(golden.content(name)) == expected
        except GoldenError:
            is_whole = False
        names += [] if is_whole else [name]
    return f"damaged: {few(names)}" if names else ""


def _changed_comparison(now: Comparison, then: Comparison) -> Iterator[str]:
    """Yield the parts of a comparison that changed: ``compare allclose → shape``, ``rtol not set → 0.5``."""
    for name in now.__struct_fields__:
        old, new = getattr(then, name), getattr(now, name)
        if old != new:
            yield f"{name} {_in_words(old)} → {_in_words(new)}"


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return " and ".join(f"{amount} for {dtype}" for dtype, amount in value.items())
    return "not set" if value is None else str(value)


def _numbers_within_limits(produced: ProducedGolden, wanted: GoldenOutputs) -> list[str]:
    """Return a line that says how far outputs for the same inputs moved within tolerance; empty if not, or if equal."""
    now, then = produced.manifest.files, wanted.golden.manifest.files
    if produced.outputs is None or now.get(OUTPUTS) == then.get(OUTPUTS) or now[INPUTS] != then[INPUTS]:
        return []
    difference = wanted.compare(Check("", outputs=OUTPUTS), wanted.golden.outputs(), produced.outputs)
    if not difference.ok:
        return []
    allowed = "" if difference.max_abs_error is None else f"; allowed {difference.tolerance}"
    return [f"numbers: within what is allowed ({difference}{allowed})"]

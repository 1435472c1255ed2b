"""The wording of costs: a figure with its unit, a limit that is exceeded."""

from __future__ import annotations

import msgspec

from export_core.judge import Result
from export_core.judge.result import Exceeded


def amount(figure: str, value: float) -> str:
    """``169.0 MB``, ``12.5 ms``, ``1,204``, ``3.2 G``: a figure as people read it."""
    if figure == "run_seconds":
        return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.3g} ms"
    unit = "B" if figure.endswith("bytes") or figure == "bytes_accessed" else ""
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale and (unit or value >= 1e6):
            return f"{value / scale:.1f} {prefix}{unit}"
    return f"{value:,.0f}{f' {unit}' if unit else ''}"


def figures_line(result: Result) -> str:
    """``temp_bytes 169.0 MB, …, fusions 16``: all that the compiler says of a cell; empty where it is silent."""
    figures = msgspec.structs.asdict(result.cost) if result.cost else {}
    return ", ".join(f"{name} {amount(name, value)}" for name, value in figures.items() if value is not None)


def times(was: float, now: float) -> str:
    """``x2.00``, ``/1.33``: how many times more or less."""
    if not was or not now:
        return "new" if now else "gone"
    ratio = max(now / was, was / now)
    return f"{'x' if now > was else '/'}{ratio:,.{0 if ratio >= 100 else 2}f}"


def exceeded_text(exceeded: Exceeded) -> str:
    """``temp_bytes 168,984,580, more than 101,391,782, which is 1.2 times the 84,493,152 of its writer``."""
    # Whole numbers and no units: the policy has the limit as a whole number too.
    text = f"{exceeded.figure} {exceeded.found:,.0f}, more than {exceeded.allowed:,.0f}"
    if exceeded.against is None:
        return text
    if not exceeded.against:
        return f"{exceeded.figure} {exceeded.found:,.0f}, and 0 in its {exceeded.whose}"
    times = exceeded.allowed / exceeded.against
    return f"{text}, which is {times:.4g} times the {exceeded.against:,.0f} of its {exceeded.whose}"


def limits_line(result: Result) -> str:
    """The limits that a cell exceeds, each with the line of the policy that sets it; empty for none."""
    return "; ".join(f"{exceeded_text(part)} ({part.limit}, {part.budget})" for part in result.exceeded)

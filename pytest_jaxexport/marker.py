"""What may stand in @pytest.mark.export_compat(...), and what does it mean when it does not?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pytest

NAME = "export_compat"
SIGNATURE = (
    "export_compat(platforms=None, rtol=None, atol=None, compare='allclose', allow=None): "
    "what the test passes to `export_golden` is exported with jax.export and held against its goldens. "
    "platforms: list of cpu, cuda, rocm, tpu to export for; default: the platform of this process. "
    "rtol, atol: tolerances of floating-point outputs; default: by dtype. "
    "compare: allclose, exact, eigh, svd or qr. "
    "allow: {custom-call target: reason} for targets outside JAX's stable list."
)


@dataclass(frozen=True)
class Marked:
    """The keywords of a marked test; None where the marker does not say."""

    platforms: tuple[str, ...] | None = None
    rtol: float | None = None
    atol: float | None = None
    compare: str | None = None
    allow: Mapping[str, str] | None = None


def read_marker(item: pytest.Item) -> Marked | None:
    """The marker of a test, the closest one before those of its class and module; None for an unmarked test.

    Raises `pytest.UsageError` for positional arguments, unknown keywords and values of the wrong kind.
    """
    markers = list(item.iter_markers(NAME))
    if not markers:
        return None
    merged: dict[str, Any] = {}
    for marker in markers:
        if marker.args:
            raise _usage(item, f"takes keywords only, found the positional {marker.args[0]!r}")
        for key, value in marker.kwargs.items():
            merged.setdefault(key, value)
    known = [field.name for field in fields(Marked)]
    for key in merged:
        if key not in known:
            import difflib  # only a mistake needs it

            near = difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise _usage(item, f"has no keyword {key!r}; it takes {', '.join(known)}.{hint}")
    return Marked(
        platforms=_platforms(item, merged.get("platforms")),
        rtol=_tolerance(item, "rtol", merged.get("rtol")),
        atol=_tolerance(item, "atol", merged.get("atol")),
        compare=_compare(item, merged.get("compare")),
        allow=_allow(item, merged.get("allow")),
    )


def parse_platforms(value: object, where: str) -> tuple[str, ...]:
    """Platform names of jax.export. Raises `pytest.UsageError` for any other."""
    names = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    known = ("cpu", "cuda", "rocm", "tpu")
    for name in names:
        if name not in known:
            raise pytest.UsageError(f"{where}: unknown platform {name!r}; jax.export knows {', '.join(known)}.")
    if not names:
        raise pytest.UsageError(f"{where}: expected at least one platform of {', '.join(known)}.")
    return tuple(dict.fromkeys(names))


def parse_tolerance(value: object, where: str) -> float:
    """A finite tolerance of 0 or more. Raises `pytest.UsageError` for anything else."""
    try:
        number = float(value)  # type: ignore[arg-type]  # what is no number is refused below
    except (TypeError, ValueError):
        number = -1.0
    if not (number >= 0 and math.isfinite(number)) or isinstance(value, bool):
        raise pytest.UsageError(f"{where}: expected a finite number of 0 or more, found {value!r}.")
    return number


def _platforms(item: pytest.Item, value: object) -> tuple[str, ...] | None:
    return None if value is None else parse_platforms(value, _where(item) + " platforms")


def _tolerance(item: pytest.Item, name: str, value: object) -> float | None:
    return None if value is None else parse_tolerance(value, f"{_where(item)} {name}")


def _compare(item: pytest.Item, value: object) -> str | None:
    known = ("allclose", "exact", "eigh", "svd", "qr")
    if value is not None and value not in known:
        raise _usage(item, f"compare={value!r}: expected one of {', '.join(known)}")
    return str(value) if value is not None else None


def _allow(item: pytest.Item, value: object) -> Mapping[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(
        isinstance(k, str) and isinstance(v, str) and v for k, v in value.items()
    ):
        raise _usage(item, f"allow={value!r}: expected a dict of custom-call targets, each with its reason")
    return value


def _where(item: pytest.Item) -> str:
    return f"{item.nodeid}: @pytest.mark.{NAME}"


def _usage(item: pytest.Item, text: str) -> pytest.UsageError:
    return pytest.UsageError(f"{_where(item)} {text}")

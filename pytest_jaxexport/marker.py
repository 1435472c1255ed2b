"""What may stand in @pytest.mark.export_compat(...), and what does it mean when it does not?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

NAME = "export_compat"
SIGNATURE = (
    "export_compat(platforms=None, vjp_order=0, rtol=None, atol=None, ulp=None, compare='allclose', allow=None, disabled_checks=None, "
    "symbolic_shapes=None, constraints=(), mesh=None, in_specs=None, spread_over=0, calling_convention_version=None, "
    "ignore_forward_compatibility=False, register=(), refused_on=()): "
    "what the test passes to `export_golden` is exported with jax.export and held against its goldens. "
    "platforms: list of cpu, cuda, rocm, tpu to export for; default: the platform of this process. "
    "vjp_order: derivatives to serialize and to check, each against jax.vjp. "
    "rtol, atol, ulp: tolerances of floating-point outputs (ulp: units in the last place, enough by itself), each a number or "
    "{dtype: number}; default: by dtype. "
    "compare: allclose, exact, eigh, eig, svd, qr, lu, schur, or your own function as 'module:function'. "
    "allow: {custom-call target: reason} for targets outside JAX's stable list. "
    "disabled_checks: {'platform', 'ALL' or a custom-call target: reason}, safety checks that jax.export is told to leave out; "
    "the audit still wants every target allowed. "
    "symbolic_shapes: dimensions as jax.export.symbolic_args_specs takes them, such as ('b, 4', None); "
    "constraints: on these dimensions, such as ('b >= 2',). "
    "mesh: {axis: size} to export for, without devices where jax can; "
    "in_specs: a PartitionSpec or None for each positional argument. "
    "spread_over: devices over which the arguments of a one-device artifact are spread in one more call. "
    "calling_convention_version: one that jax.export supports; default: jax's. "
    "ignore_forward_compatibility: export with jax_export_ignore_forward_compatibility. "
    "register: modules that the reader imports first, for tree nodes, effects or custom-call targets of your own; "
    "the golden keeps a copy. "
    "refused_on: platforms that it is not exported for, where its refusal is checked."
)

Amount = float | dict[str, float]
"""A tolerance for every dtype, or one for each that it names."""


class Marked(NamedTuple):  # each pytest run makes this class, and a dataclass takes milliseconds
    """The keywords of a marked test; None where the marker does not say."""

    platforms: tuple[str, ...] | None = None
    vjp_order: int | None = None
    rtol: Amount | None = None
    atol: Amount | None = None
    ulp: int | dict[str, int] | None = None
    compare: str | None = None
    allow: Mapping[str, str] | None = None
    disabled_checks: Mapping[str, str] | None = None
    symbolic_shapes: Any = None
    constraints: tuple[str, ...] | None = None
    mesh: Mapping[str, int] | None = None
    in_specs: tuple[Any, ...] | None = None
    spread_over: int | None = None
    calling_convention_version: int | None = None
    ignore_forward_compatibility: bool | None = None
    register: tuple[str, ...] | None = None
    refused_on: tuple[str, ...] | None = None


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
    known = Marked._fields
    for key in merged:
        if key not in known:
            import difflib  # only a mistake needs it

            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}."
            raise _usage(item, f"has no keyword {key!r}; {hint}")
    return Marked(
        platforms=_platforms(item, "platforms", merged.get("platforms")),
        vjp_order=_count(item, "vjp_order", merged.get("vjp_order"), "a derivative's order of 0 or more"),
        rtol=_tolerance(item, "rtol", merged.get("rtol")),
        atol=_tolerance(item, "atol", merged.get("atol")),
        ulp=_tolerance(item, "ulp", merged.get("ulp")),
        compare=_compare(item, merged.get("compare")),
        allow=_reasons(item, "allow", merged.get("allow"), "custom-call targets"),
        disabled_checks=_reasons(
            item, "disabled_checks", merged.get("disabled_checks"), "'platform', 'ALL' or custom-call targets"
        ),
        symbolic_shapes=_shapes(item, merged.get("symbolic_shapes")),
        constraints=_texts(item, "constraints", merged.get("constraints"), "texts such as 'b >= 2'"),
        mesh=_mesh(item, merged.get("mesh")),
        in_specs=_sequence(item, "in_specs", merged.get("in_specs"), "a PartitionSpec or None for each argument"),
        spread_over=_count(item, "spread_over", merged.get("spread_over"), "a number of devices"),
        calling_convention_version=_count(
            item, "calling_convention_version", merged.get("calling_convention_version"), "a version number"
        ),
        ignore_forward_compatibility=_flag(
            item, "ignore_forward_compatibility", merged.get("ignore_forward_compatibility")
        ),
        register=_texts(item, "register", merged.get("register"), "names of modules"),
        refused_on=_platforms(item, "refused_on", merged.get("refused_on")),
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


def _platforms(item: pytest.Item, name: str, value: object) -> tuple[str, ...] | None:
    return None if value is None else parse_platforms(value, f"{_where(item)} {name}")


def _count(item: pytest.Item, name: str, value: object, what: str) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise _usage(item, f"{name}={value!r}: expected {what}")
    return value


def _flag(item: pytest.Item, name: str, value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise _usage(item, f"{name}={value!r}: expected True or False")
    return value


def _sequence(item: pytest.Item, name: str, value: object, what: str) -> tuple[Any, ...] | None:
    # A PartitionSpec is a tuple itself in older releases of jax, and one of them is no list of them.
    if value is not None and type(value) not in (list, tuple):
        raise _usage(item, f"{name}={value!r}: expected a list: {what}")
    return None if value is None else tuple(value)  # type: ignore[arg-type]  # a list or tuple, as just checked


def _texts(item: pytest.Item, name: str, value: object, what: str) -> tuple[str, ...] | None:
    found = _sequence(item, name, value, what)
    if found is not None and not all(isinstance(each, str) and each for each in found):
        raise _usage(item, f"{name}={value!r}: expected a list of {what}")
    return found


def _shapes(item: pytest.Item, value: object) -> object:
    if value is not None and not isinstance(value, (str, list, tuple, dict)):
        raise _usage(item, f"symbolic_shapes={value!r}: expected text such as 'b, 4', or one or None for each argument")
    return value


def _mesh(item: pytest.Item, value: object) -> Mapping[str, int] | None:
    if value is None:
        return None
    sizes = value.values() if isinstance(value, dict) else ()
    if not sizes or not all(isinstance(size, int) and size > 0 for size in sizes) or not all(map(str, value)):  # type: ignore[call-overload]
        raise _usage(item, f"mesh={value!r}: expected axis names with their sizes, such as {{'data': 4}}")
    return value  # type: ignore[return-value]  # a dict, as just checked


def _tolerance(item: pytest.Item, name: str, value: Any) -> Any:
    """A number, or a dict of dtypes to numbers."""
    if value is None:
        return None
    from export_core.tolerances import read_amount  # only a marker that has one needs it

    try:
        return read_amount(value, whole=name == "ulp")
    except ValueError as error:
        raise _usage(item, f"{name}: {error}") from None


def _compare(item: pytest.Item, value: object) -> str | None:
    if value is None:
        return None
    from export_core.tolerances import problem_of_name

    if problem := problem_of_name(str(value)):
        raise _usage(item, problem)
    if ":" in str(value):
        from export_core.comparing.comparators import check_comparator
        from export_core.errors import ExportCompatError

        try:
            check_comparator(str(value), item.config.rootpath)
        except ExportCompatError as error:
            raise _usage(item, str(error)) from error
    return str(value)


def _reasons(item: pytest.Item, name: str, value: object, what: str) -> Mapping[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(
        isinstance(k, str) and isinstance(v, str) and v for k, v in value.items()
    ):
        raise _usage(item, f"{name}={value!r}: expected a dict of {what}, each with its reason")
    return value


def _where(item: pytest.Item) -> str:
    return f"{item.nodeid}: @pytest.mark.{NAME}"


def _usage(item: pytest.Item, text: str) -> pytest.UsageError:
    return pytest.UsageError(f"{_where(item)} {text}")

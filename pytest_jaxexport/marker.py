"""The marker ``@pytest.mark.export_compat(...)``: its keywords, and the checks of their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_jaxexport.keywords import NAME

if TYPE_CHECKING:
    from export_core.comparing.user_code import UserCode

_USER_CODE: pytest.StashKey[UserCode] = pytest.StashKey()

Amount = float | dict[str, float]
"""A tolerance for every dtype, or one for each that it names."""


class MarkerOptions(NamedTuple):  # no dataclass: every pytest run makes this class, and a dataclass takes milliseconds
    """The keywords of a marked test; None where the marker does not have one."""

    platforms: tuple[str, ...] | None = None
    vjp_order: int | None = None
    rtol: Amount | None = None
    atol: Amount | None = None
    ulp: int | dict[str, int] | None = None
    compare: str | None = None
    allow: Mapping[str, str] | None = None
    disabled_checks: Mapping[str, str] | None = None
    changed_module: str | None = None
    symbolic_shapes: Any = None
    constraints: tuple[str, ...] | None = None
    mesh: Mapping[str, int] | None = None
    in_specs: tuple[Any, ...] | Mapping[int | str, Any] | None = None
    spread_over: int | None = None
    calling_convention_version: int | None = None
    ignore_forward_compatibility: bool | None = None
    register: tuple[str, ...] | None = None
    refused_on: tuple[str, ...] | None = None
    nothing_to_compare: str | None = None
    budgets: Mapping[str, Any] | None = None
    without_outputs: str | None = None


def usage_error(text: str) -> pytest.UsageError:
    """An error that ends the run before any test, with the prefix that the command `jaxexport` has."""
    return pytest.UsageError(f"jaxexport: error: {text}")


def read_marker(item: pytest.Item) -> MarkerOptions | None:
    """The marker of a test; its own keywords come before those of its class and module. None for an unmarked test.

    Raises `pytest.UsageError` for positional arguments, unknown keywords and values of the wrong kind.
    """
    markers = list(item.iter_markers(NAME))
    if not markers:
        return None
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        raise _usage(
            item,
            "cannot be combined with hypothesis's @given: a golden has the same arguments in every run, and @given "
            "draws others.\nLeave the marker off this test, and write one beside it without @given that passes fixed "
            "arguments to export_golden, such as those of an @example.",
        )
    merged: dict[str, Any] = {}
    # From the test outwards to its class and module: setdefault leaves the keyword of the nearest marker.
    for marker in markers:
        if marker.args:
            raise _usage(item, f"takes keywords only, found the positional {marker.args[0]!r}")
        for key, value in marker.kwargs.items():
            merged.setdefault(key, value)
    for key in merged:
        if key not in _PARSERS:
            # A run with no marked test must not load export_core, and only a misspelled keyword needs this.
            from export_core.phrases import close_match

            closest = close_match(key, _PARSERS)
            hint = f"did you mean {closest!r}?" if closest else f"it takes {', '.join(_PARSERS)}."
            raise _usage(item, f"has no keyword {key!r}; {hint}")
    return MarkerOptions(**{name: parse(item, name, merged.get(name)) for name, parse in _PARSERS.items()})


def own_targets(item: pytest.Item) -> set[str]:
    """The custom-call targets that a test's own marker names; those of its class and module are for several tests."""
    names = {
        name
        for marker in item.own_markers
        if marker.name == NAME
        for keyword in ("allow", "disabled_checks")
        for name in marker.kwargs.get(keyword) or ()
    }
    return names - {"platform", "ALL"}


def user_code(config: pytest.Config) -> UserCode:
    """The process of this run's own comparators, with the root directory first on its `sys.path`."""
    if _USER_CODE not in config.stash:
        from export_core.comparing.user_code import UserCode

        # Here: the settings import this module.
        from pytest_jaxexport.settings import added_variables

        config.stash[_USER_CODE] = UserCode(config.rootpath, variables=added_variables(config))
        config.add_cleanup(config.stash[_USER_CODE].close)
    return config.stash[_USER_CODE]


def parse_platforms(value: object, where: str) -> tuple[str, ...]:
    """Platform names of jax.export. Raises `pytest.UsageError` for any other."""
    names = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    known = ("cpu", "cuda", "rocm", "tpu")
    for name in names:
        if name not in known:
            # As above: only a mistake needs it.
            from export_core.tolerances import similar_platform

            raise usage_error(
                f"{where}: unknown platform {name!r}; jax.export knows {', '.join(known)}.{similar_platform(str(name))}"
            )
    if not names:
        raise usage_error(f"{where}: expected at least one platform of {', '.join(known)}.")
    return tuple(dict.fromkeys(names))


def parse_tolerance(value: object, where: str) -> float:
    """A finite tolerance of 0 or more. Raises `pytest.UsageError` for anything else."""
    try:
        number = float(value)  # type: ignore[arg-type]  # what is no number is refused below
    except (TypeError, ValueError):
        number = -1.0
    # float(True) is 1.0, and `not (… >= 0)` is also true of NaN.
    if not (number >= 0 and math.isfinite(number)) or isinstance(value, bool):
        raise usage_error(f"{where}: expected a finite number of 0 or more, found {value!r}.")
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
    # Not isinstance: in older releases of jax a PartitionSpec is a tuple, and a single one is not a list of them.
    if value is not None and type(value) not in (list, tuple):
        raise _usage(item, f"{name}={value!r}: expected a list: {what}")
    return None if value is None else tuple(value)  # type: ignore[arg-type]  # a list or tuple, as just checked


def _texts(item: pytest.Item, name: str, value: object, what: str) -> tuple[str, ...] | None:
    texts = _sequence(item, name, value, what)
    if texts is not None and not all(isinstance(text, str) and text for text in texts):
        raise _usage(item, f"{name}={value!r}: expected a list of {what}")
    return texts


def _shapes(item: pytest.Item, name: str, value: object) -> object:
    if value is not None and not isinstance(value, (str, list, tuple, dict)):
        raise _usage(item, f"{name}={value!r}: expected text such as 'b, 4', or one text or None for each argument")
    return value


def _mesh(item: pytest.Item, name: str, value: object) -> Mapping[str, int] | None:
    if value is None:
        return None
    sizes = value.values() if isinstance(value, dict) else ()
    sizes_fit = bool(sizes) and all(isinstance(size, int) and size > 0 for size in sizes)
    if not sizes_fit or not all(map(str, value)):  # type: ignore[call-overload]  # a dict, which has sizes
        raise _usage(item, f"{name}={value!r}: expected axis names with their sizes, such as {{'data': 4}}")
    return value  # type: ignore[return-value]  # a dict, as just checked


def _tolerance(item: pytest.Item, name: str, value: Any) -> Any:
    """A number, or a dict of dtypes to numbers."""
    if value is None:
        return None
    from export_core.tolerances import read_amount  # here: only a marker with a tolerance needs it

    try:
        return read_amount(value, whole=name == "ulp")
    except ValueError as error:
        raise _usage(item, f"{name}: {error}") from None


def _compare(item: pytest.Item, name: str, value: object) -> str | None:
    if value is None:
        return None
    from export_core.tolerances import problem_of_name

    if problem := problem_of_name(str(value)):
        raise _usage(item, problem)
    if ":" in str(value):
        # Now, and not when cells are compared: a wrong name must be found before the golden is written.
        from export_core.errors import ExportCompatError

        try:
            user_code(item.config).check(str(value))
        except ExportCompatError as error:
            raise _usage(item, str(error)) from error
    return str(value)


def _changed_module(item: pytest.Item, name: str, value: object) -> str | None:
    if value not in (None, "fail", "warn"):
        raise _usage(item, f"{name}={value!r}: expected 'fail' or 'warn'")
    return value


def _reason(item: pytest.Item, name: str, value: object) -> str | None:
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise _usage(item, f"{name}={value!r}: expected the reason as text")
    return value


def _budget(item: pytest.Item, name: str, value: object) -> Mapping[str, Any] | None:
    """The limits of an entry of the policy's `budgets`."""
    if value is None:
        return None
    # As above: only a marker with a budget needs them.
    import msgspec

    from export_core.policy import Budget
    from export_core.policy.budgets import LIMITS
    from export_core.policy.validation import budget_problems

    if not isinstance(value, dict) or (set(value) - {*LIMITS}):
        raise _usage(item, f"{name}={value!r}: expected a dict with some of {', '.join(LIMITS)}")
    try:
        budget = msgspec.convert(value, Budget)
    except msgspec.ValidationError as error:
        raise _usage(item, f"{name}={value!r}: {error}") from None
    for key, problem in budget_problems((), budget):
        raise _usage(item, f"{name}: {'.'.join(map(str, key))}: {problem}")
    return value


def _reasons(item: pytest.Item, name: str, value: object, what: str) -> Mapping[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(
        isinstance(k, str) and isinstance(v, str) and v for k, v in value.items()
    ):
        raise _usage(item, f"{name}={value!r}: expected a dict of {what}, each with its reason")
    return value


_PARSERS: dict[str, Callable[[pytest.Item, str, Any], Any]] = {
    "platforms": _platforms,
    "vjp_order": partial(_count, what="a derivative's order of 0 or more"),
    "rtol": _tolerance,
    "atol": _tolerance,
    "ulp": _tolerance,
    "compare": _compare,
    "allow": partial(_reasons, what="custom-call targets"),
    "disabled_checks": partial(_reasons, what="'platform', 'ALL' or custom-call targets"),
    "changed_module": _changed_module,
    "symbolic_shapes": _shapes,
    "constraints": partial(_texts, what="texts such as 'b >= 2'"),
    "mesh": _mesh,
    "in_specs": lambda item, name, value: (
        value if isinstance(value, dict) else _sequence(item, name, value, "a PartitionSpec or None for each argument")
    ),
    "spread_over": partial(_count, what="a number of devices"),
    "calling_convention_version": partial(_count, what="a version number"),
    "ignore_forward_compatibility": _flag,
    "register": partial(_texts, what="names of modules"),
    "refused_on": _platforms,
    "nothing_to_compare": _reason,
    "budgets": _budget,
    "without_outputs": _reason,
}
"""How each keyword's value is read: the fields of `MarkerOptions`, in their order. Each gives None for None."""


def _where(item: pytest.Item) -> str:
    return f"{item.nodeid}: @pytest.mark.{NAME}"


def _usage(item: pytest.Item, text: str) -> pytest.UsageError:
    return usage_error(f"{_where(item)} {text}")

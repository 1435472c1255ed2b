"""The keywords of `@pytest.mark.export_compat`, which `export_core.export_artifact` and `write_golden` take too.

This module checks their values without importing NumPy; `case_options` makes the options of a case from them.
pytest_jaxexport/marker.py explains each keyword.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from export_core.base.errors import ExportCompatError
from export_core.base.platforms import PLATFORMS, similar_platform
from export_core.base.text import close_match
from export_core.base.tolerances import AMOUNTS, COMPARATORS, WITHOUT_TOLERANCE, problem_of_name, read_amount
from export_core.policy.feature_keys import marker_keywords

if TYPE_CHECKING:
    from export_core.numbers.user_code import UserCode

Reader = Callable[[str, str, Any], Any]
"""A function that checks and returns a keyword's value. It gets the beginning of its messages, the keyword, the value.
"""


class KeywordError(ExportCompatError):
    """An error for a keyword that does not exist, or whose value cannot be used."""


def read_keywords(given: Mapping[str, Any], where: str, user_code: Callable[[], UserCode]) -> dict[str, Any]:
    """Return the value of each keyword by name, or None if the keyword is not given.

    The keywords that features add are in a dict under the name `entries`, which has only those that are given.

    Args:
        given: the keywords that were given, with their values.
        where: the beginning of each message.
        user_code: returns the process in which a comparator that the user wrote is imported.

    Raises:
        KeywordError: Keywords are unknown, or their values are of the wrong kind: its message has a line for each.
    """
    unknown = [key for key in given if key not in ALL_KEYWORDS]
    mistakes = [_about_unknown(where, key) for key in unknown]
    values: dict[str, Any] = dict.fromkeys(KEYWORDS)
    values["entries"] = {}
    for name, value in given.items():
        if value is None or name in unknown:
            continue
        try:
            if name in ENTRIES:
                values["entries"][name] = _entry(where, name, value)
            else:
                values[name] = KEYWORDS[name](where, name, value)
        except KeywordError as error:
            mistakes.append(error)
    if ":" in (values["compare"] or ""):
        # Now, and not when cells are compared: a wrong name must be found before the golden is written.
        try:
            user_code().check(values["compare"])
        except ExportCompatError as error:
            mistakes.append(_error(where, str(error)))
    if mistakes:
        raise KeywordError("\n".join(error.message() for error in mistakes))
    return values


def unused_tolerances(given: Mapping[str, Any], where: str) -> list[str]:
    """Return an error message for each tolerance that is given together with a comparator that uses none.

    Args:
        given: the keywords of one marker. A tolerance of another one, such as that of a class, is for other tests too.
        where: the beginning of each message.
    """
    compare = given.get("compare")
    return [
        f"{where} {name}={given[name]!r}: expected none: compare={compare!r} takes no tolerances. "
        "Leave it out, or choose another comparator."
        for name in AMOUNTS
        if compare in WITHOUT_TOLERANCE and given.get(name) is not None
    ]


def positional_mistakes(given: Sequence[Any], where: str) -> list[str]:
    """Return an error message for the positional arguments of one marker, if it has any: it takes keywords only.

    The message names the keyword that the arguments are meant for, if their values show it.

    Args:
        given: the positional arguments.
        where: the beginning of the message.
    """
    if not given:
        return []
    words = [word for value in given for word in (value if isinstance(value, (list, tuple)) else [value])]
    names = [word.lower() if isinstance(word, str) else "" for word in words]
    hints = [similar_platform(name) for name in names]
    if names and all(name in PLATFORMS for name in names):
        todo = f"write platforms={tuple(names)}."
    elif all(name in PLATFORMS or hint for name, hint in zip(names, hints, strict=True)):
        todo = f"write platforms=(…,).{next(filter(None, hints), '')}"
    elif len(words) == 1 and names[0] in COMPARATORS:
        todo = f"write compare={names[0]!r}."
    else:
        todo = "write it with its keyword, such as platforms=('cpu',) or rtol=1e-5."
    return [f"{where} takes keywords only, found the positional {', '.join(map(repr, given))}: {todo}"]


_OTHER_NAMES = {
    "tol|tolerances?|epsilon": "'rtol', 'atol' or 'ulp'",
    "devices?|backends?": "'platforms'",
    "(?:dynamic|polymorphic)_shapes?": "'symbolic_shapes'",
}
"""The keywords that are meant by names of other libraries, as regular expressions."""


def _about_unknown(where: str, key: str) -> KeywordError:
    """Return the error for a keyword that does not exist."""
    meant = next((names for pattern, names in _OTHER_NAMES.items() if re.fullmatch(pattern, key)), "")
    if not meant and (closest := close_match(key, ALL_KEYWORDS)):
        meant = repr(closest)
    hint = f"did you mean {meant}?" if meant else f"it takes {', '.join(ALL_KEYWORDS)}."
    return _error(where, f"has no keyword {key!r}; {hint}")


def _entry(where: str, name: str, entry: Any) -> Any:
    """Return the value of a keyword that a feature adds. Raises `KeywordError` if it cannot be used."""
    feature = ENTRIES[name]
    if not isinstance(entry, dict) or (set(entry) - {*feature.in_marker}):
        raise _error(where, f"{name}={entry!r}: expected a dict with some of {', '.join(feature.in_marker)}")
    try:
        converted = msgspec.convert(entry, feature.entry)
    except msgspec.ValidationError as error:
        raise _error(where, f"{name}={entry!r}: {error}") from None
    if problems := list(feature.problems((), converted)):
        lines = (f"{where} {name}: {'.'.join(map(str, path))}: {problem}" for path, problem in problems)
        raise KeywordError("\n".join(lines))
    return entry


def parse_platforms(value: object, where: str) -> tuple[str, ...]:
    """Return the platforms in a value, each once: the value is the name of a platform, or a list of names.

    `where` begins each message. Raises `KeywordError` for a name that jax.export does not know, or if there is no name.
    """
    names = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    for name in names:
        if name not in PLATFORMS:
            known, hint = ", ".join(PLATFORMS), similar_platform(str(name))
            raise KeywordError(f"{where}: unknown platform {name!r}; jax.export knows {known}.{hint}")
    if not names:
        raise KeywordError(f"{where}: expected at least one platform of {', '.join(PLATFORMS)}.")
    return tuple(dict.fromkeys(names))


def _platforms(where: str, name: str, value: object) -> tuple[str, ...]:
    return parse_platforms(value, f"{where} {name}")


def _sequence(where: str, name: str, value: Any, what: str) -> tuple[Any, ...]:
    # Not isinstance: in older releases of jax a PartitionSpec is a tuple, and a single spec is not a list of specs.
    if type(value) not in (list, tuple):
        raise _error(where, f"{name}={value!r}: expected a list: {what}")
    return tuple(value)


def _texts(where: str, name: str, value: object, what: str) -> tuple[str, ...]:
    texts = _sequence(where, name, value, what)
    if not all(isinstance(text, str) and text for text in texts):
        raise _error(where, f"{name}={value!r}: expected a list of {what}")
    return texts


def _tolerance(where: str, name: str, value: Any) -> Any:
    """Return a tolerance: a number, or a dict from dtypes to numbers. Raises `KeywordError` for any other value."""
    try:
        return read_amount(value, whole=name == "ulp")
    except ValueError as error:
        raise _error(where, f"{name}: {error}") from None


def _compare(where: str, name: str, value: object) -> str:
    if not isinstance(value, str):
        known = f"one of {', '.join(COMPARATORS)}, or your own function as 'module:function'"
        raise _error(where, f"{name}={value!r}: expected the name of a comparator for all outputs: {known}.")
    if problem := problem_of_name(value):
        raise _error(where, problem)
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_mesh(value: object) -> bool:
    sizes = value.values() if isinstance(value, dict) else ()
    return bool(sizes) and all(isinstance(size, int) and size > 0 for size in sizes) and all(map(str, value))  # type: ignore[call-overload]


def _are_reasons(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, str) and v for k, v in value.items())


def _one_that(fits: Callable[[Any], bool], expected: str) -> Reader:
    """Return a function that returns a keyword's value if it `fits`, and otherwise raises an error with `expected`."""

    def read(where: str, name: str, value: Any) -> Any:
        if not fits(value):
            raise _error(where, f"{name}={value!r}: expected {expected}")
        return value

    return read


_SPECS = "a PartitionSpec or None for each argument"
_REASON = _one_that(lambda value: isinstance(value, str) and bool(value.strip()), "the reason as text")
KEYWORDS: dict[str, Reader] = {
    "platforms": _platforms,
    "vjp_order": _one_that(_is_count, "a derivative's order of 0 or more"),
    "rtol": _tolerance,
    "atol": _tolerance,
    "ulp": _tolerance,
    "compare": _compare,
    "allow": _one_that(_are_reasons, "a dict of custom-call targets, each with its reason"),
    "disabled_checks": _one_that(
        _are_reasons, "a dict of 'platform', 'ALL' or custom-call targets, each with its reason"
    ),
    "changed_module": _one_that(lambda value: value in ("fail", "warn"), "'fail' or 'warn'"),
    "symbolic_shapes": _one_that(
        lambda value: isinstance(value, (str, list, tuple, dict)),
        "text such as 'b, 4', or one text or None for each argument",
    ),
    "constraints": partial(_texts, what="texts such as 'b >= 2'"),
    "mesh": _one_that(_is_mesh, "axis names with their sizes, such as {'data': 4}"),
    "in_specs": lambda where, name, value: value if isinstance(value, dict) else _sequence(where, name, value, _SPECS),
    "spread_over": _one_that(_is_count, "a number of devices"),
    "calling_convention_version": _one_that(_is_count, "a version number"),
    "ignore_forward_compatibility": _one_that(lambda value: isinstance(value, bool), "True or False"),
    "register": partial(_texts, what="names of modules"),
    "refused_on": _platforms,
    "nothing_to_compare": _REASON,
    "constant": partial(_texts, what="paths of leaves such as \"result['step']\""),
    "without_outputs": _REASON,
}
"""The reader of each keyword's value."""

ENTRIES = marker_keywords()  # The keywords that features add: keys of the policy, for which the marker has an entry.

ALL_KEYWORDS = (*KEYWORDS, *ENTRIES)


def _error(where: str, text: str) -> KeywordError:
    return KeywordError(f"{where} {text}")

"""Phrases that messages share: counts with their noun, lists, hints at a misspelled name, what is wrong in a file."""

import itertools
import re
import signal
from collections.abc import Iterable, Sequence

from export_core.base.escaping import plain_text

_LONGEST_LINE = 300
_TYPES = {
    "object": "a table",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
    "date": "a date such as 2026-10-25",
}
_SENTENCES = (
    (r"Object missing required field `(?P<key>.+)`", "expected the key `{key}`, found none"),
    (r"Object contains unknown field `(?P<key>.+)`", "`{key}`: unknown key"),
    (r"Expected `(?P<expected>.+)`, got `(?P<found>.+)`", "{key}expected {expected}, found {found}"),
    (r"Invalid enum value (?P<found>.+)", "{key}expected a value that this version knows, found {found}"),
    (r"Invalid RFC3339.*", "{key}expected a date such as 2026-10-25"),
    (r"Input data was truncated", "it ends in the middle"),
)
"""What msgspec says of data, and how this project says it."""


def plural(count: int, noun: str) -> str:
    """``1 golden``, ``2 goldens``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, with three dots where it is longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def first_line(text: str) -> str:
    """The first line of a message, cut to a length that is readable in a terminal; with the second after a colon."""
    lines = [line.strip() for line in plain_text(text).strip().splitlines()] or [""]
    line = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return shortened(line, _LONGEST_LINE)


def few(names: Sequence[str], most: int = 4) -> str:
    """All names where there are at most `most`, else the first three and how many more there are."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:3])} and {len(names) - 3} more"


def ranges(versions: Sequence[str], among: Sequence[str]) -> str:
    """``0.9.1 to 0.11.2, 0.12.0.1``: versions, of which three or more next to each other `among` all are a range.

    Both are in one order, that of build dates. Readers that are not jaxlib are ranges of their own runtime:
    ``tensorflow 2.18.1 to 2.21.0`` for three names such as ``tensorflow==2.18.1``.
    """
    places = {version: number for number, version in enumerate(among)}
    parts: list[str] = []
    # Places that rise together with their number in the list are next to each other.
    next_to_each_other = itertools.groupby(
        enumerate(versions), lambda pair: (places.get(pair[1], -1) - pair[0], pair[1].rpartition("==")[0])
    )
    for (_, runtime), run in next_to_each_other:
        names = [version.removeprefix(f"{runtime}==") for _, version in run]
        names = [f"{names[0]} to {names[-1]}"] if len(names) > 2 else names
        parts += [f"{runtime} {', '.join(names)}"] if runtime else names
    return ", ".join(parts)


def signal_name(number: int | None) -> str:
    """``signal 11 (SIGSEGV)``."""
    try:
        return f"signal {number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return f"signal {number}"


def close_match(name: str, known: Iterable[str], how_alike: float = 0.6) -> str:
    """The known name that is most like a misspelled one; empty where none is so much alike: 1 is the same name."""
    import difflib  # only a mistake needs it, and it takes milliseconds to import

    return next(iter(difflib.get_close_matches(name, list(known), 1, how_alike)), "")


def did_you_mean(name: str, known: Iterable[str], how_alike: float = 0.6) -> str:
    """`` Did you mean 'cuda'?``, to follow a sentence; empty where no known name is close."""
    return f" Did you mean {match!r}?" if (match := close_match(name, known, how_alike)) else ""


def schema_problem(error: Exception) -> str:
    """What msgspec found wrong in a file, as every message of this project says it: key, expected, found."""
    message, _, path = " ".join(str(error).split()).partition(" - at `")
    path = path.removesuffix("`").removeprefix("$").removeprefix(".").replace("`$.", "`")
    for pattern, sentence in _SENTENCES:
        if match := re.fullmatch(pattern, message):
            parts = match.groupdict()
            keyed = f"{path}.{parts['key']}".removeprefix(".") if "key" in parts else f"`{path}`: " if path else ""
            return sentence.format(
                key=keyed, expected=_type_names(parts.get("expected")), found=_type_names(parts.get("found"))
            )
    return f"{message}, at `{path}`" if path else message


def _type_names(types: str | None) -> str:
    return " or ".join(_TYPES.get(name, name) for name in (types or "").split(" | "))

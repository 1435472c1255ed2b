"""The names of a function's arguments and results in messages: their numbers, with their paths in the tree."""

import re
from collections.abc import Callable, Sequence

Named = Callable[[int], str]
"""A function that returns the name of a leaf in messages, given its number. `str` returns the number alone."""

LONGEST = 80  # Characters of a path in a message. The middle of a longer one is left out.
_HEAD = 20  # So many of these are from its beginning: its end says more.
_WHOLE = "result"  # The path of a function's only result, which says nothing.
_PATH = (  # Not compiled here: few commands need it.
    r"(?m)(?<=\d) \((?:args|kwargs|result|derivative by|the cotangent of)\b.*?\)(?=$|[,:;]| (?:as|is) | [\w<>]+\[)"
)


def numbered(number: int | str, path: str = "") -> str:
    """Return the number of a leaf with its path, such as ``0 (result['b1'])``.

    The path is left out if it is not known, or if the leaf is the whole result. For an output of a further call,
    `number` includes the name of the call: ``vjp1/0``.
    """
    return f"{number}{in_brackets(path)}"


def path_at(paths: Sequence[str], number: int) -> str:
    """Return the path of the leaf with this number; "" if paths are not known, or a damaged file lacks this path."""
    return paths[number] if number < len(paths) else ""


def in_brackets(path: str) -> str:
    """Return a path in brackets, with a space before them, to follow the number of its leaf.

    The text is empty if `numbered` leaves out the path.
    """
    if path in ("", _WHOLE):
        return ""
    tail = LONGEST - _HEAD - 1
    return f" ({path if len(path) <= LONGEST else f'{path[:_HEAD]}…{path[-tail:]}'})"


def of_derivative(arguments: Sequence[str], results: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the paths of the arguments and of the results of a function's derivative (VJP).

    `arguments` and `results` are the paths for the function itself. The path of a cotangent names the result, and the
    path of a derivative names the argument, to which it belongs.
    """
    cotangents = [f"the cotangent of {path}" for path in results]
    return [*arguments, *cotangents], [f"derivative by {path}" for path in arguments]


def without_paths(message: str) -> str:
    """Return a message without the paths that `numbered` added to numbers.

    Older runs and policies have messages without paths, and the paths differ between failures that are otherwise alike.
    """
    return re.sub(_PATH, "", message)

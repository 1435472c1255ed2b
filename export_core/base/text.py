"""Text for people: escaped for where it is shown, and phrases that messages share.

Case ids, messages of libraries and all other texts of a golden or a results folder may hold anything. They are escaped
when they are written, by one function for each format. URLs are shown and stored without user, password and the values
of a query.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


# As text: `re` compiles each when it is first used, and a command that shows plain text uses none.
_ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])"
# Marks that change the direction of the text around them, and what some programs take for the end of a line.
_MISLEADING = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
# Control characters, surrogates, and what XML 1.0 forbids.
_UNPRINTABLE = rf"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[{_MISLEADING}]"
_SURROGATE = "[\ud800-\udfff]"
_IN_JSON = rf"[\x7f-\x9f{_MISLEADING}]"

# For GitHub's runner, a line that begins with ::, after spaces too, is a command, and so is ##[ anywhere in a line.
_COMMAND = r"(?m)(^[^\S\n]*:)(?=:)|##(?=\[)"

_MARKDOWN = r"[\\`*_{}\[\]<>#|~&$]"
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "[": "&#91;"})
_HIDDEN = "***"
_URL = r"([A-Za-z][A-Za-z0-9+.-]*://)(\S+)"
_PLAIN_HOST = r"[\w.-]*|\[[0-9A-Fa-f:.%]+\]"
# A line of source above a caret, a note by whom it was called, and the place before an error, as XLA quotes them.
_SOURCE = r"(?m)^.*\n[ \t]*\^[ \t]*(?:\n|\Z)|^.*: note: called from[ \t]*(?:\n|\Z)|\S+:\d+:\d+: (?=error: )"
_LINK = r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)"


def plain_text(text: str) -> str:
    """Return a text that XML 1.0 accepts: without terminal colours, and with other control characters replaced."""
    if text.isascii() and text.isprintable():
        return text  # nearly all texts of a large run
    return re.sub(
        _UNPRINTABLE, "\N{REPLACEMENT CHARACTER}", re.sub(_ANSI, "", text.replace("\r\n", "\n").replace("\r", "\n"))
    )


def without_commands(text: str) -> str:
    """Return text without commands for a CI system: a backslash goes into ``##[``, and into ``::`` at line starts."""
    return re.sub(_COMMAND, lambda match: f"{match[0]}\\", text) if ":" in text or "##[" in text else text


def shown(text: str) -> str:
    """Return text that is safe to show in a terminal or a log: without control characters or commands of CI systems."""
    return without_commands(plain_text(text))


def printable(text: str) -> str:
    """Return text on one line, with unprintable characters and line breaks written as Python's escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def rounded_text(dtype: str) -> str:
    """Return the remark that arguments of the dtype float64 or complex128 are stored with half the bits."""
    narrow = "complex64" if dtype == "complex128" else "float32"
    return f"inputs were {dtype} and are stored as {narrow}, since jax_enable_x64 is off: enable it, or pass {narrow}"


def for_markdown(text: str) -> str:
    """Return text escaped so that Markdown shows it literally, without markup, HTML, links or mentions of people."""
    line = re.sub(_MARKDOWN, r"\\\g<0>", re.sub(r"[\n\t]+", " ", plain_text(text)))
    return re.sub(_LINK, "\N{ZERO WIDTH SPACE}", line)


def for_html(text: str) -> str:
    """Return text escaped so that a line of HTML inside Markdown shows it literally, without links or mentions."""
    line = re.sub(r"[\n\t]+", " ", plain_text(text)).translate(_HTML)
    return re.sub(_LINK, "\N{ZERO WIDTH SPACE}", line)


def with_escaped_surrogates(value: Any) -> Any:
    """Return a copy of a value of plain types in which all surrogates in texts are replaced by Python's escapes.

    Python represents each byte of a file's name that is not UTF-8 as a surrogate. Tuples become lists, as in JSON.
    """
    if isinstance(value, str):
        return re.sub(_SURROGATE, _as_byte, value)
    if isinstance(value, dict):
        return {with_escaped_surrogates(key): with_escaped_surrogates(item) for key, item in value.items()}
    return [with_escaped_surrogates(item) for item in value] if isinstance(value, list | tuple) else value


def _as_byte(surrogate: re.Match[str]) -> str:
    """Return Python's escape of the byte that a surrogate stands for, or of the surrogate if it stands for no byte."""
    number = ord(surrogate[0])
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else f"\\u{number:04x}"


def printable_json(text: str) -> str:
    """Return JSON text with every character escaped that a terminal or a log could take for a command.

    The result decodes to the same values as `text`, which is a JSON document.
    """
    # In JSON, such letters are in strings only, where the escape means the same.
    return re.sub(_IN_JSON, lambda match: f"\\u{ord(match[0]):04x}", text).replace("##[", "##\\u005b")


def without_credentials(text: str) -> str:
    """Return a text in which URLs have no user, no password and no values in their queries.

    All other text is unchanged. More is taken for a password than the standard of URLs does, since a password may
    contain `@`, `/`, `?` and `#`.
    """
    return re.sub(_URL, lambda match: match[1] + _shown(match[2]), text) if "://" in text else text


def _shown(rest: str) -> str:
    """Return the part of a URL after ``scheme://``, without user, password and the values of the query.

    Everything up to the last @ is dropped, unless that @ can only be in a path or a query.
    """
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    # Not after a port: in https://user:12/34@host it is a part of the password.
    shown = rest if re.fullmatch(_PLAIN_HOST, authority) else rest.rpartition("@")[2]
    start = re.search(r"[?#]", shown)
    if not start:
        return shown
    # A query and a fragment without their values.
    return shown[: start.start()] + re.sub(r"([?#&;])([^&;#\s\"'<>`)]+)", _hidden_part, shown[start.start() :])


def _hidden_part(match: re.Match[str]) -> str:
    name, equals, _ = match[2].partition("=")
    # A place in a page, as jax's own messages name it, and the hash of a file are no secrets.
    if match[1] == "#" and re.fullmatch(r"[\w.-]+[,:]*|sha256=[0-9a-f]{64}\W*", match[2]):
        return match[0]
    return f"{match[1]}{name}={_HIDDEN}" if equals else f"{match[1]}{_HIDDEN}" if name else match[0]


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
"""Patterns of msgspec's messages, and the words of this project for them."""
QUOTED_AS_WRITTEN = 'in quotes as you wrote it, such as "0.10": without them, YAML reads 0.10 as the number 0.1'
"""Advice for a text, such as a version, that YAML has read as a number, so that its digits as written are lost."""


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 golden``, ``2 goldens`` or ``2 entries``."""
    if count != 1 and noun.endswith("try"):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shortened(text: str, most: int) -> str:
    """Return a text cut to at most `most` characters, with three dots at the end if it was longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def first_line(text: str) -> str:
    """Return the first line of a message as `whole_first_line` does, cut to `_LONGEST_LINE` characters."""
    return shortened(whole_first_line(plain_text(text)), _LONGEST_LINE)


def whole_first_line(text: str) -> str:
    """Return the first line of a message, with the second line if the first ends with a colon or a semicolon."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return " ".join(lines[:2]) if lines[0].endswith((":", ";")) else lines[0]


def without_source_lines(text: str) -> str:
    """Return a message of XLA without the lines of source code that it quotes, and without their locations.

    The quoted code is the code that called jax last. A comment in it could be taken for a part of the message.
    """
    return re.sub(_SOURCE, "", text)


def few(names: Sequence[str], most: int = 4) -> str:
    """Return names as a list in words: all of at most `most` names, or else three names and how many more there are."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:3])} and {len(names) - 3} more"


def ranges(versions: Sequence[str], among: Sequence[str]) -> str:
    """Return versions in words, with three or more neighbours as a range: ``0.9.1 to 0.11.2, 0.12.0.1``.

    Two versions are neighbours if they follow each other in `among`, which lists all versions. Both lists are in the
    order of build dates. Names of other runtimes, such as ``tensorflow==2.18.1``, become ``tensorflow 2.18.1 to
    2.21.0``.
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


def close_match(name: str, known: Iterable[str], how_alike: float = 0.6) -> str:
    """Return the known name that is most similar to a misspelled name; "" if no known name is similar enough.

    `how_alike` is the least similarity that is enough, from 0 to 1 for equal names.
    """
    import difflib  # 2 ms of each `jaxexport inspect`, and only a mistake needs it

    return next(iter(difflib.get_close_matches(name, list(known), 1, how_alike)), "")


def did_you_mean(name: str, known: Iterable[str], how_alike: float = 0.6) -> str:
    """Return a hint such as `` Did you mean 'cuda'?``, to follow a sentence; "" if no known name is similar."""
    return f" Did you mean {match!r}?" if (match := close_match(name, known, how_alike)) else ""


def schema_problem(error: Exception) -> str:
    """Return an error of msgspec in the words of this project: the key, what was expected, and what was found."""
    message, _, path = " ".join(str(error).split()).partition(" - at `")
    path = path.removesuffix("`").removeprefix("$").removeprefix(".").replace("`$.", "`")
    for pattern, sentence in _SENTENCES:
        if match := re.fullmatch(pattern, message):
            parts = match.groupdict()
            keyed = f"{path}.{parts['key']}".removeprefix(".") if "key" in parts else f"`{path}`: " if path else ""
            expected, found = parts.get("expected") or "", parts.get("found") or ""
            hint = ""
            if "str" in expected.split(" | ") and found in ("float", "int", "date"):
                hint = f"; put it {QUOTED_AS_WRITTEN if found == 'float' else 'in quotes'}"
            return sentence.format(key=keyed, expected=_type_names(expected), found=_type_names(found)) + hint
    return f"{message}, at `{path}`" if path else message


def _type_names(types: str) -> str:
    return " or ".join(_TYPES.get(name, name) for name in types.split(" | "))

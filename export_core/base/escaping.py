"""Text from files, made safe for where it is shown: a terminal or a log, Markdown, JSON, YAML.

Case ids, messages of libraries and whatever else a golden or a results folder holds may be anything. It is escaped
where it leaves: in the one function of each format that writes it.
"""

from __future__ import annotations

import re
from typing import Any, Literal

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
_LINK = r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)"


def plain_text(text: str) -> str:
    """Text without terminal colours and control characters; line breaks stay. What is left is legal in XML 1.0.

    What native libraries print is part of a finding, and may hold anything.
    """
    if text.isascii() and text.isprintable():
        return text  # nearly all texts of a large run
    return re.sub(
        _UNPRINTABLE, "\N{REPLACEMENT CHARACTER}", re.sub(_ANSI, "", text.replace("\r\n", "\n").replace("\r", "\n"))
    )


def without_commands(text: str) -> str:
    """Text no line of which a CI system takes for a command: a backslash is put into ``::`` and ``##[``."""
    return re.sub(_COMMAND, lambda match: f"{match[0]}\\", text) if ":" in text or "##[" in text else text


def shown(text: str) -> str:
    """Text for a terminal or a log."""
    return without_commands(plain_text(text))


def printable(text: str) -> str:
    """Text on one line: every letter that is not printable, a line break among them, is written as Python's escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def for_markdown(text: str) -> str:
    """Text as itself in a line or a cell of a table: no markup, no HTML, no link or image, nobody mentioned."""
    line = re.sub(_MARKDOWN, r"\\\g<0>", re.sub(r"[\n\t]+", " ", plain_text(text)))
    return re.sub(_LINK, "\N{ZERO WIDTH SPACE}", line)


def for_html(text: str) -> str:
    """Text as itself on a line of HTML inside Markdown, where GitHub still makes links and mentions people."""
    import html  # here: of its entities, a command in a terminal needs none

    line = html.escape(re.sub(r"[\n\t]+", " ", plain_text(text))).replace("[", "&#91;")
    return re.sub(_LINK, "\N{ZERO WIDTH SPACE}", line)


def safe_json(value: object, *, indent: int = -1) -> bytes:
    """A value as JSON, on one line unless indented. See `for_json`."""
    import msgspec  # here: an error needs none of it

    data = json_bytes(value)
    if indent >= 0:
        data = msgspec.json.format(data, indent=indent)
    # Nearly all results of a run are plain: reading them letter by letter would take ten times as long as writing them.
    if data.isascii() and b"\x7f" not in data and b"##[" not in data:
        return data
    return for_json(data.decode()).encode()


def json_bytes(value: object, *, order: Literal["deterministic"] | None = None) -> bytes:
    """A value as JSON in UTF-8, also where it quotes the name of a file that is not: see `in_utf8`."""
    import msgspec

    try:
        return msgspec.json.encode(value, order=order)
    except UnicodeEncodeError:
        return msgspec.json.encode(in_utf8(msgspec.to_builtins(value)), order=order)


def in_utf8(value: Any) -> Any:
    """A value of plain types, with the number of each byte of a name that is not UTF-8, as Python's escape."""
    if isinstance(value, str):
        return re.sub(_SURROGATE, lambda match: _as_byte(match[0]), value)
    if isinstance(value, dict):
        return {in_utf8(key): in_utf8(item) for key, item in value.items()}
    return [in_utf8(item) for item in value] if isinstance(value, list | tuple) else value


def _as_byte(surrogate: str) -> str:
    """Python has a byte of a file's name that is not UTF-8 as one of 128 surrogates."""
    number = ord(surrogate)
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else f"\\u{number:04x}"


def for_json(text: str) -> str:
    """JSON that means the same, with every letter escaped that is more than a letter to a terminal or a log."""
    # Such letters are in strings only, where the escape means the same.
    return re.sub(_IN_JSON, lambda match: f"\\u{ord(match[0]):04x}", text).replace("##[", "##\\u005b")

"""Text from files, made safe for where it is shown: a terminal or a log, Markdown, JSON, YAML.

Case ids, messages of libraries and whatever else a golden or a results folder holds may be anything. It is escaped
where it leaves: in the one function of each format that writes it. URLs are shown and stored without user, password and
what a query holds.
"""

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
_HIDDEN = "***"
_URL = r"([A-Za-z][A-Za-z0-9+.-]*://)(\S+)"
_PLAIN_HOST = r"[\w.-]*|\[[0-9A-Fa-f:.%]+\]"
_LINK = r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)"


def plain_text(text: str) -> str:
    """Text without terminal colours and control characters, which libraries print too. XML 1.0 may hold it."""
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
        return re.sub(_SURROGATE, _as_byte, value)
    if isinstance(value, dict):
        return {in_utf8(key): in_utf8(item) for key, item in value.items()}
    return [in_utf8(item) for item in value] if isinstance(value, list | tuple) else value


def _as_byte(surrogate: re.Match[str]) -> str:
    """Python has a byte of a file's name that is not UTF-8 as one of 128 surrogates."""
    number = ord(surrogate[0])
    return f"\\x{number - 0xDC00:02x}" if 0xDC80 <= number <= 0xDCFF else f"\\u{number:04x}"


def for_json(text: str) -> str:
    """JSON that means the same, with every letter escaped that is more than a letter to a terminal or a log."""
    # Such letters are in strings only, where the escape means the same.
    return re.sub(_IN_JSON, lambda match: f"\\u{ord(match[0]):04x}", text).replace("##[", "##\\u005b")


def without_credentials(text: str) -> str:
    """A text with each URL in it as it may be shown, logged or stored; everything else of the text stays.

    URLs are parsed conservatively. A password may hold `@`, `/`, `?` and `#` although it should not, and then a program
    that parses by the standard sees only a part of it as such.
    """
    return re.sub(_URL, lambda match: match[1] + _shown(match[2]), text) if "://" in text else text


def _shown(rest: str) -> str:
    """What follows ``scheme://``: all up to the last @ is dropped, unless it can only be in a path or a query."""
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

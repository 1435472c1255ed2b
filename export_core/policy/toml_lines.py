"""The line of each key in a TOML text that tomllib has accepted.

Neither tomllib nor tomlkit, whose items keep their comments and blanks, says where an item is. Since the text is valid,
this needs no values and no errors, only to tell keys and brackets from what is in quotes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\r]+|\#[^\n]*)
    | (?P<line>\n)
    | (?P<mark>[\[\]{}=,.])
    | (?P<word>
        \"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}\"{0,2}
      | '{3}(?:[^']|'(?!''))*'{3}'{0,2}
      | "(?:[^"\\\n]|\\.)*"
      | '[^'\n]*'
      | [^\s\[\]{}=,\#"'.]+
      )
    """,
    re.VERBOSE | re.DOTALL,
)

Key = tuple[str | int, ...]
"""The path to a value: ``("known_failures", 0, "verdict")``."""


def toml_lines(text: str) -> dict[Key, int]:
    """The line, counted from 1, of each table, key and element: ``("tool", "jaxexport", "windows", "backward")``.

    The text must be one that tomllib accepts.
    """
    reader = _Reader(text)
    reader.read()
    return reader.lines


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines: dict[Key, int] = {(): 1}
        # With an end token, no method has to check whether there is a next one.
        self._tokens = [*_tokens(text), ("end", "", 0)]
        self._at = 0
        self._counts: dict[Key, int] = {}  # how many tables an array of tables has so far

    def read(self) -> None:
        table: Key = ()
        while self._kind() != "end":
            if self._kind() == "line":
                self._next()
            elif self._is("["):
                table = self._header()
            else:
                self._assignment(table)

    def _header(self) -> Key:
        self._next()
        array = self._is("[")
        if array:
            self._next()
        line, names = self._line(), self._names()
        for _ in range(1 + array):
            self._next()
        key: Key = ()
        for number, name in enumerate(names, 1):
            key = (*key, name)
            self.lines.setdefault(key, line)
            if array and number == len(names):
                self._counts[key] = self._counts.get(key, 0) + 1
            # A header such as [a.b] after [[a]] is about the newest element of a.
            if key in self._counts:
                key = (*key, self._counts[key] - 1)
                self.lines.setdefault(key, line)
        return key

    def _assignment(self, table: Key) -> None:
        line, key = self._line(), table
        for name in self._names():
            key = (*key, name)
            self.lines.setdefault(key, line)
        self._next()  # =
        self._value(key)

    def _value(self, key: Key) -> None:
        if self._is("["):
            self._next()
            number = 0
            while not self._is("]"):
                if self._kind() == "line" or self._is(","):
                    self._next()
                else:
                    self.lines[(*key, number)] = self._line()
                    self._value((*key, number))
                    number += 1
            self._next()
        elif self._is("{"):
            self._next()
            while not self._is("}"):
                if self._kind() == "line" or self._is(","):
                    self._next()
                else:
                    self._assignment(key)
            self._next()
        else:  # a date with a time is two words, a number with a fraction three tokens
            while self._kind() == "word" or self._is("."):
                self._next()

    def _names(self) -> list[str]:
        names = [_plain(self._next())]
        while self._is("."):
            self._next()
            names.append(_plain(self._next()))
        return names

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _is(self, mark: str) -> bool:
        return self._tokens[self._at][:2] == ("mark", mark)

    def _line(self) -> int:
        return self._tokens[self._at][2]


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    line = 1
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind != "blank":
            yield kind, match[0], line
        line += match[0].count("\n")


def _plain(name: str) -> str:
    # tomllib itself unquotes a quoted key, with all its escapes.
    return next(iter(tomllib.loads(f"{name} = 0"))) if name[0] in "\"'" else name

"""The check of regular expressions that somebody else wrote, since some would search forever."""

import re

LONGEST_PATTERN = 1000  # Characters of a regular expression.

# What a regular expression of a golden may be, once each escape and class in it is one character.
_ONE_CHARACTER = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_HOW_TO_READ = re.compile(r"^\(\?i\)|(?<=\()\?i?:")  # Of a group, or of all.
_PLAIN = r"(?:[^()|*+{]|\((?!\?)[^()*+{]*\)(?![*+{]))*"  # No repeats; groups are not nested, and not repeated.
_ALTERNATIVE = rf"{_PLAIN}(?:[^()|*+{{][*+]{_PLAIN})?"  # One repeat of one character.
_QUICK = re.compile(rf"{_ALTERNATIVE}(?:\|{_ALTERNATIVE})*", re.DOTALL)
_MOST_CHOICES = 8  # Alternatives and optional characters: each may double the time.


def problem_of_pattern(pattern: str) -> str:
    """Return what is wrong with a regular expression that somebody else wrote; "" if it is safe to use.

    Matching a regular expression cannot be interrupted in Python, and may take forever. So a pattern is accepted only
    if its time grows at most with the square of the text's length.
    """
    if len(pattern) > LONGEST_PATTERN:
        return f"expected a regular expression of at most {LONGEST_PATTERN} characters, found {len(pattern)}."
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"expected a regular expression, found {pattern!r}: {error}."
    plain = _HOW_TO_READ.sub("", _ONE_CHARACTER.sub("x", pattern))
    if not _QUICK.fullmatch(plain):
        return (
            "expected a regular expression with one * or + at most in each alternative, after one character or class, "
            f"and no {{…}} or groups in groups, since the search for others may never end; "
            f"found {pattern!r}. Match fewer words."
        )
    if (choices := plain.count("|") + plain.count("?")) > _MOST_CHOICES:
        return f"expected a regular expression with at most {_MOST_CHOICES} | and ?, found {choices} in {pattern!r}."
    return ""

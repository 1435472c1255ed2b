"""Paragraphs in lines of a terminal, which are those of `textwrap` from the standard library."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_core.base.layout import wrapped

WORDS = st.lists(st.text("ab-.\u00e9", min_size=1, max_size=14), min_size=1, max_size=30)


def by_textwrap(text, width, first, indent):
    options = {"break_long_words": False, "break_on_hyphens": False}
    width = max(width, indent + 20)
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=" " * indent, **options)


@given(WORDS, st.integers(10, 60), st.sampled_from(["", "  label  ", "- "]), st.integers(0, 12))
def test_lines_are_wrapped_as_by_textwrap(words, width, first, indent):
    text = " ".join(words)
    assert wrapped(text, width, first, indent) == by_textwrap(text, width, first, indent)


@pytest.mark.parametrize(
    "text", ["two  spaces between words of a line that is long", "a tab\tin a line that is too long", " x" * 20]
)
def test_repeated_spaces_and_tabs_are_wrapped_as_by_textwrap(text):
    assert wrapped(text, 20, "- ", 2) == by_textwrap(text, 20, "- ", 2)


def test_a_command_in_backticks_stays_on_one_line():
    lines = wrapped("Run `jaxexport matrix --readers 0.12.0.1` and then `look here` at it", 24, "", 2)
    assert lines == ["Run", "  `jaxexport matrix --readers 0.12.0.1`", "  and then `look here`", "  at it"]

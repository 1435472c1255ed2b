"""URLs are shown without user, password and the values of queries, however they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_core.errors import ExportCompatError
from export_core.urls import without_credentials

HASH = "a" * 64


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:p@ss@host/simple", "https://host/simple"),
        ("https://user:p/s@host/simple", "https://host/simple"),
        ("https://user:p?s@host/simple", "https://host/simple"),
        ("https://user:p#s@host/simple", "https://host/simple"),
        ("https://user:12/34@host/simple", "https://host/simple"),
        ("https://token@host:8080/simple", "https://host:8080/simple"),
        ("https://host/simple?token=abc&x=", "https://host/simple?token=***&x=***"),
        ("https://host/simple?abc", "https://host/simple?***"),
        ("https://host/w.whl#token=abc", "https://host/w.whl#token=***"),
        (f"https://host/w.whl#sha256={HASH}", f"https://host/w.whl#sha256={HASH}"),
        ("https://host/d@e", "https://host/d@e"),
        ("file:///home/me@home/wheels", "file:///home/me@home/wheels"),
        ("https://[::1]:8080/simple", "https://[::1]:8080/simple"),
        ("jaxlib @ https://u:p@host/w.whl, numpy", "jaxlib @ https://host/w.whl, numpy"),
        ("Failed to fetch: `https://u:p@host/x?token=abc` (401)", "Failed to fetch: `https://host/x?token=***` (401)"),
        ("git+ssh://u:p@host/x and git+https://u:p@host/y", "git+ssh://host/x and git+https://host/y"),
        ("no URL: a@b", "no URL: a@b"),
    ],
)
def test_a_url_is_shown_without_what_is_secret(url, shown):
    assert without_credentials(url) == shown
    assert without_credentials(shown) == shown


SECRET = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=4).map(lambda text: f"S{text}T")


@given(SECRET)
def test_no_password_is_shown_whatever_it_holds(secret):
    for text in (f"https://user:{secret}@host/simple", f"error: https://user:{secret}@host/simple?x=1 failed"):
        assert secret not in without_credentials(text)


@given(st.text("abcXYZ0189-_.~%+/", min_size=8))
def test_no_value_of_a_query_is_shown(secret):
    assert secret not in without_credentials(f"https://host/simple?token={secret}&x={secret}")


def test_an_error_never_shows_a_password():
    assert str(ExportCompatError("cannot open https://me:s3cret@host/x")) == "cannot open https://host/x"

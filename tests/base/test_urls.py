"""URLs are shown without user, password and the values of queries, in each way to write them."""

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import result, summarize

from export_core.base.errors import ExportCompatError
from export_core.base.json_text import safe_json
from export_core.base.text import without_credentials
from export_core.cli.output import echo, safe_console
from export_core.judge.gate import recorded_policy
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions, option_words
from export_core.run.plan_record import hash_of, policy_hash

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
        ("see https://host/export.html#some-guarantees.", "see https://host/export.html#some-guarantees."),
        ("see https://host/export.html#why, until", "see https://host/export.html#why, until"),
        ("https://host/d@e", "https://host/d@e"),
        ("file:///home/me@home/wheels", "file:///home/me@home/wheels"),
        ("https://[::1]:8080/simple", "https://[::1]:8080/simple"),
        ("jaxlib @ https://u:p@host/w.whl, numpy", "jaxlib @ https://host/w.whl, numpy"),
        ("Failed to fetch: `https://u:p@host/x?token=abc` (401)", "Failed to fetch: `https://host/x?token=***` (401)"),
        ("git+ssh://u:p@host/x and git+https://u:p@host/y", "git+ssh://host/x and git+https://host/y"),
        ("no URL: a@b", "no URL: a@b"),
    ],
)
def test_a_url_is_shown_without_its_credentials(url, shown):
    assert without_credentials(url) == shown
    assert without_credentials(shown) == shown


SECRET = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=4).map(lambda text: f"S{text}T")


@given(SECRET)
def test_any_password_in_a_url_is_hidden(secret):
    for text in (f"https://user:{secret}@host/simple", f"error: https://user:{secret}@host/simple?x=1 failed"):
        assert secret not in without_credentials(text)


@given(st.text("abcXYZ0189-_.~%+/", min_size=8))
def test_the_values_of_a_query_are_hidden(secret):
    assert secret not in without_credentials(f"https://host/simple?token={secret}&x={secret}")


def test_the_text_of_an_error_hides_passwords():
    assert str(ExportCompatError("cannot open https://me:s3cret@host/x")) == "cannot open https://host/x"


def test_a_summary_hides_passwords_of_the_policy():
    url = "tools @ https://me:s3cret@host/tools.whl?token=s3cret"
    policy = Policy(backfill_install=(url,), reader_packages=(url, "optax"))
    made = summarize([result()], policy=policy)
    assert made.policy["backfill_install"] == ["tools @ https://host/tools.whl?token=***"]
    assert made.policy["reader_packages"] == ["tools @ https://host/tools.whl?token=***", "optax"]
    assert b"s3cret" not in safe_json(made)


def test_a_new_password_leaves_the_plan_hash_unchanged():
    first, second, other = (
        Policy(reader_packages=(f"tools @ https://me:{password}@host/{name}.whl",))
        for password, name in (("s3cret", "tools"), ("n3w", "tools"), ("n3w", "other"))
    )
    recorded = msgspec.convert(recorded_policy(first), Policy)
    assert second.replays_otherwise(recorded) == ""
    assert other.replays_otherwise(recorded) == "reader_packages"
    assert hash_of(first.replayed()) == hash_of(second.replayed()) != hash_of(other.replayed())
    assert policy_hash(recorded_policy(first)) == policy_hash(recorded_policy(second))


def test_printed_text_hides_passwords(capsys):
    echo("from https://me:s3cret@host/simple")
    safe_console(sys.stdout).print("from https://me:s3cret@host/simple?token=s3cret")
    assert capsys.readouterr().out == "from https://host/simple\nfrom https://host/simple?token=***\n"


def test_the_option_executor_hides_a_password():
    words = option_words(RunOptions(executor="dask:tls://me:s3cret@host:8786"))
    assert words == ["--executor", "dask:tls://host:8786"]

"""Files that somebody else may have written are read with one clear error, whatever is in them."""

import math
import os

import pytest
from making import golden

from export_core.base.atomic import write_whole
from export_core.base.untrusted import read_regular
from export_core.goldens import Comparison
from export_core.matrix.cache_keys import expected_content
from export_core.policy import PolicyError
from export_core.policy.load import load_policy
from export_core.releases import ReleaseError
from export_core.releases.project_releases import read_releases
from export_core.run.errors import RunError
from export_core.run.plan_record import recorded_plan
from export_core.run.results import read_results, read_summary

DEEP = ["[" * 40_000, "a: " + "{a: " * 40_000, "- " * 40_000 + "x", "a: &a [1]\nb: &b [*a, *a]"]


@pytest.mark.parametrize("text", DEEP, ids=["lists", "tables", "blocks", "aliases"])
def test_a_deep_file_of_releases_is_an_error(tmp_path, text):
    path = tmp_path / "export_releases.yaml"
    path.write_text(text)
    with pytest.raises(
        ReleaseError, match=r"export_releases\.yaml: (expected (at most 100 lists|no alias)|.*maximum nesting depth)"
    ):
        read_releases(path)


@pytest.mark.parametrize("text", DEEP[:3], ids=["lists", "tables", "blocks"])
def test_a_deep_policy_is_an_error(tmp_path, text):
    path = tmp_path / "export_compat.yaml"
    path.write_text(text)
    with pytest.raises(PolicyError, match=r"export_compat\.yaml.*nested deeper than any policy needs"):
        load_policy(path)


@pytest.mark.parametrize(
    "text", ["[" * 40_000, '{"x":' + '{"a":' * 40_000, '"\udcff"'], ids=["lists", "tables", "utf-8"]
)
def test_deep_results_are_an_error(tmp_path, text):
    data = text.encode(errors="surrogateescape")
    for name in ("results.jsonl", "summary.json", "plan.json"):
        (tmp_path / name).write_bytes(data)
    with pytest.raises(RunError, match=r"results\.jsonl:1: not a result: "):
        list(read_results(tmp_path))
    with pytest.raises(RunError, match=r"summary\.json: not a summary that this version reads: "):
        read_summary(tmp_path)
    with pytest.raises(RunError, match=r"plan\.json: not a plan that this version reads: "):
        recorded_plan(tmp_path)


@pytest.mark.parametrize("kind", ["FIFO", "symbolic link", "folder", "socket"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        os.mknod(path, 0o140644)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(OSError, match=f"expected a regular file, found a {kind}"):
        read_regular(path)


def test_infinity_and_nan_have_keys_of_their_own():
    amounts = (None, math.inf, math.nan, -math.inf, 0.0, "null", {})
    keys = {expected_content(golden(comparison=Comparison(rtol=amount)).manifest) for amount in amounts}
    assert len(keys) == len(amounts)


def test_what_is_no_file_takes_what_is_written_and_stays(tmp_path):
    """As root, ``report --html /dev/null`` would else make a file of the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, [b"one ", b"two"])
    assert os.read(descriptor, 100) == b"one two"
    os.close(descriptor)
    assert list(tmp_path.iterdir()) == [pipe]
    assert pipe.is_fifo()

"""Nothing in a golden is believed that can be checked: names, numbers, patterns, nesting, kinds of files."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from making import files, manifest, write_golden, writer

from export_core.goldens import Check, Comparison, GoldenError, GoldenStore, Manifest, Options, rules, staging
from export_core.goldens.manifest import check_manifest, dump_manifest, load_manifest
from export_core.goldens.rules import found_in
from export_core.goldens.store import INPUTS, OUTPUTS, sha256
from export_core.goldens.verify import verify_goldens

HASH = sha256(b"")
LISTED = {INPUTS: HASH, OUTPUTS: HASH}


@pytest.fixture
def store(tmp_path) -> GoldenStore:
    return GoldenStore(tmp_path / "golden")


def check(**fields: object) -> dict[str, tuple[Check, ...]]:
    return {"checks": (Check(**{"name": "again", **fields}),)}


BAD: dict[str, tuple[dict[str, object], str]] = {
    "a file above": ({"files": {"../outside": HASH}}, "names of files beside"),
    "an absolute file": ({"files": {"/etc/passwd": HASH}}, "names of files beside"),
    "a file of Windows": ({"files": {"C:outside": HASH}}, "names of files beside"),
    "a backslash": ({"files": {"..\\outside": HASH}}, "names of files beside"),
    "the folder above": ({"files": {"..": HASH}}, "names of files beside"),
    "NUL in a name": ({"files": {"a\0b": HASH}}, "names of files beside"),
    "the manifest itself": ({"files": {"golden.yaml": HASH}}, "names of files beside"),
    "no hash": ({"files": {INPUTS: "none"}}, "SHA-256 of 64"),
    "unlisted inputs": (check(inputs="more.npz", outputs=OUTPUTS), "inputs: expected one of `files`"),
    "unlisted outputs": (check(outputs="../o.npz"), "outputs: expected one of `files`"),
    "nothing to check": (check(), "expected either `outputs` or `refused`"),
    "no expression": (check(refused="(["), "expected a regular expression, found"),
    "a deep expression": (check(refused="(" * 900), "expected a regular expression, found"),
    "a long expression": (check(refused="a" * 2000), "at most 1000 characters"),
    "a path to register": ({"options": Options(("cpu",), register=("../evil",))}, "dotted name of a Python module"),
    "nothing registered": ({"options": Options(("cpu",), register=("nodes",))}, "expected its copy nodes.register.py"),
    "an endless mesh": ({"options": Options(("cpu",), mesh={"x": 10**9})}, "at most 65536 devices"),
    "an empty mesh": (check(outputs=OUTPUTS, mesh={"x": 0}), "sizes of 1 or more"),
    "a negative order": (check(outputs=OUTPUTS, vjp=-1), "order of a derivative"),
    "an infinite rtol": ({"comparison": Comparison(rtol=math.inf)}, "finite number of 0 or more, found inf"),
    "no number": ({"comparison": Comparison(atol=math.nan)}, "finite number of 0 or more, found nan"),
    "a negative ulp": ({"comparison": Comparison(ulp=-1)}, "whole number of 0 or more, found -1"),
    "an unknown comparator": ({"comparison": Comparison("close")}, "expected one of allclose"),
    "code as comparator": ({"comparison": Comparison("os:system('x')")}, "expected module:function"),
    "a case above": ({"case": "../up"}, "expected the name of a folder"),
    "a hidden case": ({"case": ".new-x"}, "expected the name of a folder"),
    "a case with ESC": ({"case": "t\x1b[2Jx"}, "expected the name of a folder"),
    "a huge flag": ({"flags": {"x": 2**80}}, "a number of 64 bits"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_manifest_that_breaks_a_rule_is_not_loaded(tmp_path, name):
    changes, problem = BAD[name]
    path = tmp_path / "golden.yaml"
    path.write_bytes(dump_manifest(manifest(**{"files": LISTED, **changes})))
    with pytest.raises(GoldenError, match=re.escape(problem)) as raised:
        load_manifest(path)
    assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize("field", ["jax", "jaxlib", "platform"])
@pytest.mark.parametrize("value", ["", "..", "a/b", "0.9.2\n::error::", "-x"])
def test_a_writer_is_a_version_and_a_platform(field, value):
    made = manifest(files=LISTED, writer=msgspec.structs.replace(writer(), **{field: value}))
    with pytest.raises(GoldenError, match=rf"writer\.{field}: expected a"):
        check_manifest(made, "golden.yaml")


def test_a_manifest_that_breaks_a_rule_is_not_written(store, tmp_path):
    with pytest.raises(GoldenError, match="case: expected the name of a folder"):
        store.write(manifest("../outside", files=LISTED), {})
    assert list(tmp_path.iterdir()) == []


def nested_blocks() -> str:
    return "\n".join(" " * level + "a:" for level in range(3000))


@pytest.mark.parametrize(
    "text",
    ["[" * 40_000, "a: " + "{a: " * 40_000, "- " * 40_000 + "x", "? " * 40_000, nested_blocks()],
    ids=["lists", "tables", "block lists", "keys", "block tables"],
)
def test_deep_nesting_is_an_error_and_no_signal(tmp_path, text):
    path = tmp_path / "golden.yaml"
    path.write_text(text)
    started = time.monotonic()
    with pytest.raises(GoldenError, match=r"golden\.yaml: not a golden's manifest: .*(inside each other|not )"):
        load_manifest(path)
    assert time.monotonic() - started < 5


def test_aliases_are_refused_before_they_expand(tmp_path):
    lines = ["a: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    path = tmp_path / "golden.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(GoldenError, match="expected no alias, found"):
        load_manifest(path)


def replace_by_link(path: Path) -> None:
    outside = path.parents[3] / "outside"
    outside.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(outside)


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


KINDS = {"link": replace_by_link, "FIFO": replace_by_fifo, "device": replace_by_device}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["golden.yaml", "artifact.jaxexport", "inputs.npz"])
def test_only_regular_files_are_read(store, kind, name):
    golden = write_golden(store, manifest())
    KINDS[kind](golden.folder / name)
    with pytest.raises(GoldenError, match="expected a regular file, found a"):
        verify_goldens(store)


def link_case(golden_folder: Path) -> Path:
    return golden_folder.parent


def link_writer(golden_folder: Path) -> Path:
    return golden_folder


@pytest.mark.parametrize("which", [link_case, link_writer])
def test_a_golden_behind_a_link_is_refused(store, tmp_path, which: Callable[[Path], Path]):
    linked = which(write_golden(store, manifest()).folder)
    linked.rename(tmp_path / "outside")
    linked.symlink_to(tmp_path / "outside")
    with pytest.raises(GoldenError, match="expected a folder, found a symbolic link"):
        store.goldens()


def test_a_pattern_that_would_never_end_is_given_up(monkeypatch):
    monkeypatch.setattr(rules, "SEARCH_SECONDS", 0.5)
    started = time.monotonic()
    assert not Check("x", refused="(a+)+b").expects("a" * 100)
    assert not Check("x", refused="a*a*a*a*a*a*a*b").expects("a" * 4000)
    assert not Check("x", refused="(a|aa)" * 100 + "b").expects("a" * 150)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("pattern", ["for \\d+ dev", "(?i)EXPORTED|lowered", "(e|f)x.*for .* dev", "(export)+ed"])
def test_patterns_match_as_python_has_them(pattern):
    assert found_in("exported for 2 devices", pattern)
    assert not found_in("something else", pattern)


def test_a_write_that_only_the_disk_doubts_says_so(store, monkeypatch):
    made, content = hashed(manifest()), files()
    calls = []

    def fails_at_last(folder: Path) -> None:
        calls.append(folder)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(staging, "sync_folder", fails_at_last)
    with pytest.raises(GoldenError, match="is written and complete, but the disk did not confirm it") as raised:
        store.write(made, content)
    assert "Nothing stored was changed" not in str(raised.value)
    assert [golden.id for golden in store.goldens()] == ["tests.test_a.test_f/0.12.0.1-cpu"]


def hashed(made: Manifest) -> Manifest:
    return msgspec.structs.replace(made, files={name: sha256(data) for name, data in files().items()})

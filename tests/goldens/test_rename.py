"""A rename gives goldens the new name of their test. If it is killed, each golden still has one name or both."""

from pathlib import Path

import msgspec
import pytest
from commands import assert_bad_input
from making import manifest, write_golden

from export_core.base import atomic
from export_core.goldens import GoldenError, GoldenStore
from export_core.goldens.upkeep import rename_case

OLD, NEW, TEST = "tests.test_a.test_old", "tests.test_a.test_new", "tests/test_a.py::test_old"
WRITERS = ("0.9.2", "0.12.0.1")


@pytest.fixture
def store(tmp_path, monkeypatch) -> GoldenStore:
    monkeypatch.chdir(tmp_path)
    made = GoldenStore(tmp_path / "golden")
    for jaxlib in WRITERS:
        write_golden(made, manifest(OLD, jaxlib, test=TEST))
    return made


def content(store: GoldenStore, case: str) -> dict[str, bytes]:
    return {
        path.relative_to(store.root / case).as_posix(): path.read_bytes()
        for path in sorted((store.root / case).rglob("*"))
        if path.is_file() and path.name != "golden.yaml"
    }


def test_a_rename_changes_only_case_and_test(store):
    before, manifests = content(store, OLD), [golden.manifest for golden in store.goldens()]
    renamed = rename_case(store, OLD, NEW)
    assert [path.name for path in store.root.iterdir()] == [NEW]
    assert content(store, NEW) == before
    assert [golden.manifest for golden in renamed] == [
        msgspec.structs.replace(made, case=NEW, test="tests/test_a.py::test_new") for made in manifests
    ]


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("steps", range(6))
def test_a_killed_rename_loses_nothing_and_is_completed(store, monkeypatch, steps):
    before = content(store, OLD)
    left = iter(range(steps))

    def killed(*_: object) -> None:
        if next(left, None) is None:
            raise KilledError

    with monkeypatch.context() as patched:
        # Before and after the rename that stores a golden, after the one that removes it: six steps for two goldens.
        patched.setattr(atomic, "sync_folder", killed)
        with pytest.raises(KilledError):
            rename_case(store, OLD, NEW)
    assert {**content(store, OLD), **content(store, NEW)}.items() >= before.items()
    if store.generations(OLD):
        rename_case(store, OLD, NEW)
    assert content(store, NEW) == before
    assert [golden.manifest.case for golden in store.goldens()] == [NEW, NEW]


@pytest.mark.parametrize(
    ("taken_by", "new", "why"),
    [
        ("0.9.2", NEW, "expected no golden of the new case, found 1, and nothing was renamed"),
        ("0.10.2", NEW, "expected no golden of the new case, found 1, and nothing was renamed"),
        (None, OLD, "nothing was renamed"),
        *((None, name, "expected the name of a case") for name in ("../out", ".hidden", "")),
    ],
)
def test_a_taken_or_invalid_new_name_is_refused(store, taken_by, new, why):
    if taken_by:
        write_golden(store, manifest(NEW, taken_by, custom_calls=("mine",)))
    before = store.goldens()
    with pytest.raises(GoldenError, match=why):
        rename_case(store, OLD, new)
    assert store.goldens() == before


def test_a_damaged_golden_is_not_renamed(store):
    (store.root / OLD / "0.9.2-cpu" / "inputs.npz").write_bytes(b"")
    with pytest.raises(GoldenError, match=r"inputs\.npz: damaged"):
        rename_case(store, OLD, NEW)
    assert not (store.root / NEW).exists()


@pytest.mark.parametrize(
    ("test", "name", "new", "expected"),
    [
        (TEST, None, "tests.test_a.TestB.test_c[x.y]", "tests/test_a.py::TestB::test_c[x.y]"),
        (TEST, "sin", "tests.test_a.test_new.cos", "tests/test_a.py::test_new"),
        (TEST, "sin", "tests.test_a.test_new[x.y].cos", "tests/test_a.py::test_new[x.y]"),
        (TEST, None, "other.test_b.test_new", "other/test_b.py::test_new"),
        (TEST, None, "nowhere.test_b.test_new", ""),
        (TEST, None, "tests.test_a.test_new-x-0a1b2c3d", ""),
        ("", None, "tests.test_a.test_new", ""),
    ],
    ids=["a class", "a call", "a call with parameters", "another file", "no such file", "a digest", "never had one"],
)
def test_a_rename_derives_the_test_from_the_new_case_name(tmp_path, monkeypatch, test, name, new, expected):
    monkeypatch.chdir(tmp_path)
    Path("other").mkdir()
    Path("other/test_b.py").touch()
    store = GoldenStore(tmp_path / "golden")
    write_golden(store, manifest(OLD, test=test, name=name))
    (renamed,) = rename_case(store, OLD, new)
    assert renamed.manifest.test == expected


@pytest.fixture
def python_file(store):
    Path("tests").mkdir()
    path = Path("tests/test_a.py")
    path.write_text("class TestB:\n    def test_method(self): pass\n\ndef test_new(): pass\n")
    return path


def test_a_rename_lists_policy_entries_of_the_old_name(store, python_file, jaxexport):
    entry = "reason: r, owner: o, issue: i, added: 2026-11-01, expires: 2026-12-01"
    Path("export_compat.yaml").write_text(
        f"quirks:\n  - {{case: {OLD}, writer: 0.9.2, rtol: 0.1, {entry}}}\n"
        f"  - {{case: t.b, writer: 0.9.2, rtol: 0.1, {entry}}}\n"
        f"numbers: [{{cases: ['{OLD}'], reason: r}}, {{cases: ['tests.*'], reason: r}}]\n"
        f"retention: {{pinned: [{{goldens: ['{OLD}/*'], reason: shipped}}, {{goldens: ['tests.*'], reason: all}}]}}\n"
        f"known_failures:\n  - {{cases: ['*.test_old'], writers: ['*'], readers: ['*'], verdict: error, stage: run, "
        f"message: m, {entry}}}\n"
    )
    ended = jaxexport("goldens", "rename", f"golden/{OLD}/", NEW)
    assert (ended.code, ended.out) == (
        0,
        f"{OLD} is now {NEW}: 2 goldens (0.9.2-cpu, 0.12.0.1-cpu)\n"
        "They belong to the test tests/test_a.py::test_new.\n",
    )
    assert [line.partition(" (")[0].split(": ")[-1] for line in ended.err.splitlines()] == [
        "known_failures[0]",
        "quirks[0]",
        "numbers[0]",
        "retention.pinned[0]",
    ]
    hint = f"no case is called {OLD!r}. Did you mean {NEW!r}? `jaxexport goldens list` shows all cases."
    assert_bad_input(jaxexport("goldens", "rename", OLD, NEW), hint)


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("test_new", ""),
        ("test_new[1]", ""),
        ("TestB.test_method", ""),
        ("test_nwe", "tests/test_a.py does not name test_nwe. Did you mean 'test_new'? They"),
        ("TestC.test_method", "tests/test_a.py does not name TestC. Did you mean 'TestB'? They"),
        ("TestB.unlike", "tests/test_a.py does not name unlike. It has TestB, test_method, test_new. They"),
    ],
)
def test_a_new_name_that_no_test_has_is_reported(store, python_file, jaxexport, name, warning):
    ended = jaxexport("goldens", "rename", OLD, f"tests.test_a.{name}", "--dry-run")
    test = f"tests/test_a.py::{name.replace('.', '::')}"
    again = f"would belong to {test}: rename the test too, or rename them again.\n"
    assert (ended.code, ended.err) == (0, f"warning: {warning} {again}" if warning else "")
    ended = jaxexport("goldens", "rename", OLD, f"tests.test_a.{name}")
    assert ended.code == 0
    assert (f"They belong to the test {test}." in ended.out) == (not warning)
    assert ended.err == (f"warning: {warning} {again.replace('would belong', 'belong now')}" if warning else "")


def test_a_missing_test_file_is_reported(store, jaxexport):
    ended = jaxexport("goldens", "rename", OLD, NEW)
    assert "belong to" not in ended.out
    assert ended.err.startswith("warning: tests/test_a.py is not here. They belong now to tests/test_a.py::test_new: ")


def test_a_rename_names_equal_goldens_that_the_new_case_has(store, python_file, jaxexport):
    golden = store.generations(OLD)[0]
    write_golden(store, msgspec.structs.replace(golden.manifest, case=NEW, test="tests/test_a.py::test_new"))
    before = content(store, OLD)
    line = "There already, with equal content: 0.9.2-cpu.\n"
    assert line in jaxexport("goldens", "rename", OLD, NEW, "--dry-run").out
    assert line in jaxexport("goldens", "rename", OLD, NEW).out
    assert content(store, NEW) == before

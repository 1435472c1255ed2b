"""What a message says to do about a golden whose golden.yaml cannot be read: commands with its release and its test."""

import shlex

import pytest
from making import manifest, write_golden

from export_core.goldens import GoldenError, GoldenStore
from export_core.goldens.restoring import restoring_unread, rewriting, with_test
from export_core.goldens.restoring import test_of_case as of_case

TEXT = """
class TestA:
    def test_f(self):
        ...

    async def test_g(self): ...

def test_h(): ...
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with a test file."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("case", "test"),
    [
        ("tests.test_a.test_h", "tests/test_a.py::test_h"),
        ("tests.test_a.TestA.test_f", "tests/test_a.py::TestA::test_f"),
        ("tests.test_a.TestA.test_g[x.1-[2]]", "tests/test_a.py::TestA::test_g[x.1-[2]]"),
        ("tests.test_a.test_h[a].second", "tests/test_a.py::test_h[a]"),
        ("tests.test_a.test_h.second", "tests/test_a.py::test_h"),
        ("tests.test_a.test_h[a-b]-0123abcd", "tests/test_a.py::test_h"),
        ("tests.test_a.TestA.test_inherited", "tests/test_a.py::TestA"),
        ("tests.test_a.test_made", "tests/test_a.py"),
        ("tests.test_b.test_h", ""),
        ("archive.model", ""),
        ("model", ""),
    ],
)
def test_the_test_of_a_case_is_found_by_the_cases_name(folder, case, test):
    assert of_case(case) == test


def damaged(case: str, damage: str) -> str:
    golden = write_golden(GoldenStore("golden"), manifest(case, "0.9.2"))
    path = golden.folder / "golden.yaml"
    if damage == "missing":
        path.unlink()
    elif damage == "broken rule":
        path.write_text(path.read_text().replace("platform: cpu", "platform: c/pu", 1))
    elif damage == "link":
        moved = golden.folder.rename("moved")
        golden.folder.symlink_to(moved.absolute())
    else:
        path.write_text("<<<<<<< HEAD\n")
    with pytest.raises(GoldenError) as raised:
        GoldenStore("golden").goldens()
    return str(raised.value)


@pytest.mark.parametrize("damage", ["missing", "conflict", "broken rule", "link"])
def test_advice_for_a_damaged_golden_names_its_release_and_test(folder, damage, jaxexport):
    message = damaged("tests.test_a.test_h[a]", damage)
    assert message.endswith(
        " Restore the golden from version control, or write it again: `pytest --update-goldens "
        "'tests/test_a.py::test_h[a]'` with jaxlib 0.9.2 installed, else `jaxexport goldens backfill --writers 0.9.2 "
        "-- --update-goldens 'tests/test_a.py::test_h[a]'`."
    )
    command = shlex.split(message.split("`")[-2])
    assert command[:3] == ["jaxexport", "goldens", "backfill"]
    jaxexport(*command[1:-3], "--dry-run", *command[-3:], code=0)


def test_advice_for_a_golden_without_a_test_names_goldens_add(folder):
    message = damaged("archive.model", "missing")
    assert message.endswith(
        "else `jaxexport goldens backfill --writers 0.9.2 -- --update-goldens TEST`, with the test of this golden as "
        "TEST. A golden that was added: `jaxexport goldens add`."
    )
    known = with_test(message, "archive.model", "archive/model.py::test_x[1 2]")
    assert f"`{rewriting('archive/model.py::test_x[1 2]')}` with jaxlib 0.9.2" in known
    assert known.endswith("--update-goldens 'archive/model.py::test_x[1 2]'`.")


@pytest.mark.parametrize("folder_name", ["0.9.2-cpu", "0.9.2-jax0.10.0-cuda", "0.9.2.dev20260101+own-tpu"])
def test_the_advised_release_comes_from_the_goldens_folder_name(folder_name, tmp_path):
    message = restoring_unread(tmp_path / "t.test_f" / folder_name)
    assert f"with jaxlib {folder_name.partition('-')[0]} installed" in message


def test_advice_has_a_placeholder_if_the_folder_names_no_release(tmp_path):
    assert "backfill --writers RELEASE -- --update-goldens TEST`" in restoring_unread(tmp_path / "t.test_f" / "mine")

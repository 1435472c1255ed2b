"""Goldens of removed tests: listed by every run of all tests, deleted by --prune-goldens only."""

import shutil
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from making import manifest, write_golden, writer
from projects import Project

from export_core.goldens import GoldenError, GoldenStore
from pytest_jaxexport.collected import CollectedTests, ReportedTests, why_partial
from pytest_jaxexport.unused_goldens import find_unused, is_gone, report_unused

pytest_plugins = "pytester"

TESTS = """
    import jax, jax.numpy as jnp, numpy as np, pytest

    @pytest.mark.export_compat
    def test_stays(export_golden):
        export_golden(jax.jit(jnp.sin), np.arange(3.0))
"""
SKIPPED = """
    import pytest

    pytestmark = pytest.mark.export_compat

    @pytest.mark.skip(reason="not here")
    def test_skipped(export_golden):
        pass

    @pytest.mark.slow
    def test_left_out(export_golden):
        pass

    def test_filtered(export_golden):
        pass
"""
FILTER = """
    def pytest_collection_modifyitems(items):
        items[:] = [item for item in items if item.name != "test_filtered"]
"""
INI = """
[pytest]
addopts = --import-mode=importlib -p no:hypothesispytest -p no:jaxtyping -m 'not slow'
markers = slow: takes long
filterwarnings = error
"""


def cases(project: Project) -> list[str]:
    return sorted(path.name for path in project.goldens.iterdir())


def add(project: Project, *tests: str) -> None:
    for test in tests:
        file, _, name = test.partition("::")
        write_golden(GoldenStore(project.goldens), manifest(f"{file.removesuffix('.py')}.{name}", test=test))


def test_only_goldens_of_removed_tests_are_deleted(projects):
    """The run also updates, as after renaming a test, and has a worker of xdist."""
    project = projects(test_a=TESTS)
    add(project, "test_a.py::test_stays", "test_a.py::test_gone", "test_gone.py::test_b")
    store = GoldenStore(project.goldens)
    write_golden(store, manifest("test_a.test_stays.cos", "0.9.2", test="test_a.py::test_stays", name="cos"))
    write_golden(store, manifest("test_a.test_stays", "0.9.2", test="test_a.py::test_stays"))
    (project.goldens / "test_a.test_stays" / "notes.txt").write_text("mine")
    older = project.stored("test_a.test_stays/0.9.2-cpu")
    (project.goldens / "test_a.test_stays" / ".new-0.1-cpu-999999999-ab").mkdir()
    run = project.pytest("--prune-goldens", "--update-goldens", "-n", "1")
    assert run.code == 0, run.text
    assert cases(project) == ["test_a.test_stays", "test_a.test_stays.cos", "test_gone.test_b"]
    assert run.text.count("not deleted: ") == 2
    assert project.stored("test_a.test_stays/0.9.2-cpu") == older
    left = sorted(path.name for path in (project.goldens / "test_a.test_stays").iterdir())
    assert {"0.9.2-cpu", "notes.txt"} < set(left)
    assert not [name for name in left if name.startswith(".")]
    assert run.text.count("\ndeleted: ") == 2


def test_without_prune_a_run_lists_unused_goldens_and_deletes_none(projects):
    project = projects(test_b=SKIPPED)
    (project.folder / "pytest.ini").write_text(INI)
    add(project, *(f"test_b.py::test_{name}" for name in ("skipped", "left_out", "filtered", "gone")))
    (project.folder / "conftest.py").write_text(textwrap.dedent(FILTER))
    (project.goldens / "test_b.test_skipped" / "notes.txt").write_text("mine")
    before = project.stored()
    run = project.pytest()
    listed = [line for line in run.text.splitlines() if line.startswith(("unused: ", "of no golden: "))]
    assert (run.code, len(listed)) == (0, 2), run.text
    assert listed[0] == "unused: test_b.test_gone/0.12.0.1-cpu: test_b.py::test_gone no longer exports it"
    assert listed[1].endswith("notes.txt: a file outside any golden's folder")
    assert "pytest --prune-goldens deletes unused goldens" in run.text
    assert "unused" not in project.pytest("-k", "skipped").text, "a run of some tests cannot know it"
    assert project.stored() == before
    (project.goldens / "test_b.test_gone" / "0.12.0.1-cpu" / "golden.yaml").write_text("case: [")
    run = project.pytest()  # a golden that cannot be read fails its own test, and nothing here
    assert (run.code, "unused: " in run.text, "Nothing was deleted" in run.text) == (0, False, False)
    assert "unused goldens are not listed: " in run.text


def test_a_golden_in_a_hidden_folder_is_reported_as_misplaced(projects):
    project = projects(test_b=SKIPPED)
    (project.folder / "pytest.ini").write_text(INI)
    add(project, "test_b.py::test_skipped")
    (project.goldens / "test_b.test_skipped").rename(project.goldens / ".x")
    run = project.pytest()
    assert f"{project.goldens}/.x/0.12.0.1-cpu/golden.yaml: expected each golden in a folder" in run.text


def test_the_golden_of_a_test_without_its_marker_is_listed(projects):
    project = projects(test_a=TESTS, test_b="def test_was_marked(): pass\ndef test_fails(): assert 0")
    add(project, "test_b.py::test_was_marked", "test_b.py::test_fails")
    listed = [line for line in project.pytest().text.splitlines() if line.startswith("unused here: ")]
    assert len(listed) == 1
    assert "test_b.test_was_marked/0.12.0.1-cpu: test_b.py::test_was_marked does not export it here" in listed[0]


BROKEN = "import nothing_of_that_name"
CRASHING = "import os\ndef test_c():\n    os._exit(3)\n"


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        (BROKEN, ["--continue-on-collection-errors"], "not every test file could be collected, or a worker crashed"),
        (CRASHING, ["-n", "1", "--max-worker-restart", "0"], "--prune-goldens: "),
        ("def test_c(): assert 0", ["-x"], "the run ended before all tests had run"),
        (
            "",
            ["test_b.py"],
            "--prune-goldens: expected a run of all tests, since only that shows which goldens are unused: "
            "it runs test_b.py",
        ),
    ],
)
def test_an_incomplete_run_deletes_nothing_and_fails(projects, text, words, why):
    project = projects(test_b=SKIPPED.replace("@pytest.mark.slow", "@pytest.mark.skip"), test_c=text)
    add(project, "test_b.py::test_gone")
    run = project.pytest("--prune-goldens", *words)
    assert why in run.text
    assert run.code != 0
    assert cases(project) == ["test_b.test_gone"]


def test_a_run_without_a_marked_test_deletes_nothing(projects):
    project = projects(test_c="def test_c(): pass")
    add(project, "test_b.py::test_gone")
    run = project.pytest("--prune-goldens")
    assert (run.code, cases(project)) == (4, ["test_b.test_gone"])
    assert "--prune-goldens: no test that ran is marked; nothing was deleted" in run.text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), ""),
        (("-q", "-n0", "-m", "not matrix"), ""),
        (("tests",), ""),
        ((".",), ""),
        (("-k", "some"), "-k some selects only some of the tests"),
        (("-m", "slow or fast"), "-m 'slow or fast' selects only some of the tests"),
        (("-m", ""), "-m '' selects only some of the tests"),
        (("--lf",), "--lf selects only"),
        (("--stepwise",), "--stepwise selects only"),
        (("--deselect", "tests/test_a.py::test_a"), "--deselect selects only"),
        (("--ignore", "tests/sub"), "--ignore selects only"),
        (("--collect-only",), "--collect-only selects only"),
        (("tests/test_a.py",), "it runs tests/test_a.py, not all of "),
        (("tests/test_a.py::test_a",), "not all of "),
        (("more",), "it runs more, not all of "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_reason_for_a_partial_run_names_the_option_or_path(pytester, words, why):
    pytester.makeini("[pytest]\ntestpaths = tests more*\naddopts = -m 'not matrix'\nmarkers =\n  matrix: m")
    for folder in ("tests", "more"):
        (pytester.path / folder).mkdir()
    (pytester.path / "tests" / "test_a.py").write_text("def test_a(): pass")
    if words == ("tests",):
        shutil.rmtree(pytester.path / "more")
    reason = why_partial(pytester.parseconfig(*words))
    assert why in reason
    assert bool(reason) == bool(why)


def test_without_testpaths_a_run_below_the_root_counts_as_partial(pytester, monkeypatch):
    pytester.makeini("[pytest]")
    (pytester.path / "sub").mkdir()
    assert why_partial(pytester.parseconfig()) == ""
    monkeypatch.chdir(pytester.path / "sub")
    assert "not all of" in why_partial(pytester.parseconfig())


# --- which goldens are unused, without jax ----------------------------------------------------------------------------


def reported(*, tests: str = "", passed: str = "", exported: str = "", platforms: str = "cpu") -> ReportedTests:
    return ReportedTests(set(tests.split()), set(passed.split()), set(exported.split()), set(platforms.split()))


@pytest.mark.parametrize(
    ("there", "tests", "collected", "expected"),
    [
        (False, reported(), CollectedTests(), True),  # its file is gone
        (True, reported(), CollectedTests(files={"t.py"}), True),  # its file is there, and it is not in it
        (True, reported(), CollectedTests(), False),  # its file was skipped whole, or left out by a conftest
        (True, reported(), CollectedTests(files={"t.py"}, tests={"t.py::f"}), False),
        (True, reported(tests="t.py::f"), CollectedTests(files={"t.py"}), False),  # skipped or failed: nobody knows
        (True, reported(tests="t.py::f", passed="t.py::f"), CollectedTests(files={"t.py"}), True),  # the call is gone
        (True, reported(tests="t.py::f", passed="t.py::f", platforms="cuda"), CollectedTests(files={"t.py"}), False),
        (True, reported(tests="t.py::f", passed="t.py::f", exported="t.f"), CollectedTests(files={"t.py"}), False),
        (False, reported(exported="t.f"), CollectedTests(), False),
    ],
)
def test_a_golden_is_unused_only_if_its_test_certainly_does_not_exist(tmp_path, there, tests, collected, expected):
    store = GoldenStore(tmp_path / "golden")
    for jaxlib in ("0.9.2", "0.12.0.1"):
        write_golden(store, manifest("t.f", jaxlib, test="t.py::f"))
    if there:
        (tmp_path / "t.py").touch()
    assert len(find_unused(store.root, tests, collected, tmp_path)) == (2 if expected else 0)


@pytest.mark.parametrize(
    ("text", "test", "files", "expected"),
    [
        ("def test_g(): ...", "t.py::test_f", {"t.py"}, True),
        ("if CUDA:\n  def test_f(): ...", "t.py::test_f[x]", {"t.py"}, False),
        ("def test_f2(): ...", "t.py::test_f", {"t.py"}, True),
        ("if NEW:\n  class TestA(Shared): ...", "t.py::TestA::test_f", {"t.py"}, False),
        (None, "t.py::test_f", set(), False),  # another project's, as far as this one knows
        ("def test_g(): ...", "t.py::test_f", set(), False),  # skipped whole
        ("for n in NAMES: globals()['test_' + n] = made(n)", "t.py::test_f", {"t.py"}, False),
        ("for n in NAMES: setattr(TestB, n, made(n))", "t.py::test_f", {"t.py"}, False),
        ("for n in NAMES: exec(text(n))", "t.py::test_f", {"t.py"}, False),
        ("from shared import *", "t.py::test_f", {"t.py"}, False),
        ("make_tests(__name__)", "t.py::test_f", {"t.py"}, False),
        ("Made = type('Test' + n, (Shared,), {})", "t.py::TestA::test_f", {"t.py"}, False),
        ("print(type(3))\nif __name__ == '__main__': ...", "t.py::test_f", {"t.py"}, True),
    ],
)
def test_goldens_made_on_other_machines_are_not_unused(tmp_path, text, test, files, expected):
    golden = write_golden(GoldenStore(tmp_path / "golden"), manifest("t.f", test=test))
    if text is not None:
        (tmp_path / "t.py").write_text(text)
    assert is_gone(golden, CollectedTests(files=files), tmp_path) == expected


@pytest.mark.parametrize(("present", "expected"), [("t.py::test_g", True), ("t.py::test_h", False)])
def test_a_golden_stays_if_its_file_has_tests_not_in_its_source(tmp_path, present, expected):
    """A plugin made `test_h`, and may make `test_f` on another machine."""
    golden = write_golden(GoldenStore(tmp_path / "golden"), manifest("t.f", test="t.py::test_f"))
    (tmp_path / "t.py").write_text("def test_g(): ...")
    assert is_gone(golden, CollectedTests(files={"t.py"}, tests={present}), tmp_path) == expected


GENERATED = """
    import os
    import jax, jax.numpy as jnp, numpy as np, pytest

    def made(function):
        @pytest.mark.export_compat
        def test(export_golden):
            export_golden(jax.jit(function), np.arange(3.0))
        return test

    for name in os.environ["NAMES"].split():
        globals()["test_" + name] = made(getattr(jnp, name))
"""


def test_goldens_of_generated_tests_are_not_deleted(projects, monkeypatch):
    monkeypatch.setenv("NAMES", "sin")
    project = projects(test_a=GENERATED)
    add(project, "test_a.py::test_cos")
    run = project.pytest("--update-goldens", "--prune-goldens")
    assert run.code == 0, run.text
    assert cases(project) == ["test_a.test_cos", "test_a.test_sin"]
    assert "not deleted: test_a.test_cos/0.12.0.1-cpu: test_a.py::test_cos does not export it here" in run.text


@pytest.mark.parametrize(("delete", "begins"), [(False, "unused here"), (True, "not deleted")])
def test_goldens_of_a_deleted_test_file_are_not_deleted_and_say_why(delete, begins, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = GoldenStore(tmp_path / "golden")
    for case, jaxlib in (("t.f[x]", "0.9.2"), ("t.f[x]", "0.12.0.1"), ("t.g", "0.12.0.1")):
        write_golden(store, manifest(case, jaxlib, test=f"t.py::test_{case[2:]}"))
    lines, errors, left = report_unused(store.root, reported(), CollectedTests(), tmp_path, delete=delete)
    *own, reason = lines
    assert (errors, left, len(store.goldens())) == ([], 3, 3)
    assert own[1:] == [f"{begins}: {name}: t.py is not there" for name in ("t.f[x]/0.12.0.1-cpu", "t.g/0.12.0.1-cpu")]
    assert reason.startswith("--prune-goldens leaves goldens whose test file is not there: another project may have")
    assert reason.endswith(" If none does: rm -r 'golden/t.f[x]' golden/t.g")


def test_each_golden_that_cannot_be_deleted_is_an_error(tmp_path, monkeypatch):
    store = GoldenStore(tmp_path / "golden")
    for case in ("t.a", "t.b", "t.c"):
        write_golden(store, manifest(case, test=f"t.py::test_{case}"))
    (tmp_path / "t.py").touch()
    rename = Path.rename

    def refusing(self: Path, target: Path) -> Path:  # root, as containers run, may delete anything
        if self.parent.name == "t.b":
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refusing)
    lines, errors, _ = report_unused(store.root, reported(), CollectedTests(files={"t.py"}), tmp_path, delete=True)
    assert [line.split(":")[0] for line in lines] == ["deleted", "deleted"]
    assert len(errors) == 1
    assert "cannot delete this golden: Permission denied" in errors[0]
    assert sorted(path.name for path in store.root.iterdir()) == ["t.b"]


def test_goldens_written_on_other_platforms_are_not_unused(tmp_path):
    store = GoldenStore(tmp_path)
    write_golden(store, manifest("t.f", test="t.py::f", writer=writer(platform="cuda")))
    tests = reported(tests="t.py::f", passed="t.py::f", exported="t.f")
    assert find_unused(tmp_path, tests, CollectedTests(files={"t.py"}), tmp_path) == []


def test_a_golden_that_never_had_a_test_is_not_unused(tmp_path):
    write_golden(GoldenStore(tmp_path), manifest("production", test=""))
    assert find_unused(tmp_path, reported(), CollectedTests(), tmp_path) == []


def test_a_golden_that_cannot_be_read_prevents_any_deletion(tmp_path):
    store = GoldenStore(tmp_path)
    write_golden(store, manifest("a.f", test="a.py::f"))
    (write_golden(store, manifest("t.f", test="t.py::f")).folder / "golden.yaml").write_text("case: [")
    with pytest.raises(GoldenError, match="not a golden's manifest"):
        report_unused(tmp_path, reported(), CollectedTests(), tmp_path, delete=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.f", "t.f"]


def test_tests_collected_by_xdist_workers_are_merged():
    whole = CollectedTests()
    whole.add(**vars(CollectedTests({"a.py"}, {"a.py::f"})))
    whole.add(**vars(CollectedTests({"b.py"}, set(), broken=True)))
    assert vars(whole) == vars(CollectedTests({"a.py", "b.py"}, {"a.py::f"}, broken=True))


def test_a_failed_test_counts_as_existing_with_its_cases():
    tests = ReportedTests()
    report = SimpleNamespace(when="call", passed=False, failed=True)
    attached = {"test": "t.py::f", "cases": ["t.f"], "events": [{"writer": "0.12.0.1-cpu"}], "renamed": []}
    tests.add(report, attached)
    assert (tests.tests, tests.passed, tests.cases, tests.platforms) == ({"t.py::f"}, set(), {"t.f"}, {"cpu"})

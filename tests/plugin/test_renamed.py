"""A test that was renamed: pytest finds its goldens under the old name and says how to rename them."""

import re
import shlex
import shutil

import pytest
from making import manifest, write_golden
from projects import Project, Projects, Run

from export_core.goldens import GoldenStore

SINE = """
    import jax, jax.numpy as jnp, numpy as np, pytest

    pytestmark = pytest.mark.export_compat

    def test_sin(export_golden):
        export_golden(jax.jit(jnp.sin), np.arange(3.0))
"""
OTHERS = """
    @pytest.mark.parametrize("size", [4])
    def test_cos(export_golden, size):
        export_golden(jax.jit(jnp.cos), np.arange(float(size)))

    def test_tan(export_golden):
        export_golden(jax.jit(jnp.tan), np.arange(5.0), name="tan")
"""
HINT = re.compile(r"Was it renamed\? .*: jaxexport (goldens rename [^,\n]*)")


@pytest.fixture(scope="module")
def written(projects: Projects) -> Project:
    project = projects(test_a=SINE)
    assert project.pytest("--update-goldens").code == 0
    # Not to be suggested: a golden of another signature whose test is gone, and one that never had a test.
    store = GoldenStore(project.goldens)
    write_golden(store, manifest("test_a.test_gone", test="test_a.py::test_gone"))
    write_golden(store, manifest("adopted", test=""))
    return project


@pytest.fixture
def project(written: Project, tmp_path) -> Project:
    return written.copy(tmp_path / "project")


def hints(run: Run) -> list[str]:
    return HINT.findall(run.text)


RENAMED = SINE.replace("test_sin", "test_sine")
OTHERS_RENAMED = OTHERS.replace("[4]", '[pytest.param(4, id="four")]').replace('"tan"', '"tangent"')


def test_the_suggested_renames_make_all_tests_pass(project, jaxexport, monkeypatch):
    """A function, a parameter and a call are renamed."""
    older = project.add_older_generation("test_a.test_sin")
    stored = project.stored("test_a.test_sin")
    project.write(test_a=SINE + OTHERS)
    assert project.pytest("--update-goldens", "-k", "cos or tan").code == 0
    project.write(test_a=RENAMED + OTHERS_RENAMED)
    suggested = hints(project.pytest())
    assert suggested == [
        "goldens rename test_a.test_sin test_a.test_sine",
        "goldens rename 'test_a.test_cos[4]' 'test_a.test_cos[four]'",
        "goldens rename test_a.test_tan.tan test_a.test_tan.tangent",
    ]
    monkeypatch.chdir(project.folder)
    assert [jaxexport(*shlex.split(hint)).code for hint in suggested] == [0, 0, 0]
    run = project.pytest()
    assert run.code == 0, run.text
    assert hints(run) == []
    now = project.stored("test_a.test_sine")
    assert older.name in {path.partition("/")[0] for path in now}
    assert {name: data for name, data in now.items() if "yaml" not in name} == {
        name: data for name, data in stored.items() if "yaml" not in name
    }


@pytest.mark.parametrize("more", [[], ["--update-goldens"]])
def test_goldens_of_a_renamed_test_are_not_pruned(project, more):
    older = project.add_older_generation(next(path.name for path in project.goldens.iterdir() if "sin" in path.name))
    stored = project.stored("test_a.test_sin")
    project.write(test_a=RENAMED)
    run = project.pytest("--prune-goldens", *more)
    assert hints(run)
    assert project.stored("test_a.test_sin") == stored
    assert f"not deleted: test_a.test_sin/{older.name}: its test may have been renamed" in run.text
    assert "deleted: test_a.test_gone/" in run.text


def test_pruning_is_not_offered_for_goldens_to_rename(project):
    """Goldens of older writers may be impossible to write again."""
    shutil.rmtree(project.goldens / "test_a.test_gone")
    older = project.add_older_generation("test_a.test_sin")
    project.write(test_a=RENAMED)
    run = project.pytest()
    assert hints(run)
    renamed = ": its test may have been renamed: rename the case, or delete its folder"
    assert f"unused: test_a.test_sin/{older.name}{renamed}" in run.text
    assert "--prune-goldens" not in run.text
    assert "no longer exports it" not in run.text


def test_a_moved_test_is_found_from_another_folder(project):
    (project.folder / "test_a.py").rename(project.folder / "test_b.py")
    (project.folder / "sub").mkdir()
    found = hints(project.pytest("../test_b.py::test_sin", cwd=project.folder / "sub"))
    assert found == ["goldens rename test_a.test_sin test_b.test_sin --test test_b.py::test_sin --goldens ../golden"]


@pytest.mark.parametrize(
    ("function", "more"),
    [("jnp.exp", ""), ("jnp.sin", "def test_sin(): pass")],
    ids=["other outputs", "the old test exists"],
)
def test_a_new_test_that_was_not_renamed_gets_no_suggestion(project, function, more):
    changed = SINE.replace("test_sin", "test_new").replace("jnp.sin", function)
    project.write(test_a=changed + f"\n    {more}\n")
    run = project.pytest()
    assert run["test_new"].outcome == "failed"
    assert hints(run) == []


def test_a_renamed_test_that_fits_two_cases_gets_no_suggestion(project):
    (golden,) = GoldenStore(project.goldens).generations("test_a.test_sin")
    project.add_golden(golden, case="test_a.test_b", test="test_a.py::test_b")
    project.write(test_a=RENAMED)
    assert hints(project.pytest()) == []


def test_an_update_suggests_the_rename_of_a_golden_it_wrote_again(project, jaxexport, monkeypatch):
    """The golden just written equals the old one, so nothing has to be deleted."""
    project.add_older_generation("test_a.test_sin")
    project.write(test_a=RENAMED)
    run = project.pytest("--update-goldens")
    assert hints(run) == ["goldens rename test_a.test_sin test_a.test_sine"]
    assert "after deleting" not in run.text
    monkeypatch.chdir(project.folder)
    ended = jaxexport(*shlex.split(hints(run)[0]))
    assert "There already, with equal content: " in ended.out
    assert len(list((project.goldens / "test_a.test_sine").iterdir())) == 2
    assert hints(project.pytest("--update-goldens")) == []


def test_runs_after_an_update_still_suggest_the_rename(project, jaxexport, monkeypatch):
    """Without the hint, the next run offers only pruning, which loses the golden of an older writer."""
    older = project.add_older_generation("test_a.test_sin")
    project.write(test_a=RENAMED)
    project.pytest("--update-goldens", "--record-packages")
    shutil.rmtree(project.goldens / "test_a.test_gone")
    run = project.pytest()
    assert (
        "Was test_a.py::test_sin renamed to test_a.py::test_sine? Then the goldens of test_a.test_sin by other writers "
        "belong to test_a.test_sine: jaxexport goldens rename test_a.test_sin test_a.test_sine, after deleting "
        "golden/test_a.test_sine, which pytest --update-goldens wrote again" in run.text
    )
    assert "pytest --prune-goldens" not in run.text
    assert f"not deleted: test_a.test_sin/{older.name}: its test may" in project.pytest("--prune-goldens").text
    assert older.is_dir()
    shutil.rmtree(project.goldens / "test_a.test_sine")
    project.pytest("--update-goldens")
    ends = [line for line in project.pytest().text.splitlines() if line.startswith("Was ")]
    assert [line.endswith(": jaxexport goldens rename test_a.test_sin test_a.test_sine") for line in ends] == [True]
    monkeypatch.chdir(project.folder)
    jaxexport("goldens", "rename", "test_a.test_sin", "test_a.test_sine")
    run = project.pytest()
    assert (run.code, "unused" in run.text, "renamed" in run.text) == (0, False, False)


def test_a_removed_copy_of_a_test_may_be_pruned(project):
    """The other test has equal goldens by all writers, so that deleting the copy loses nothing."""
    (golden,) = GoldenStore(project.goldens).generations("test_a.test_sin")
    project.add_golden(golden, case="test_a.test_b", test="test_a.py::test_b")
    run = project.pytest("--prune-goldens")
    assert f"deleted: test_a.test_b/{golden.manifest.writer.id}: test_a.py::test_b no longer exports it" in run.text


def test_an_update_names_the_new_golden_to_delete_before_a_rename(project, jaxexport, monkeypatch):
    """The golden just written records packages, and the old one does not: the rename does not replace it."""
    project.write(test_a=RENAMED)
    run = project.pytest("--update-goldens", "--record-packages")
    (hint,) = hints(run)
    assert "test_sine, after deleting golden/test_a.test_sine, which was just written\n" in run.text
    monkeypatch.chdir(project.folder)
    assert "expected no golden of the new case, found 1" in jaxexport(*shlex.split(hint), code=2).err
    shutil.rmtree("golden/test_a.test_sine")
    jaxexport(*shlex.split(hint))
    assert hints(project.pytest("--update-goldens")) == []

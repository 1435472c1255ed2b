"""An export, or the first call of an artifact, that ends the interpreter: pytest or the next run names it."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from projects import Project, Projects

ABORTING = """
    import os
    from jax._src import compiler

    compile_any = compiler.compile_or_get_cached

    def compile_or_abort(backend, module, *args, **kwargs):
        # A stand-in for a compiler that ends the process.
        if "stablehlo.tanh" in str(module) and os.path.exists(FLAG):
            os.abort()
        return compile_any(backend, module, *args, **kwargs)

    compiler.compile_or_get_cached = compile_or_abort
"""
CALLS = """
    import aborting, jax, jax.numpy as jnp, numpy as np, pytest

    X = np.arange(3, dtype="float32")

    @pytest.mark.export_compat(register=("aborting",))
    def test_call(export_golden):
        export_golden(jax.jit(jnp.tanh), X)

    @pytest.mark.export_compat
    def test_other(export_golden):
        export_golden(jax.jit(lambda x: x * 2), X)
"""
EXPORTS = """
    import os
    import jax, numpy as np, pytest

    X = np.arange(3, dtype="float32")

    def ends(x):
        os.abort()

    @pytest.mark.export_compat
    def test_before(export_golden):
        export_golden(jax.jit(lambda x: x * 2), X)

    @pytest.mark.export_compat
    def test_export(export_golden):
        export_golden(jax.jit(ends), X)

    @pytest.mark.export_compat
    def test_after(export_golden):
        export_golden(jax.jit(lambda x: x * 3), X)

    def test_unmarked():
        pass
"""
SENTENCE = (
    r"expected the exported function to return, found that its call ends the process: stage compile: died by "
    r"signal 6 \(SIGABRT\)\. So the function was not called in this process"
)
NAMED = "test_a.py::test_export was running when its process of pytest died"
DAY_AND_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d"


@pytest.fixture
def aborting(projects: Projects) -> tuple[Project, Path]:
    """A project, and a file: while the file exists, the compiler of the project aborts."""
    project = projects(test_a=CALLS)
    flag = project.folder.parent / f"{project.folder.name}.aborts"
    project.write(aborting=f"FLAG = {str(flag)!r}\n" + re.sub("(?m)^    ", "", ABORTING))
    return project, flag


def test_a_process_abort_in_the_first_call_fails_its_test(aborting):
    project, flag = aborting
    flag.touch()
    written = project.pytest("--update-goldens")
    assert re.search(SENTENCE, written["test_call"].text), written.text
    assert written["test_other"].outcome == "passed"
    assert not (project.goldens / "test_a.test_call").exists()


@pytest.mark.parametrize("golden", ["the same artifact", "another artifact", "by another writer"])
def test_a_process_abort_in_a_check_fails_its_test(golden, aborting):
    project, flag = aborting
    assert project.pytest("--update-goldens").code == 0
    if golden == "another artifact":
        project.write(test_a=CALLS.replace("jnp.tanh)", "lambda x: jnp.tanh(x) + 1)"))
    if golden == "by another writer":
        older = project.add_older_generation("test_a.test_call")
        for own in older.parent.iterdir():
            if own != older:
                own.rename(project.folder / "gone")
    flag.touch()
    checked = project.pytest()
    assert re.search(SENTENCE, checked["test_call"].text), checked.text
    assert checked["test_other"].outcome == "passed"


def test_the_next_run_names_the_test_that_ended_pytest(projects):
    project = projects(test_a=EXPORTS)
    assert project.pytest("--update-goldens").code == -6
    # The test may have ended by a signal: it is safe to run it again.
    project.write(test_a=EXPORTS.replace("os.abort()", "return x"))
    assert "process of pytest died" not in projects(test_a=EXPORTS).pytest("-k", "unmarked").text
    # It is nothing to a run without that test, such as a backfill of another file.
    assert "process of pytest died" not in project.pytest("-k", "before").text
    following = project.pytest("-q", "--update-goldens")
    assert (following.code, following.text.count(NAMED)) == (0, 1), following.text
    assert re.search(rf"{NAMED} \(begun {DAY_AND_TIME}, jax {version('jax')}\): ", following.text)
    assert "or a signal from outside, such as a time limit's." in following.text
    assert "process of pytest died" not in project.pytest().text


def test_with_xdist_the_test_that_ended_a_worker_is_named(projects):
    project = projects(test_a=EXPORTS)
    run = project.pytest("--update-goldens", "-n", "2", "--noise=later")
    assert {"test_before", "test_after", "test_unmarked"} <= {
        name.rpartition(".")[2] for name in run.outcomes()["passed"]
    }
    assert re.search(r"worker 'gw\d' crashed while running 'test_a\.py::test_export'", run.text), run.text
    assert f"ERROR: {NAMED}" in run.text
    assert list((project.cache / "running").iterdir()) == []  # the next run does not name it again

"""Ways to run pytest: collecting only, updating nothing; --dump-ir; when our plugin prints."""

from importlib.metadata import version

import pytest
from projects import Project, Projects

PLAIN = """
def test_plain():
    pass
"""

MARKED = """
import pytest

@pytest.mark.export_compat
def test_marked(export_golden):
    import jax, jax.numpy as jnp, numpy as np
    export_golden(jax.jit(jnp.sin), np.arange(3.0))
"""


@pytest.fixture
def project(projects: Projects) -> Project:
    made: Project = projects(test_plain=PLAIN, test_marked=MARKED)
    return made


def test_a_run_without_goldens_prints_no_line_of_the_plugin(project):
    text = project.pytest("test_plain.py").text
    assert "jaxexport:" not in text
    assert "export compatibility" not in text


def test_existing_goldens_make_one_header_line_and_no_summary(project):
    golden = project.goldens / "test_marked.test_marked" / "0.12.0-cpu"
    golden.mkdir(parents=True)
    (golden / "golden.yaml").touch()
    text = project.pytest("test_plain.py").text
    (line,) = (line for line in text.splitlines() if "jaxexport: " in line)
    assert line.endswith(f", goldens: {project.goldens}")
    assert "export compatibility" not in text


def test_collect_only_with_an_update_writes_nothing(project):
    run = project.pytest("--collect-only", "--update-goldens", "-q")
    assert run.code == 0
    assert "test_marked.py::test_marked" in run.text
    assert "nothing was written" not in run.text
    assert not project.goldens.exists()


def test_an_update_without_a_marked_test_fails(project):
    run = project.pytest("--update-goldens", "-k", "plain")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert run["test_plain"].outcome == "passed"
    assert "--update-goldens: no selected test is marked (@pytest.mark.export_compat); nothing was written." in run.text
    assert not project.goldens.exists()


def test_an_update_without_any_test_fails(project):
    run = project.pytest("--update-goldens", "-k", "nothing_is_called_so")
    assert (run.code, "nothing was written" in run.text) == (pytest.ExitCode.NO_TESTS_COLLECTED, True)


def test_a_marked_test_fails_without_the_plugin(project):
    off = ("-p", "no:jaxexport", "-W", "ignore::pytest.PytestUnknownMarkWarning")
    assert project.pytest(*off, "test_plain.py").code == 0
    run = project.pytest(*off, "test_marked.py")
    assert (run.code, run["test_marked"].outcome) == (1, "error")
    assert "fixture 'export_golden' not found" in run.text


def test_without_the_terminal_plugin_a_missing_golden_fails_its_test(project):
    run = project.pytest("-p", "no:terminal", "test_marked.py")
    assert (run.code, run["test_marked"].outcome) == (1, "failed")
    assert "pytest --update-goldens test_marked.py::test_marked" in run["test_marked"].text


def test_no_blank_line_follows_the_title_of_the_summary(project):
    lines = project.pytest("--update-goldens", "test_marked.py").text.splitlines()
    (title,) = (number for number, line in enumerate(lines) if " export compatibility " in line)
    assert lines[title + 1].startswith("1 golden new: test_marked.test_marked/")


TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

@pytest.mark.export_compat(vjp_order=1)
def test_wave(export_golden):
    export_golden(jax.jit(jnp.sin), np.arange(8.0))
"""


def test_dump_ir_writes_the_modules_that_are_replayed(projects):
    project = projects(test_a=TESTS)
    assert project.pytest("--update-goldens").code == 0
    assert project.pytest("--dump-ir", "ir").code == 0
    (golden,) = (project.folder / "ir" / "test_a.test_wave").iterdir()
    stored = project.goldens / "test_a.test_wave" / golden.name
    assert (golden / "exported.mlir").read_bytes() == (stored / "module.mlir").read_bytes()
    reader = golden / f"{version('jaxlib')}-cpu"
    assert {path.name for path in reader.iterdir()} > {"exported.mlir", "compiled.hlo"}
    derivative = (reader / "vjp1" / "exported.mlir").read_text()
    assert derivative != (reader / "exported.mlir").read_text()
    assert "stablehlo.cosine" in derivative
    refused = project.pytest("--dump-ir", "pytest.ini")
    assert refused.code == 4
    assert "--dump-ir: cannot make the folder" in refused.text


NOTHING_IS_TRIED = """
from export_core.export import golden_checks

def tried(*args, **kwargs):
    raise AssertionError("tried again")

golden_checks.derivatives = golden_checks._require_refusal = golden_checks._shardings_of = tried
"""
TRIED = (
    TESTS
    + """
@pytest.mark.export_compat(mesh={"a": 2}, in_specs=(jax.sharding.PartitionSpec("a"),))
def test_devices(export_golden):
    export_golden(jax.jit(jnp.sin), np.arange(8.0))

@pytest.mark.export_compat(symbolic_shapes="b")
def test_shapes(export_golden):
    export_golden(jax.jit(jnp.sin), np.arange(8.0)).refused(np.ones((2, 2)))
"""
)


def test_checks_of_an_unchanged_export_are_not_repeated(projects):
    """Checks of derivatives, refusals and shardings would take longer than the rest of a marked test."""
    project = projects(test_a=TRIED)
    with (project.folder / "pytest.ini").open("a") as ini:
        ini.write("export_devices = 2\n")
    assert project.pytest("--update-goldens").code == 0
    project.write(conftest=NOTHING_IS_TRIED)
    assert project.pytest().code == 0
    for old, new in (("jnp.sin", "jnp.cos"), ("np.arange(8.0)", "np.arange(1, 9.0)")):
        project.write(test_a=TRIED.replace(old, new))
        run = project.pytest()
        assert {name.rpartition(".")[2]: "tried again" in report.text for name, report in run.tests.items()} == {
            "test_wave": True,
            "test_devices": True,
            "test_shapes": True,
        }
    project.write(test_a=TRIED.replace("np.ones((2, 2))", "np.ones((2, 3))"))
    assert "tried again" in project.pytest()["test_shapes"].text


COMPILED_ONCE = """
import jax, numpy as np, pytest

def compiled_once(x):
    return x * 1.2345

@pytest.mark.export_compat
def test_once(export_golden):
    export_golden(jax.jit(compiled_once), np.arange(3.0))
"""


def test_pytest_runs_of_these_tests_share_a_compilation_cache(projects, compiled_folder):
    """Without the cache, each run of pytest in these tests would take 50 ms longer: see warm_worker.py."""
    project = projects(test_a=COMPILED_ONCE)
    assert project.pytest("--update-goldens").code == 0
    (compiled,) = compiled_folder.glob("jit_compiled_once-*")
    written = compiled.stat().st_mtime_ns
    assert project.pytest().code == 0
    assert list(compiled_folder.glob("jit_compiled_once-*")) == [compiled]
    assert compiled.stat().st_mtime_ns == written

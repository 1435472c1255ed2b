"""The life of a golden: missing, written, checked, changed, updated."""

import re
from types import SimpleNamespace

import pytest
import yaml
from jax._src.lib import jaxlib_extension_version
from projects import Project, Projects

MODELS = """
import jax.numpy as jnp

def wave(x):
    return jnp.sin(x)

def solve(x):
    return jnp.linalg.cholesky(x)
"""

CHANGED = """
import jax.numpy as jnp

def wave(x):
    return jnp.where(x > 1, 2 * jnp.sin(x), jnp.sin(x))

def solve(x):
    return (jnp.linalg.qr(x)[0],)
"""

TESTS = """
import jax, jax.numpy as jnp, models, numpy as np, pytest

@pytest.mark.export_compat
def test_wave(export_golden):
    export_golden(jax.jit(models.wave), np.arange(8.0))

@pytest.mark.export_compat
def test_solve(export_golden):
    export_golden(jax.jit(models.solve), np.eye(2) * 4)

@pytest.mark.export_compat
def test_both_ways(export_golden):
    x = np.arange(3.0)
    export_golden(jax.jit(jnp.exp), x, name="there")
    export_golden(jax.jit(jnp.log1p), x, name="back")

def test_of_something_else():
    pass
"""

FILES = {"golden.yaml", "artifact.jaxexport", "inputs.npz", "outputs.npz", "module.mlir", "jaxpr.txt"}


@pytest.fixture(scope="module")
def life(projects: Projects) -> SimpleNamespace:
    """The run of each step in the life of a golden, and what is stored after it."""
    life = SimpleNamespace(project=projects(models=MODELS, test_models=TESTS))
    project, above = life.project, life.project.folder.parent
    life.missing = project.pytest("--strict-markers", "project", cwd=above)
    life.stored_when_missing = project.goldens.exists()
    life.written = project.pytest("--update-goldens", "project", cwd=above)
    life.golden, life.times_before = project.stored(), _times(project)
    life.checked = project.pytest("-p", "no:xdist")
    life.times_after = _times(project)
    project.add_older_generation("test_models.test_wave")
    project.write(models=CHANGED)
    life.changed = project.pytest("-q")
    life.golden_when_changed = project.stored()
    life.updated = project.pytest("-q", "--lf", "--update-goldens")
    life.golden_updated = project.stored()
    life.checked_again = project.pytest("-k", "wave or both")
    return life


def _times(project: Project) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in project.goldens.rglob("*")}


def test_a_missing_golden_fails_with_the_command_to_run(life):
    report = life.missing["test_wave"]
    assert (life.missing.code, report.outcome) == (1, "failed")
    assert f"expected one in {life.project.goldens / 'test_models.test_wave'}" in report.text
    # The command is for the folder where pytest was called, which is not the root directory here.
    assert "pytest --update-goldens project/test_models.py::test_wave" in report.text
    assert life.missing["test_of_something_else"].outcome == "passed"
    assert not life.stored_when_missing


def test_an_update_writes_and_reports_a_folder_per_case(life):
    assert life.written.code == 0
    cases = {
        "test_models.test_wave",
        "test_models.test_solve",
        "test_models.test_both_ways.there",
        "test_models.test_both_ways.back",
    }
    assert {name.split("/")[0] for name in life.golden} == cases
    assert {name.rsplit("/", 1)[1] for name in life.golden if name.startswith("test_models.test_wave/")} == FILES
    assert "4 goldens new: test_models.test_" in life.written.text


def test_a_golden_records_the_build_of_its_jaxlib(life):
    manifests = [data for name, data in life.golden.items() if name.endswith("golden.yaml")]
    for writer in (yaml.safe_load(data)["writer"] for data in manifests):
        assert writer["jaxlib_extension_version"] == jaxlib_extension_version
        assert "xla_extension_version" not in writer, "which jax had until 0.4"


def test_an_unchanged_function_passes(life):
    assert life.checked.code == 0
    assert life.checked.outcomes() == {"passed": list(life.checked.tests)}
    assert "4 cases checked against 4 goldens: 4 kept" in life.checked.text
    assert life.times_after == life.times_before, "a check changes no file"


def test_a_failure_shows_the_largest_and_first_errors(life):
    report = life.changed["test_wave"]
    assert (life.changed.code, report.outcome) == (1, "failed")
    assert "The outputs are equal" not in report.text
    # sin(2) .. sin(7) are doubled; of these sin(5) is the largest.
    assert "output 0 float32[8]: 6 of 8 elements differ (max abs error 0.959, max rel error 1, max ulp " in report.text
    assert re.search(r"largest error at \[[2-7]\]: expected -?0\.\d+, got -?[01]\.\d+", report.text)
    assert [line.split(":")[0].strip() for line in report.text.splitlines() if "first at" in line][:5] == [
        f"first at [{index}]" for index in range(2, 7)
    ]


def test_a_failure_shows_the_signature_first_and_the_numbers_last(life):
    text = life.changed["test_solve"].text
    signature = text.index("signature: results: gone result; new result[0]")
    calls = text.index("custom calls: gone lapack_spotrf_ffi; new lapack_sgeqrf_ffi, lapack_sorgqr_ffi")
    assert signature < calls < text.index("numbers: output 0 float32[2,2]: 2 of 4 elements differ")
    assert str(life.project.goldens / "test_models.test_solve") in text
    assert "If the change is intended: pytest --update-goldens test_models.py::test_solve\n" in text


def test_a_failing_check_changes_no_golden(life):
    stored = {name: data for name, data in life.golden_when_changed.items() if name in life.golden}
    assert stored == life.golden
    assert life.changed["test_both_ways"].outcome == "passed"


def test_update_goldens_with_lf_replaces_only_failed_goldens(life):
    assert life.updated.code == 0
    assert "2 goldens replaced: test_models.test_wave/" in life.updated.text
    different = {
        name.split("/")[0] for name, data in life.golden_updated.items() if life.golden.get(name, data) != data
    }
    assert different == {"test_models.test_wave", "test_models.test_solve"}


def test_an_update_leaves_other_writers_goldens_alone(life):
    older = {name for name in life.golden_when_changed if name not in life.golden}
    assert {name.rsplit("/", 1)[1] for name in older} == FILES
    assert {name: life.golden_updated[name] for name in older} == {
        name: life.golden_when_changed[name] for name in older
    }


def test_after_the_update_every_generation_is_replayed(life):
    """The older golden still gives the numbers that its writer saw, though the function gives others now."""
    assert life.checked_again.code == 0
    assert life.checked_again.outcomes() == {"passed": list(life.checked_again.tests)}
    assert "3 cases checked against 4 goldens: 4 kept" in life.checked_again.text


SETTINGS = """
import jax

jax.config.update("jax_export_calling_convention_version", 9)
jax.config.update("jax_export_ignore_forward_compatibility", True)
"""


def test_a_failure_names_settings_that_have_changed(life, tmp_path):
    project = life.project.copy(tmp_path / "project")
    project.write(conftest=SETTINGS)
    text = project.pytest("-k", "wave")["test_wave"].text
    assert "calling_convention_version: 10 → 9, see JAX_EXPORT_CALLING_CONVENTION_VERSION\n" in text
    flag = "jax_export_ignore_forward_compatibility"
    assert f"{flag}: golden False; now True\nsettings: they may be the only cause" in text
    assert f"as the golden has it, jax.config.update('{flag}', False), or as you want it" in text
    assert "hash seed" not in text


def test_an_update_names_the_older_golden_that_has_other_outputs(life):
    (own,) = {name.split("/")[1] for name in life.golden if "test_wave/" in name}
    (older,) = {name.split("/")[1] for name in life.golden_updated if "test_wave/" in name} - {own}
    case = "test_models.test_wave"
    assert (
        f"{case}/{own}: the goldens by {older} and {own} have other outputs for the same inputs, and each is compared "
        f"with its own outputs: `jaxexport diff {case}/{older} {case}/{own}` shows what differs"
    ) in life.updated.text

"""A function that this process cannot run: a golden without outputs where the marker or JAX says why, else an error."""

import pytest
from projects import Project, Projects, Run

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

on_cuda = Primitive("on_cuda")
on_cuda.def_abstract_eval(lambda x: x)
mlir.register_lowering(on_cuda, mlir.lower_fun(lambda x: x + 1, multiple_results=False), platform="cuda")
on_tpu = Primitive("on_tpu")
on_tpu.def_abstract_eval(lambda x: x)
mlir.register_lowering(on_tpu, mlir.lower_fun(lambda x: x + 1, multiple_results=False), platform="tpu")

def f(x):
    return 2 * on_cuda.bind(x)

def mark(**words):
    return pytest.mark.export_compat(**words)

@mark(platforms=["cuda"], without_outputs="CI has no GPU")
class TestReason:
    def test_kernel(self, export_golden):
        export_golden(jax.jit(f), np.arange(3.0)).also(np.ones(3))

    def test_changing(self, export_golden):
        export_golden(jax.jit(f), np.arange(4.0))

    def test_old_name(self, export_golden):
        export_golden(jax.jit(f), np.arange(5.0))

@mark(platforms=["cuda"])
def test_no_lowering(export_golden):
    export_golden(jax.jit(f), np.arange(3.0))

@mark(platforms=["cuda"], allow={"my_kernel": "for this test"})
def test_no_reason(export_golden):
    call = jax.ffi.ffi_call("my_kernel", jax.ShapeDtypeStruct((3,), np.float32))
    export_golden(jax.jit(lambda x: call(x)), np.ones(3, np.float32))

@mark(platforms=["tpu"], disabled_checks={"platform": "for this test"})
def test_no_check(export_golden):
    export_golden(jax.jit(lambda x: on_tpu.bind(x)), np.arange(3.0))

@mark()
def test_no_platform(export_golden):
    export_golden(jax.jit(f), np.arange(3.0))

@mark(platforms=["cpu", "cuda"], without_outputs="CI has no GPU")
def test_on_cpu(export_golden):
    export_golden(jax.jit(jnp.sin), np.arange(3.0))
"""
KERNEL = "test_a.TestReason.test_kernel"


@pytest.fixture(scope="module")
def written(projects: Projects) -> tuple[Project, Run]:
    project = projects(test_a=TESTS)
    return project, project.pytest("--update-goldens")


@pytest.fixture(scope="module")
def checked(written: tuple[Project, Run]) -> Run:
    """A run in which one function was changed and one test renamed."""
    project, _ = written
    changed = TESTS.replace("jax.jit(f), np.arange(4.0)", "jax.jit(lambda x: 3 * f(x)), np.arange(4.0)")
    project.write(test_a=changed.replace("test_old_name", "test_new_name"))
    return project.pytest()


def test_a_reason_lets_a_golden_have_no_outputs(written):
    project, run = written
    assert run["TestReason.test_kernel"].outcome == "passed", run.text
    names = {"golden.yaml", "artifact.jaxexport", "inputs.npz", "call1.inputs.npz", "module.mlir", "jaxpr.txt"}
    assert {path.rpartition("/")[2] for path in project.stored(KERNEL)} == names
    assert project.manifest(KERNEL)["options"]["without_outputs"] == "CI has no GPU"
    assert "stored without outputs: readers compile it, and compare no numbers" in run.text


def test_a_lowering_that_the_platform_lacks_is_recorded_as_the_reason(written):
    project, run = written
    assert run["test_no_lowering"].outcome == "passed", run.text
    reason = project.manifest("test_a.test_no_lowering")["options"]["without_outputs"]
    assert reason.startswith("JAX cannot run it on cpu, where it was written: ")
    assert reason.endswith("'on_cuda' not found for platform cpu")
    assert reason in run.text
    assert not any(path.endswith("outputs.npz") for path in project.stored("test_a.test_no_lowering"))


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("test_no_reason", ["exported for cuda, and does not run on cpu", "without_outputs='why'"]),
        ("test_no_check", ["'on_tpu' not found for platform cpu", "without_outputs='why'"]),
        ("test_no_platform", ["'on_cuda' not found for platform cpu", "platforms=['tpu']", "without_outputs='why'"]),
        ("test_on_cpu", ["without_outputs: expected a function that is exported for other platforms than cpu"]),
    ],
)
def test_without_a_reason_the_error_says_what_to_write(written, test, words):
    assert written[1][test].outcome == "failed"
    assert all(word in written[1][test].text for word in words), written[1][test].text


def test_an_unrunnable_golden_passes_while_unchanged(checked):
    assert checked["TestReason.test_kernel"].outcome == "passed", checked.text
    assert "2 goldens not replayed: exported for other platforms than cpu, 2 of them without outputs" in checked.text


def test_a_changed_module_fails_an_unrunnable_golden(checked):
    text = checked["TestReason.test_changing"].text
    assert "export changed, beyond locations and names:\n  module: @main: " in text
    assert "primitives: mul 1 → 2" in text


def test_a_renamed_test_without_outputs_is_recognized_by_its_jaxpr(checked):
    hint = "same signature and jaxpr: jaxexport goldens rename test_a.TestReason.test_old_name"
    assert hint in checked["TestReason.test_new_name"].text

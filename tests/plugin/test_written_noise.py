"""The noise of a golden, measured while it is written, or later with `--noise=later`; how many have none."""

import re
import shutil

import numpy as np
import pytest
import yaml
from making import write_golden
from msgspec import structs
from projects import Project, Projects, Run
from warm_pytest import NO_NOISE, WHOLE_NOISE

from export_core.goldens import GoldenStore
from export_core.goldens.arrays import noise_to_npz
from export_core.goldens.manifest import NoiseRecord
from export_core.goldens.store import NOISE
from export_core.numbers.noise import WHAT_TO_DO
from export_core.numbers.unseen_errors import LITTLE_NOT_SEEN, NOT_SEEN_ADVICE

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.random.default_rng(0).uniform(0.1, 0.9, 16).astype(np.float32)

def chaos(x):
    return jax.lax.fori_loop(0, 60, lambda _, x: 3.9 * x * (1 - x), x)

def zero_gradient(x):
    return jax.grad(lambda bias: jnp.sum(jax.nn.softmax(x + bias) * x))(jnp.float32(0.1))

@pytest.mark.export_compat
class TestPlain:
    def test_smooth(self, export_golden):
        export_golden(jax.jit(lambda x: (jnp.exp(x).sum(), x > 0.5)), X)

    def test_zero_gradient(self, export_golden):
        export_golden(jax.jit(zero_gradient), X)

    def test_chaos(self, export_golden):
        export_golden(jax.jit(chaos), X)

    def test_partly_chaos(self, export_golden):
        export_golden(jax.jit(lambda x: jnp.concatenate([x, chaos(x)])), X)

    def test_cancelling_variance(self, export_golden):
        export_golden(jax.jit(lambda x: {"variance": jnp.mean(x**2) - jnp.mean(x) ** 2}), 1000 + X)

    def test_bias_that_cancels(self, export_golden):
        def loss(parameters, x):
            return jnp.sum(jax.nn.softmax(x @ parameters["weights"] + parameters["bias"]) * x)

        parameters = {"bias": np.float32(0.1), "weights": np.eye(16, dtype=np.float32)}
        export_golden(jax.jit(jax.grad(loss)), parameters, X)

    def test_chaos_and_a_count(self, export_golden):
        export_golden(jax.jit(lambda x: (chaos(x), x.shape[0] + jnp.int32(0))), X)

    def test_unstable(self, export_golden):
        export_golden(jax.jit(lambda x: jnp.argsort(chaos(x))), X)

@pytest.mark.export_compat(compare="shape")
def test_shape(export_golden):
    export_golden(jax.jit(chaos), X)

@pytest.mark.export_compat(rtol=1e-3, atol=1.0)
def test_own_tolerance(export_golden):
    export_golden(jax.jit(chaos), X)
"""


@pytest.fixture(scope="module")
def project(projects: Projects) -> Project:
    """Goldens of smooth and chaotic functions."""
    return projects(noise=WHOLE_NOISE, test_a=TESTS)


@pytest.fixture(scope="module")
def written(project: Project) -> Run:
    """The run that wrote the goldens of the project."""
    return project.pytest("--update-goldens")


def manifest_of(project: Project, case: str) -> dict[str, object]:
    return yaml.safe_load(next((project.goldens / case).glob("*/golden.yaml")).read_text())


def test_noise_is_stored_and_described(project, written):
    manifest = manifest_of(project, "test_a.TestPlain.test_smooth")
    noise = manifest["noise"]
    assert "noise.npz" in manifest["files"]
    assert "noise.npz" in {path.rpartition("/")[2] for path in project.stored("test_a.TestPlain.test_smooth")}
    assert (noise["moved"], noise["jaxlib"]) == (6, manifest["writer"]["jaxlib"])
    assert noise["instruction_set"] == manifest["instruction_set"] != ""
    assert (noise["inside"], noise["amplified"], noise["compiled"]) == (24, 4, ["unoptimized"])
    assert "unmeasured" not in noise
    assert noise["undecided_outputs"] == {}


def test_noise_is_the_same_when_it_is_measured_again(project, written, tmp_path):
    copied = project.copy(tmp_path / "copy")
    shutil.rmtree(copied.goldens)
    copied.write(conftest=WHOLE_NOISE + copied.warm.workers_too)
    # In a new interpreter, which hashes strings in another way.
    copied.pytest("--update-goldens", "-k", "partly or unstable", cold=True)
    again = copied.stored()
    assert len(again) == 2 * 7
    assert again == {name: data for name, data in project.stored().items() if name in again}


def test_noise_of_an_unchanged_golden_is_not_measured_again(project, written, tmp_path):
    copied = project.copy(tmp_path / "copy")
    copied.write(conftest=NO_NOISE)
    again = copied.pytest("--update-goldens", "-k", "smooth or partly")
    assert "2 goldens unchanged" in again.text
    assert copied.stored() == project.stored()


def undecided_in(project: Project, case: str) -> dict[str, dict[str, object]]:
    return manifest_of(project, f"test_a.TestPlain.test_{case}")["noise"]["undecided_outputs"]


def test_a_golden_whose_numbers_prove_nothing_is_refused(project, written):
    report = written["TestPlain.test_chaos"]
    assert report.outcome == "failed"
    assert "nothing was stored: the numbers of this golden would prove nothing" in report.text
    assert "compare='shape'" in report.text
    assert not (project.goldens / "test_a.TestPlain.test_chaos").exists()


def test_goldens_with_useful_numbers_are_stored(project, written):
    refused = ["test_chaos", "test_zero_gradient", "test_cancelling_variance"]
    assert set(written.outcomes()["failed"]) == {f"test_a.TestPlain.{name}" for name in refused}, written.text
    deselected = [f"--deselect=test_a.py::TestPlain::{name}" for name in refused]
    assert project.pytest(*deselected).code == 0


def test_an_output_is_named_if_rounding_alone_decides_elements(project, written):
    undecided = undecided_in(project, "partly_chaos")
    count, total = undecided["0"]["elements"], undecided["0"]["of"]
    assert (8 <= count <= 16, total) == (True, 32)
    assert f"output 0: {count} of 32 elements would not show a wrong number: rounding alone moves them by up to " in (
        written.text
    )
    assert undecided_in(project, "chaos_and_a_count").keys() == {"0"}


def test_no_noise_warning_names_an_output_compared_by_a_policy_rule(project, written, tmp_path):
    copied = project.copy(tmp_path / "copy")
    rule = "{cases: ['*.test_partly_chaos'], rtol: 1.0e-3, reason: measured}"
    (copied.folder / "export_compat.yaml").write_text(f"numbers: [{rule}]\n")
    shutil.rmtree(copied.goldens / "test_a.TestPlain.test_partly_chaos")
    written = copied.pytest("--update-goldens", "-k", "partly_chaos or bias_that")
    assert "(result['bias']): 1 of 1 element would not show a wrong number" in written.text
    assert "of 32 elements would not show a wrong number" not in written.text


def test_a_golden_of_a_difference_of_large_numbers_is_refused(project, written):
    report = written["TestPlain.test_cancelling_variance"]
    assert report.outcome == "failed"
    assert "nothing was stored: the numbers of this golden would prove nothing: output 0 (result['va" in report.text
    assert "for a difference of large numbers, scale or centre the inputs" in report.text


def test_replacing_a_variance_by_a_constant_fails_the_check(project, written, tmp_path):
    copied = project.copy(tmp_path / "copy")
    copied.write(test_a=TESTS.replace("jnp.mean(x**2) - jnp.mean(x) ** 2", "jnp.float32(1.0) + 0 * x[0]"))
    checked = copied.pytest("-k", "cancelling_variance")
    assert checked.outcomes() == {"failed": ["test_a.TestPlain.test_cancelling_variance"]}


def test_a_gradient_that_is_only_rounding_is_named_by_its_leaf(project, written):
    assert undecided_in(project, "bias_that_cancels")["0"]["leaf"] == "result['bias']"
    assert "output 0 (result['bias']): 1 of 1 element would not show a wrong number" in written.text
    assert "For a zero that is only rounding errors, nothing if other outputs show what is computed" in written.text


def test_an_output_that_jumps_between_distant_values_is_named(project, written):
    jumping = manifest_of(project, "test_a.TestPlain.test_unstable")["noise"]["jumping"]
    assert (
        f"output 0: {jumping['0'][0]} of 16 elements jump: their last bit decides between distant values"
        in written.text
    )


FIRST_AND_SECOND = """
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.ones(3, "float32")

@pytest.mark.export_compat
def test_first(export_golden):
    export_golden(jax.jit(jnp.sin), X)

@pytest.mark.export_compat
def test_second(export_golden):
    export_golden(jax.jit(jnp.cos), X)
"""
COMMAND = "jaxexport goldens verify --noise --goldens stored measures it"


@pytest.fixture(scope="module")
def unmeasured(projects: Projects) -> Project:
    """A project whose first golden has noise; the second is not written yet."""
    unmeasured = projects(noise=WHOLE_NOISE, test_a=FIRST_AND_SECOND)
    measuring = unmeasured.pytest("--update-goldens", "--goldens", "stored", "-k", "first")
    assert "without noise" not in measuring.text
    return unmeasured


@pytest.fixture(scope="module")
def written_later(unmeasured: Project) -> Run:
    return unmeasured.pytest("--update-goldens", "--goldens", "stored", "--noise=later")


def test_noise_later_writes_a_golden_without_noise(unmeasured, written_later):
    assert "1 golden new: test_a.test_second/" in written_later.text
    assert "noise" not in unmeasured.manifest("test_a.test_second", "stored")
    assert "1 golden unchanged: test_a.test_first/" in written_later.text
    assert "noise" in unmeasured.manifest("test_a.test_first", "stored"), "an unchanged golden keeps its noise"
    assert f"1 golden without noise yet: {COMMAND}" in written_later.text


def test_pytest_counts_goldens_without_noise(unmeasured, written_later):
    checked = unmeasured.pytest("--goldens", "stored")
    assert "2 cases checked against 2 goldens: 2 kept" in checked.text
    assert f"1 golden without noise yet: {COMMAND}" in checked.text


def test_pytest_names_a_golden_with_noise_that_no_run_measured(projects):
    project = projects(noise=NO_NOISE, test_a=FIRST_AND_SECOND)
    project.pytest("--update-goldens")
    (golden,) = GoldenStore(project.goldens).generations("test_a.test_first")
    outputs = golden.outputs()
    data = noise_to_npz(
        [(outputs, tuple(np.full(leaf.shape, 0.01) if leaf.dtype == "float32" else None for leaf in outputs))]
    )
    forged = NoiseRecord(golden.manifest.writer.jaxlib, "AVX2", 0, ())
    write_golden(
        GoldenStore(project.goldens), structs.replace(golden.manifest, noise=forged), {**golden.files(), NOISE: data}
    )
    checked = project.pytest()
    assert f"{golden.id}: noise, but no run that measured it" in checked.text


JUMPS = """
import jax, jax.numpy as jnp, pytest

@pytest.mark.export_compat
def test_jumps(export_golden):
    export_golden(jax.jit(lambda x: jnp.where(x > 2, x, -x)), jnp.arange(5.0))

@pytest.mark.export_compat
def test_cancels(export_golden):
    export_golden(jax.jit(lambda x: x - 1), jnp.full(3, 1.00001))
"""


def test_noise_that_pytest_has_written_is_not_called_impossible(projects):
    project = projects(noise=WHOLE_NOISE, test_a=JUMPS)
    project.pytest("--update-goldens")
    checked = project.pytest()
    assert "2 cases checked against 2 goldens: 2 kept" in checked.text
    assert len(re.findall(r": noise of [\d.e+]+ units in the last place, by moved inputs alone\n", checked.text)) == 2


BLUR = """
import jax, jax.numpy as jnp, numpy as np, pytest

def blur(image, kernel):
    return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME")

IMAGE = np.random.default_rng(0).standard_normal((1, 1, 8, 8)).astype(np.float32)
KERNEL = np.full((1, 1, 3, 3), 1 / 9, np.float32)

@pytest.mark.export_compat
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["wide", "narrow"])
def test_blur(export_golden, dtype):
    export_golden(jax.jit(blur), IMAGE.astype(dtype), KERNEL.astype(dtype))
"""


def test_only_a_golden_whose_noise_hides_large_errors_gets_advice(projects, jaxexport, monkeypatch):
    project = projects(noise=WHOLE_NOISE, test_a=BLUR)
    run = project.pytest("--update-goldens", "-k", "wide")
    assert "errors that rounding hides: up to " in run.text
    assert f", output 0. {LITTLE_NOT_SEEN}\n" in run.text
    assert NOT_SEEN_ADVICE not in run.text
    run = project.pytest("--update-goldens", "-k", "narrow")
    assert LITTLE_NOT_SEEN not in run.text
    assert re.search(r"hides: up to [1-9] % of the largest number in test_a\.test_blur\[narrow\], output 0", run.text)
    assert run.text.count(NOT_SEEN_ADVICE) == 1
    monkeypatch.chdir(project.folder)
    shown = (jaxexport("inspect", f"test_a.test_blur[{name}]").out for name in ("wide", "narrow"))
    advised = [NOT_SEEN_ADVICE in " ".join(out.split()) for out in shown]
    assert advised == [False, True]


EDGE = """
import jax, jax.numpy as jnp, numpy as np, pytest

@pytest.mark.export_compat
def test_edge(export_golden):
    export_golden(jax.jit(lambda x: (jnp.sin(x), jnp.floor(3 * x[0]))), np.full(4, 1 + 2e-6, "float32"))
"""


def test_errors_that_a_jump_hides_are_named_everywhere(projects, jaxexport, monkeypatch):
    project = projects(noise=WHOLE_NOISE, test_a=EDGE)
    written = project.pytest("--update-goldens")
    jump = "output 1 (result[1]): 1 of 1 element jump: their last bit decides between distant values; errors of up to 2"
    assert f"{jump} pass, and the largest number is 3" in written.text
    assert "hides: up to 70 % of the largest number in test_a.test_edge, output 1 (result[1]); up to " in written.text
    assert LITTLE_NOT_SEEN not in written.text
    assert WHAT_TO_DO in written.text
    checked = project.pytest()
    assert "1 golden with outputs that would not show a wrong number: test_a.test_edge/" in checked.text
    monkeypatch.chdir(project.folder)
    shown = " ".join(jaxexport("inspect", "test_a.test_edge").out.split())
    assert f"{jump} pass" in shown
    assert "up to 70 % of the largest number in output 1" in shown
    assert "a tenth of their largest number in elements that do not jump: none" in shown

"""Goldens of another instruction set: where the same release gives other numbers, both processors are named."""

from types import SimpleNamespace

import pytest
from projects import Projects

from export_core.goldens.arrays import from_npz, leaf_of, to_npz
from export_core.goldens.store import MANIFEST, OUTPUTS, sha256
from export_core.readers.hardware import instruction_set, instructions_used

FLAGS = {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}
OLDER, OWN = instructions_used(FLAGS), instruction_set()
TEST = """
import jax, jax.numpy as jnp, numpy as np, pytest

X = np.linspace(-3, 3, 4096, dtype="float32")

@pytest.mark.export_compat(rtol=0, atol=0)
def test_wave(export_golden):
    export_golden(jax.jit(lambda x: (jnp.tanh(x), jnp.sin(x) @ jnp.cos(x), jnp.exp(x))), X)
"""

pytestmark = pytest.mark.skipif(OLDER == OWN, reason="XLA has no older instruction set for this processor")


@pytest.fixture(scope="module")
def written(projects: Projects) -> SimpleNamespace:
    """A project whose golden was written with the instructions of an older processor, and runs of it."""
    project = projects(test_a=TEST)
    alone = project.pytest("--update-goldens", environment=FLAGS)
    (project.folder / "export_compat.yaml").write_text("environment: [XLA_FLAGS]\n")
    update = project.pytest("--update-goldens", environment=FLAGS)
    return SimpleNamespace(project=project, alone=alone, update=update)


def test_outputs_computed_under_other_xla_flags_are_not_stored(written):
    report = written.alone["test_wave"]
    assert report.outcome == "failed"
    assert "Its outputs were computed with other flags than its replay: nothing was stored." in report.text
    assert f"processor  written on {OLDER}, read on {OWN}" in report.text
    assert "`environment: [XLA_FLAGS]`" in report.text
    assert "The fault is in what was exported" not in report.text


def test_a_golden_records_the_cpu_instruction_set(written):
    assert written.update["test_wave"].outcome == "passed", written.update.text
    (manifest,) = (text for name, text in written.project.stored().items() if name.endswith("golden.yaml"))
    assert f"\ninstruction_set: {OLDER}\n" in manifest.decode()


def test_a_cell_with_different_numbers_names_both_processors(written):
    report = written.project.pytest()["test_wave"]
    assert report.outcome == "failed"
    assert f"processor: written on {OLDER}, read on {OWN}: numbers may depend on it" in report.text


def test_changed_outputs_are_not_blamed_on_the_processor(written, tmp_path):
    project = written.project.copy(tmp_path / "changed")
    project.write(test_a=TEST.replace("rtol=0, atol=0", ""))  # no error is known to be far where none is allowed
    (outputs,) = project.goldens.glob(f"*/*/{OUTPUTS}")
    manifest, before = outputs.with_name(MANIFEST), sha256(outputs.read_bytes())
    first, *others = from_npz(outputs)
    values = first.numpy().copy()
    values[0] *= 1.01
    outputs.write_bytes(to_npz([leaf_of(values), *others]))
    manifest.write_text(manifest.read_text().replace(before, sha256(outputs.read_bytes())))
    text = project.pytest()["test_wave"].text
    assert "no rounding of a processor is known to give such numbers" in text
    assert "the golden's stored outputs are in doubt" in text
    assert f"`git log -- {outputs.parent}`" in text
    assert "numbers may depend on it" not in text

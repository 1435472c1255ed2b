"""The installed jax: this reader reads its artifacts as it recorded them, and it accepts rewritten ones."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from stored_artifacts import counts

from export_core.artifact import Artifact, read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.export_changes import export_changes

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no jax is installed here")

STUDIES = Path(__file__).parents[2] / "studies" / "artifact"
CASES = ("cholesky", "sharded", "symbolic", "mlp", "scan")

FIELDS = (
    *("fun_name", "in_tree", "in_avals", "out_tree", "out_avals", "platforms", "nr_devices", "module_kept_var_idx"),
    *("ordered_effects", "disabled_safety_checks", "mlir_module_serialized", "uses_global_constants"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("exported")
    command = [sys.executable, STUDIES / "jax_truth.py", target, *CASES]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (made,) = target.iterdir()
    return made


def test_an_artifact_of_this_jax_is_read_as_recorded(folder):
    truth = json.loads((folder / "truth.json").read_bytes())
    assert set(truth) == set(CASES)
    for name, recorded in truth.items():
        artifact = read(folder / f"{name}.jaxexport")
        assert not artifact.envelope.unknown_fields
        assert (str(artifact.envelope.in_tree), artifact.envelope.fun_name) == (
            recorded["in_tree"],
            recorded["fun_name"],
        )
        assert list(map(str, artifact.envelope.in_avals)) == recorded["in_avals"]
        assert counts(artifact.module.op_counts) == recorded["op_counts"]
        assert sorted({call.target for call in artifact.module.custom_calls}) == sorted(set(recorded["targets"]))


@pytest.mark.parametrize("name", CASES)
def test_the_installed_jax_reads_a_rewritten_artifact_as_before(name, folder):
    from jax import export

    artifact = read(folder / f"{name}.jaxexport")
    before, after = (export.deserialize(bytearray(data)) for data in (artifact.data, encode(artifact.envelope)))
    # As text: symbolic dimensions of two reads are of two scopes, and never equal.
    assert [str(getattr(before, field)) for field in FIELDS] == [str(getattr(after, field)) for field in FIELDS]
    assert before.has_vjp() == after.has_vjp()
    assert before.mlir_module() == after.mlir_module()


def test_a_metadata_name_that_looks_like_two_entries_is_read_as_one():
    import jax
    import numpy as np
    from jax.experimental.xla_metadata import set_xla_metadata

    def exported(**metadata: str) -> Artifact:
        def function(x):
            with set_xla_metadata(**metadata):
                return jax.numpy.sin(x)

        return read_bytes(jax.export.export(jax.jit(function))(np.ones(2, np.float32)).serialize())

    (change,) = export_changes(exported(a="1", b="2"), exported(**{"a = '1', b": "2"}))
    assert "mhlo.frontend_attributes" in change

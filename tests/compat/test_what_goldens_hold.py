"""What the kept goldens show of jax.export, read from their artifacts without jax: the same whichever release runs this test."""

from pathlib import Path

import pytest

from export_core.artifact import Artifact, audit, read
from export_core.features.inspect.artifact_facts import describe
from export_core.features.inspect.difference import changes_between
from export_core.goldens import GoldenStore
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import shipped_entries

GOLDEN = Path(__file__).parents[2] / "golden"
BOTH = ("0.9.2-cpu", "0.12.0.1-cpu")


def artifact(module: str, test: str, writer: str) -> Artifact:
    return read(GOLDEN / f"tests.compat.{module}.{test}" / writer / "artifact.jaxexport")


@pytest.mark.parametrize("writer", BOTH)
def test_one_artifact_calls_the_lapack_target_of_each_platform(writer):
    targets = {call.target for call in artifact("test_platforms", "test_targets_of_each_platform", writer).custom_calls}
    assert {"lapack_sgeqrf_ffi", "cusolver_geqrf_ffi"} <= targets


@pytest.mark.parametrize(("writer", "version"), [(BOTH[0], 2), (BOTH[1], 9)])
def test_a_mosaic_kernel_shows_its_payload_version(writer, version):
    calls = artifact("test_accelerators", "test_pallas_on_hopper", writer).custom_calls
    found = {call.target: str(audit.describe(call)) for call in calls}
    assert found["mosaic_gpu_v2"] == f"Mosaic GPU kernel (Pallas), payload version {version}"


@pytest.mark.parametrize("writer", BOTH)
def test_without_forward_compatibility_the_lowering_differs(writer):
    terms = Terms(shipped_entries())
    old, new = (
        describe(artifact("test_conventions", name, writer), terms)
        for name in ("test_forward_compatible", "test_for_readers_from_today_on")
    )
    changed = [change for change in changes_between(old, new) if "add" in change[0] or "multiply" in change[0]]
    assert changed == [("operation vhlo.add_v1", "× 2", "× 1"), ("operation vhlo.multiply_v1", "none", "× 1")]


@pytest.mark.parametrize("writer", BOTH)
@pytest.mark.parametrize(("name", "version"), [("test_version_9", 9), ("test_version_10", 10)])
def test_the_artifact_has_the_chosen_calling_convention(writer, name, version):
    envelope = artifact("test_conventions", name, writer).envelope
    assert envelope is not None
    assert envelope.calling_convention_version == version


@pytest.mark.parametrize("writer", BOTH)
def test_only_ordered_effects_have_tokens(writer):
    found = artifact("test_effects", "test_several", writer)
    assert found.envelope is not None
    assert len(found.envelope.ordered_effects) == 2
    assert len(found.envelope.unordered_effects) == 1
    main = found.module.main
    assert main is not None
    assert [str(kind) for kind in main.inputs].count("!stablehlo.token") == 2


@pytest.mark.parametrize(
    ("writer", "partitioner"), [("0.6.2-cpu", "GSPMD"), ("0.9.2-cpu", "Shardy"), ("0.12.0.1-cpu", "Shardy")]
)
def test_shardings_are_of_the_partitioner_of_their_day(writer, partitioner):
    found = artifact("test_shardings", "test_constraint_inside", writer)
    shardy = any(name.startswith("sdy.") for name in found.module.op_names)
    assert ("Shardy" if shardy else "GSPMD") == partitioner
    assert found.envelope is not None
    assert found.envelope.nr_devices == 4


def test_every_file_has_goldens_by_two_writers():
    modules = {path.stem for path in Path(__file__).parent.glob("test_*.py")} - {Path(__file__).stem}
    writers: dict[str, set[str]] = {module: set() for module in modules}
    for golden in GoldenStore(GOLDEN).goldens():
        writers[golden.manifest.case.split(".")[2]].add(golden.manifest.writer.id)
    assert {module: found for module, found in writers.items() if len(found) < 2} == {}

"""The mesh of an artifact without its source: read from its shardings, or given by the user and checked."""

import contextlib
import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replaying import replayed

from export_core.artifact import Artifact, HloSharding, read
from export_core.artifact.envelope.encode import encode
from export_core.artifact.errors import ArtifactError
from export_core.artifact.hlo_sharding import spec_on, tiles_of
from export_core.goldens import Golden, GoldenError, GoldenStore
from export_core.goldens.adopt import adopt_artifact
from export_core.goldens.adopted_mesh import mesh_for, parse_mesh, parse_specs, specs_for
from export_core.goldens.manifest_file import dump_manifest, load_manifest
from export_core.matrix import Cell, Verdict
from export_core.policy.run_options import CellLimits
from export_core.readers.cell import request_of
from export_core.readers.environment import this_interpreter
from export_core.releases.calendar import load_calendar, version_key

pytestmark = pytest.mark.usefixtures("forked_workers")

STORED = Path(__file__).parents[2] / "golden"
SHARDED = Path(__file__).parents[1] / "artifact" / "data" / "0.6.2" / "sharded.jaxexport"
SHARDED_GOLDENS = [
    golden
    for folder in sorted(STORED.glob("tests.compat.test_shardings.*"))
    for golden in GoldenStore(STORED).generations(folder.name)
    if golden.manifest.options.mesh
]
ON_TWO_MESHES = GoldenStore(STORED).generations("tests.compat.test_devices.test_two_meshes_the_smaller_first")


def stored(case: str, writer: str) -> Golden:
    return next(golden for golden in SHARDED_GOLDENS if golden.id == f"tests.compat.test_shardings.{case}/{writer}-cpu")


def artifact_with(tmp_path: Path, **fields: object) -> Artifact:
    """Return a stored artifact for four devices with XLA's shardings, and with these fields in its envelope."""
    envelope = read(stored("test_four_devices", "0.6.2").artifact).envelope
    assert envelope is not None
    path = tmp_path / "changed.jaxexport"
    path.write_bytes(encode(envelope._replace(**fields)))
    return read(path)


def proto(dims: list[int], devices: list[int], *, replicated: bool = False) -> bytes:
    """Return a tiled OpSharding that lists its devices one by one, as older releases write it."""

    def packed(field: int, values: list[int]) -> bytes:
        return bytes([field << 3 | 2, len(values), *values])

    return bytes([8, 3]) + packed(3, dims) + packed(4, devices) + (bytes([6 << 3, 1]) if replicated else b"")


def test_an_artifact_on_two_meshes_gets_the_mesh_with_more_axes():
    assert [mesh_for(read(golden.artifact), {}) for golden in ON_TWO_MESHES] == [{"x": 2, "y": 2}] * 2


@pytest.mark.parametrize("golden", SHARDED_GOLDENS, ids=lambda golden: golden.id.rpartition("test_shardings.")[2])
def test_a_mesh_is_read_from_the_artifact(golden):
    expected, mesh = golden.manifest.options.mesh, mesh_for(read(golden.artifact), {})
    if golden.manifest.writer.jaxlib == "0.6.2":  # XLA's shardings, without names
        assert set(mesh.values()) == {2}
        assert math.prod(mesh.values()) == math.prod(expected.values())
    else:
        assert list(mesh.items()) == list(expected.items())


@pytest.mark.parametrize("case", ["test_four_devices", "test_constraint_inside", "test_shard_map"])
@pytest.mark.parametrize("writer", ["0.6.2", "0.12.0.1"])
def test_an_adopted_artifact_for_four_devices_runs(case, writer, tmp_path, here, warm_workers):
    golden = stored(case, writer)
    arrays = (golden.folder / "inputs.npz", golden.folder / "outputs.npz")
    GoldenStore(tmp_path).write(*adopt_artifact(read(golden.artifact), *arrays, "adopted", golden.manifest.writer))
    (adopted,) = GoldenStore(tmp_path).goldens()
    ((_, outcome),) = replayed([Cell(adopted, here, "cpu")], this_interpreter, start=warm_workers.start)
    is_too_old = writer == "0.6.2" and version_key(here.jax) >= version_key("0.11.1")
    assert outcome.verdict is (Verdict.REFUSED if is_too_old else Verdict.PASS), outcome.message


SWAPPED = {"in_shardings": (HloSharding(proto([2, 2], [0, 2, 1, 3])), None)}


@pytest.mark.parametrize(
    ("fields", "text", "problem"),
    [
        (SWAPPED, "data=2", "--mesh data=2: expected a mesh of 4 devices, for which the .* found one of 2"),
        (SWAPPED, "data=2,data=2", "--mesh data=2,data=2: expected axes and their sizes"),
        (SWAPPED, "data", "--mesh data: expected axes and their sizes, such as data=2,model=4"),
        (SWAPPED, "data=0", "--mesh data=0: expected axes and their sizes"),
        (SWAPPED, "devices=4", "argument 0 .* devices=4: it is in 2 × 2 parts, on the devices 0, 2, 1, 3. Say.*--mesh"),
        (
            {"in_shardings": (HloSharding(proto([4], [0, 1, 3, 2])), None)},
            "",
            r"argument 0 \(args\[0\]\) cannot be placed .*--mesh",
        ),
        ({"nr_devices": 30000}, "", "at most 4096 devices, found 30000"),
    ],
)
def test_a_mesh_that_does_not_fit_the_artifact_is_refused(fields, text, problem, tmp_path):
    with pytest.raises(GoldenError, match=problem):
        mesh_for(artifact_with(tmp_path, **fields), parse_mesh(text) if text else {})


def test_a_mesh_with_wrong_axis_names_is_refused():
    with pytest.raises(GoldenError, match=r"expected the mesh data=2,model=2, which its shardings name, found a=2,b=2"):
        mesh_for(read(stored("test_four_devices", "0.12.0.1").artifact), {"a": 2, "b": 2})


def test_the_shape_of_a_six_device_mesh_follows_from_shardings(tmp_path):
    columns = np.arange(6).reshape(3, 2).T.ravel().tolist()
    artifact = artifact_with(tmp_path, nr_devices=6, in_shardings=(HloSharding(proto([2, 3], columns)), None))
    assert list(mesh_for(artifact, {}).values()) == [3, 2]


MANY = bytes([0xC0, 0x84, 0x3D]) + b"\x01" * 1_000_000
"""A million dimensions, after their number as a varint."""


@pytest.mark.parametrize(
    "data",
    [
        *(b"\xff" * 12, b"\x1a\x7f\x01", b"\x08\x03\x1a\x02\x02\x02\x22\x01\x00", b"\x08\x01"),
        *(bytes([8, 3, field << 3 | 2]) + MANY for field in (3, 9)),
    ],
    ids=["no field", "cut", "too few devices", "no arrays", "many dimensions", "many devices"],
)
def test_a_damaged_sharding_is_refused(data):
    with pytest.raises(ArtifactError):
        tiles_of(data, "x")


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda tail: b"\x08\x03\x1a\x02\x02\x02" + tail))
def test_random_bytes_parse_as_a_sharding_or_are_refused(data):
    with contextlib.suppress(ArtifactError):
        spec_on({"x": 2, "y": 2}, tiles_of(data, "x"))


@given(st.data())
def test_any_partition_spec_is_recovered_from_its_hlo_sharding(data):
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=3))
    mesh = {f"a{number}": size for number, size in enumerate(sizes)}
    order = data.draw(st.permutations([name for name in mesh if mesh[name] > 1]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), min_size=2, max_size=2)))
    spec = [order[: cuts[0]], order[cuts[0] : cuts[1]]]
    rest = [name for name in mesh if name not in order[: cuts[1]]]
    positions = [list(mesh).index(name) for name in [*order[: cuts[1]], *rest]]
    devices = np.arange(math.prod(sizes)).reshape(sizes).transpose(positions).ravel().tolist()
    dims = [math.prod(mesh[name] for name in axes) for axes in spec]
    replicas = math.prod(mesh[name] for name in rest)
    tiles = tiles_of(proto([*dims, replicas], devices, replicated=True), "x")
    expected = tuple(axes[0] if len(axes) == 1 else tuple(axes) or None for axes in spec)
    assert spec_on(mesh, tiles) == expected


def adopted(specs: tuple[str | None, ...]) -> Golden:
    """Return a golden for four devices with these specs, as adoption makes it if only the artifact is known."""
    golden = stored("test_four_devices", "0.6.2")
    options = msgspec.structs.replace(golden.manifest.options, in_specs=specs)
    writer = msgspec.structs.replace(golden.manifest.writer, python="unknown")
    return Golden(msgspec.structs.replace(golden.manifest, writer=writer, options=options), golden.folder)


def test_given_specs_fill_in_missing_shardings(tmp_path):
    artifact = artifact_with(tmp_path, in_shardings=(None, None))
    specs = specs_for(artifact, {"data": 2, "model": 2}, parse_specs("P(('data', 'model')), None"))
    assert specs == ("PartitionSpec(('data', 'model'))", None)
    request = request_of(Cell(adopted(specs), load_calendar().release("0.9.2"), "cpu"), tmp_path, CellLimits())
    assert request.checks[0].specs == ((("data", "model"),), None)
    assert json.loads(msgspec.json.encode(request))["checks"][0]["specs"] == [[["data", "model"]], None]


@pytest.mark.parametrize("specs", [("__import__('os')", None), ("P('x')",)])
def test_a_manifest_with_invalid_specs_is_refused(specs, tmp_path):
    (tmp_path / "golden.yaml").write_bytes(dump_manifest(adopted(specs).manifest))
    with pytest.raises(GoldenError, match=r"options\.in_specs: expected a PartitionSpec or null for each argument"):
        load_manifest(tmp_path / "golden.yaml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("P('data')", "expected a spec for each of the 2 flat arguments, found 1"),
        ("P('other'), None", r"argument 0 \(args\[0\]\): expected only axes of the mesh .*, found \('other',\)"),
        ("P('model'), None", r"argument 0 \(args\[0\]\): expected PartitionSpec\('data', None\), as the artifact has"),
        *((text, "expected a PartitionSpec or None for each") for text in ("__import__('os')", "P(data)", "P(0)", "")),
        *(
            (text, "expected a PartitionSpec or None for each")
            for text in ("P(['data'])", "P(x='data')", "P(('data', 0))")
        ),
    ],
)
def test_specs_that_contradict_the_artifact_are_refused(text, problem):
    artifact = read(stored("test_four_devices", "0.12.0.1").artifact)
    with pytest.raises(GoldenError, match=problem):
        specs_for(artifact, {"data": 2, "model": 2}, parse_specs(text))

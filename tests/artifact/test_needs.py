import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from forge import MODULE, UNKNOWN, bytecode, op, region, varint
from stored_artifacts import DATA, FILES, jax_goldens

from export_core.artifact import read, read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import ByteSpan
from export_core.artifact.readers import Reader, loads, needs, readers_of
from export_core.artifact.unread import vhlo_tables
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import CalendarEntry, calendar_entries
from tools.vhlo_tables import TABLES, known_names, names_in, with_operations

LOADS = json.loads((DATA / "loads.json").read_bytes())  # measured: what did not load, in each of 26 releases


@pytest.fixture(scope="module")
def readers():
    calendar = load_calendar()
    found = readers_of(calendar_entries(calendar))
    # Measured with the jax of the same number.
    return {jaxlib: reader._replace(release=reader.release._replace(jax=jaxlib)) for jaxlib, reader in found.items()}


@pytest.mark.parametrize(
    ("name", "version", "because"),
    [
        ("0.4.30/cholesky", "0.9", ()),
        ("0.12.0.1/sharded", "0.9", ()),
        ("0.12.0.1/platforms", "1.10", ("tanh_v2",)),
        ("0.12.0.1/cholesky", "1.18", ("custom_call_v2",)),
        ("0.12.0.1/symbolic", "1.18", ("custom_call_v2",)),
    ],
)
def test_the_minimum_stablehlo_follows_from_a_modules_contents(name, version, because):
    found = needs(read(DATA / f"{name}.jaxexport").module)
    assert (found.stablehlo, found.set_by, found.exact) == (version, because, True)


def test_whether_a_module_with_an_unknown_attribute_loads_is_undecided():
    data = bytecode(op(MODULE, regions=region()), attributes=[(1, UNKNOWN), (0, varint(99))])
    found = needs(read_bytes(data).module)
    assert not found.exact
    assert (found.stablehlo, found.unknown[0][:17]) == ("0.9", "vhlo attribute 99")
    (answer,) = loads(read_bytes(data), [Reader(CalendarEntry("9.0.0", "", "9.0.0", ()), "9.0.0", "9.0.0")])
    assert answer.ok is None


def test_a_module_newer_than_the_tables_loads_in_a_reader_as_new():
    major, minor = map(int, vhlo_tables()["through"].split(".")[:2])
    newer = f"StableHLO_v{major}.{minor + 1}.0".encode()
    data = bytecode(op(MODULE, regions=region())).replace(b"StableHLO_v1.0.0", newer)
    artifact = read_bytes(data)
    same = Reader(CalendarEntry("9", "", "9", ()), f"{major}.{minor + 1}.0", f"{major}.{minor + 1}.0")
    older = Reader(CalendarEntry("8", "", "8", ()), f"{major}.{minor}.0", f"{major}.{minor}.0")
    assert [answer.ok for answer in loads(artifact, [same, older])] == [True, None]


def test_a_forecast_of_no_names_the_missing_operation_or_expiry(readers):
    artifact = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    (answer,) = loads(artifact, [readers["0.10.2"]])
    assert not answer.ok
    assert answer.reasons == ("jaxlib 0.10.2 has StableHLO 1.17.0, and custom_call_v2 came with 1.18",)
    (answer,) = loads(read(DATA / "0.8.1" / "cholesky.jaxexport"), [readers["0.12.0.1"]])
    assert "expired" in answer.reasons[0]


def test_the_forecast_matches_26_measured_releases(readers):
    confusion: Counter[tuple[bool | None, bool]] = Counter()
    artifacts = {f"{path.parent.name}/{path.stem}": read(path) for path in FILES}
    for version, not_loaded in LOADS.items():
        for name, artifact in artifacts.items():
            (answer,) = loads(artifact, [readers[version]])
            confusion[answer.ok, name not in not_loaded["artifacts"]] += 1
    assert set(confusion) == {(True, True), (False, False)}, confusion


@pytest.mark.skipif(not jax_goldens(), reason="no jax is installed here to take goldens from")
def test_the_forecast_holds_for_modules_of_the_jax_wheel(readers):
    base = read(DATA / "0.9.2" / "platforms.jaxexport").envelope
    slots = {*base.slots, "nr_devices_short"}  # an envelope that every release accepts, so that only the module decides
    wrong = []
    for name, golden in jax_goldens().items():
        module = golden["mlir_module_serialized"]
        key = hashlib.sha256(module).hexdigest()[:12]
        envelope = base._replace(serialization_version=2, module_source=ByteSpan(module, 0, len(module)))
        artifact = read_bytes(encode(envelope, slots))
        for version, not_loaded in LOADS.items():
            (answer,) = loads(artifact, [readers[version]])
            if answer.ok is not (key not in not_loaded["goldens"]):
                wrong.append((name, version, answer))
    assert not wrong


def test_the_tables_list_each_vhlo_name_of_the_installed_jaxlib():
    import importlib.util

    spec = importlib.util.find_spec("jaxlib")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no jaxlib is installed here")
    assert not names_in(Path(spec.submodule_search_locations[0])) - known_names()


def test_renewed_tables_gain_operations_and_lose_no_line():
    before = TABLES.read_text()
    after = with_operations(before, ["brand_new_v1", "zeta_v3"], "9.1.0")
    operations = json.loads(after)["ops"]
    assert operations.pop("brand_new_v1") == ["9.1.0", "current"]
    assert operations.pop("zeta_v3") == ["9.1.0", "current"]
    assert json.loads(before) == {**json.loads(after), "ops": operations}
    assert len(after.splitlines()) == len(before.splitlines()) + 2

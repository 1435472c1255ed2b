"""Claims of a manifest are checked against the bytes, the listed record of a conversion, and the calendar."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from making import ARTIFACTS, NEWEST, day, files, manifest, release, write_golden, writer
from msgspec.structs import replace

from export_core.artifact import read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.goldens import Golden, GoldenError, GoldenStore, Origin, verify
from export_core.goldens.conversion_record import ConversionRecord, dump_record
from export_core.goldens.manifest import ConvertedFrom, Manifest
from export_core.goldens.store import ARTIFACT, sha256
from export_core.policy import Policy
from export_core.policy.entries import ExtraReleases
from export_core.policy.run_options import RunOptions, Selection
from export_core.releases import JaxlibRelease, load_calendar
from export_core.run.session import plan_here, plan_matrix

RECORD = f"{ARTIFACT}.converted.json"
CONVERTED = ConvertedFrom(sha256(b"the original"), "0.9.2", "rewritten", (), "pytest-jaxexport")
DERIVED = Origin("given", "given", derived={"writer": "the first release from a day on"})
ORIGINAL = (ARTIFACTS / "0.9.2" / "point.jaxexport").read_bytes()
REWRITTEN = encode(read_bytes(ORIGINAL).envelope)
"""The same artifact as `jaxexport convert` encodes it."""


@pytest.fixture
def store(tmp_path, monkeypatch) -> GoldenStore:
    monkeypatch.chdir(tmp_path)
    return GoldenStore(tmp_path / "golden")


def converted(store: GoldenStore, artifact: bytes = REWRITTEN, **changes: object) -> Golden:
    """Write a golden of a converted artifact with its record, of which some fields are changed."""
    record = ConversionRecord("converted", "", sha256(artifact), CONVERTED, "why")
    record = replace(record, **changes)
    content = {**files(jaxlib="0.9.2"), ARTIFACT: artifact, RECORD: dump_record(record)}
    return write_golden(store, manifest("t.a", "0.9.2", converted_from=CONVERTED), content)


def refused(golden: Golden) -> str:
    """Check the claims of a golden that must be refused, and return the message."""
    with pytest.raises(GoldenError) as raised:
        verify.check_claims([golden], load_calendar())
    return str(raised.value)


def test_a_converted_golden_without_a_readable_record_is_refused(store):
    golden = converted(store)
    verify.check_claims([golden], load_calendar())
    content = golden.files()
    golden = write_golden(store, golden.manifest, {**content, RECORD: b"{"})
    assert "not the record of a conversion" in refused(golden)
    del content[RECORD]
    golden = write_golden(store, golden.manifest, content)
    assert f"expected the record {RECORD} of the conversion under `files`, found none" in refused(golden)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": sha256(ORIGINAL)}, "records, found another one"),
        ({"converted_from": replace(CONVERTED, reader="0.10.0")}, "records, found another one"),
        ({"artifact": ORIGINAL}, "expected a converted artifact, found one as jaxlib 0.9.2 writes it"),
    ],
    ids=["another artifact", "another reader", "an artifact as its writer wrote it"],
)
def test_a_record_of_another_conversion_is_refused(store, changes, message):
    assert message in refused(converted(store, **changes))


def test_a_golden_converted_from_its_own_artifact_is_refused(store):
    origin = replace(CONVERTED, sha256=sha256(REWRITTEN))
    golden = converted(store, converted_from=origin)
    made = replace(golden.manifest, converted_from=origin)
    assert "expected a converted artifact" in refused(write_golden(store, made, golden.files()))


@pytest.mark.parametrize(
    "words",
    [
        ("goldens", "verify"),
        ("matrix", "--dry-run"),
        ("matrix", "--no-cache"),
        ("forecast",),
        ("can-i-deploy", "t.a", "--to", "x"),
    ],
)
@pytest.mark.parametrize(
    ("claims", "jaxlib", "message"),
    [
        ({"converted_from": CONVERTED}, "0.9.2", "converted_from: expected the record"),
        (
            {"origin": DERIVED},
            "0.6.2",
            "writer: expected an artifact in a format that jax 0.6.2 writes, found format 5, 6, 7, 8 or 9.",
        ),
    ],
    ids=["converted", "derived"],
)
def test_every_command_checks_a_manifest_against_its_artifact(
    store, jaxexport, tmp_path, words, claims, jaxlib, message
):
    write_golden(store, manifest("t.a", jaxlib, **claims), files(jaxlib="0.9.2"))
    (tmp_path / "export_compat.yaml").write_text("deployed: [{name: x, jaxlib: 0.10.2}]\n")
    ended = jaxexport(*words)
    assert (ended.code, message in ended.err) == (2, True), ended


@pytest.mark.parametrize(("jaxlib", "is_known"), [("0.9.0", True), ("0.8.1", False), ("0.9.1", False)])
def test_a_golden_of_jax_is_recognized_only_with_the_writer_of_its_day(monkeypatch, jaxlib, is_known):
    artifact = read_bytes(ORIGINAL)
    day = load_calendar().built("0.9.0")
    monkeypatch.setattr(verify, "days_of_jax_goldens", lambda: {sha256(artifact.module.serialized()): [day]})
    assert verify.is_jax_golden(artifact, writer(jaxlib)) == is_known


def test_each_golden_of_jax_is_listed_by_hash_with_its_dates():
    table = verify.days_of_jax_goldens()
    assert len(table) > 140
    assert all(len(module) == 64 and days for module, days in table.items())


OWN = GoldenStore(Path(__file__).parents[2] / "golden")
FIRST_ORDER, REDUCED = "test_derivatives.test_first_order", "test_collectives.test_reduced"
ON_ANY_PLATFORM = "test_platforms.test_run_on_another_platform_all_the_same"


def own(case: str) -> Golden:
    """Return the newest golden of a case of this project."""
    return OWN.generations(f"tests.compat.{case}")[-1]


def changed(field: str = "", **changes: Any) -> Callable[[Manifest], Manifest]:
    """Return a function that changes a manifest, or one of its fields."""

    def change(made: Manifest) -> Manifest:
        if not field:
            return replace(made, **changes)
        return replace(made, **{field: replace(getattr(made, field), **changes)})

    return change


options, signature = functools.partial(changed, "options"), functools.partial(changed, "signature")


def without_derivatives(made: Manifest) -> Manifest:
    return options(vjp_order=0)(replace(made, checks=()))


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        (FIRST_ORDER, options(platforms=("tpu",)), "platforms: expected cpu, as in artifact.jaxexport, found tpu."),
        (FIRST_ORDER, options(platforms=("cpu", "tpu")), "options.platforms: expected cpu, as in"),
        (FIRST_ORDER, options(mesh={"x": 2}), "options.mesh: expected 1 device, as in artifact.jaxexport, found 2"),
        (FIRST_ORDER, changed(custom_calls=("a",)), "custom_calls: expected none, as in artifact.jaxexport, found a."),
        (FIRST_ORDER, signature(inputs=("int8[7]",)), "signature.inputs: expected float32[2,3], float32[3,2], as in"),
        (FIRST_ORDER, signature(outputs=()), "signature.outputs: expected float32[2,2], as in"),
        (FIRST_ORDER, signature(in_tree="*"), "signature.in_tree: expected PyTreeDef"),
        (FIRST_ORDER, signature(out_tree="(*,)"), "signature.out_tree: expected PyTreeDef"),
        (FIRST_ORDER, options(calling_convention_version=9), "options.calling_convention_version: expected 10, as in"),
        (FIRST_ORDER, without_derivatives, "options.vjp_order: expected 1, as in artifact.jaxexport, found 0."),
        (FIRST_ORDER, changed(checks=()), "checks: expected calls of derivatives [1], as in artifact.jaxexport, found"),
        (REDUCED, changed(out_shardings=()), "out_shardings: expected 2, as in artifact.jaxexport, found 0."),
        (ON_ANY_PLATFORM, options(disabled_checks={}), "options.disabled_checks: expected platform, as in"),
    ],
)
def test_a_manifest_must_agree_with_its_artifact(store, case, change, message):
    stored = own(case)
    verify.check_claims([stored], load_calendar())
    store.write(change(stored.manifest), stored.files())
    assert message in refused(*store.goldens())


# --- the build date ---------------------------------------------------------------------------------------------------


def built_on(store: GoldenStore, built: str, jaxlib: str = "0.9.2") -> Golden:
    """Write a golden whose manifest claims a build date."""
    made = manifest("t.a")
    by = replace(made.writer, jax=jaxlib, jaxlib=jaxlib, built=day(built))
    return write_golden(store, replace(made, writer=by))


WRONG_DATE = "golden/t.a/0.9.2-cpu/golden.yaml:8: writer.built: expected 2026-03-18, the build date of jaxlib 0.9.2"


@pytest.mark.parametrize(
    "words",
    [
        *(("goldens", "verify"), ("goldens", "prune"), ("matrix", "--dry-run"), ("forecast",), ("policy", "check")),
        *(("matrix", "--no-cache"), ("matrix", "--writers", "0.12.0.1")),
    ],
)
@pytest.mark.parametrize("built", ["2024-01-01", "2099-01-01"])
def test_a_build_date_that_contradicts_the_calendar_is_refused(words, built, store, jaxexport, tmp_path):
    built_on(store, built)
    write_golden(store, manifest("t.b"))
    ended = jaxexport(*words)
    assert (ended.code, WRONG_DATE in ended.err) == (2, True), ended
    assert f"in the calendar, found {built}." in ended.err
    assert not (tmp_path / ".jaxexport").exists(), "nothing was run"


def converted_without_record(store: GoldenStore) -> None:
    write_golden(store, manifest("t.a", "0.6.2", converted_from=CONVERTED), files(jaxlib="0.9.2"))


def derived(store: GoldenStore) -> None:
    write_golden(store, manifest("t.a", "0.6.2", origin=DERIVED), files(jaxlib="0.9.2"))


def on_another_platform(store: GoldenStore) -> None:
    stored = own(FIRST_ORDER)
    store.write(options(platforms=("tpu",))(stored.manifest), stored.files())


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (converted_without_record, "converted_from: expected the record"),
        (derived, "writer: expected an artifact"),
        (on_another_platform, "platforms: expected cpu"),
        (lambda store: built_on(store, "2024-01-01"), r"writer\.built: expected 2026-03-18"),
    ],
    ids=["converted", "derived", "platform", "date"],
)
def test_pytest_checks_a_manifest_against_its_artifact(store, write, message):
    write(store)
    with pytest.raises(GoldenError, match=message):
        plan_here(Policy(), Selection(), RunOptions(), store.goldens(), release(NEWEST))


@pytest.mark.parametrize("words", [("goldens", "verify"), ("matrix", "--dry-run", "--readers", NEWEST)])
def test_a_writer_without_a_build_date_is_an_error(words, store, jaxexport):
    built_on(store, "2026-11-20", "0.13.0")
    ended = jaxexport(*words, code=2)
    assert "golden.yaml:7: writer.jaxlib: jaxlib 0.13.0 is not in the release calendar" in ended.err


def test_goldens_must_have_the_build_date_that_the_policy_gives(store):
    golden = built_on(store, "2026-11-20", "0.13.0")
    selection, options = Selection(readers=NEWEST), RunOptions(as_of=day("2026-11-22"))

    def planned(built: str) -> str:
        policy = Policy(releases=ExtraReleases({"0.13.0": JaxlibRelease(day(built))}))
        return plan_matrix(policy, selection, options, [golden]).cells[0].golden.id

    assert planned("2026-11-20") == golden.id
    with pytest.raises(GoldenError, match=r"expected 2026-11-19, the build date of jaxlib 0\.13\.0"):
        planned("2026-11-19")


@pytest.mark.parametrize(
    ("writer", "message"),
    [
        (
            "0.12.0.1",
            "writer: expected an artifact in a format that jax 0.12.0.1 writes, found format 5, 6, 7, 8 or 9.",
        ),
        ("0.6.2", "writer: expected an artifact in a format that jax 0.6.2 writes, found format 5, 6, 7, 8 or 9."),
        ("0.9.0", "writer: expected a module for StableHLO 1.13.4 or 1.13.0, as jaxlib 0.9.0 writes, found 1.13.7."),
    ],
)
@pytest.mark.parametrize("words", [("goldens", "verify"), ("matrix", "--dry-run"), ("matrix", "--no-cache")])
def test_a_golden_cannot_claim_another_writer(words, writer, message, store, jaxexport):
    write_golden(store, manifest("t.a", writer), files(jaxlib="0.9.2"))
    ended = jaxexport(*words)
    assert (ended.code, f"golden/t.a/{writer}-cpu/golden.yaml:7: {message}" in ended.err) == (2, True), ended


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rtol: null", "rtol:  null", "edited by hand: expected '  rtol: null', as pytest-jaxexport"),
        ("\nwriter:", "\n# moved by me\nwriter:", "golden.yaml:5: edited by hand: expected 'writer:', as"),
        (
            "out_shardings: []\n",
            "",
            "edited by hand: expected 'out_shardings: []', as pytest-jaxexport writes it, found",
        ),
    ],
)
def test_a_manifest_unlike_what_this_tool_writes_is_refused(store, old, new, message):
    golden = write_golden(store, manifest())
    verify.check_forms([golden])
    path = golden.folder / "golden.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(GoldenError) as raised:
        verify.check_forms(store.generations(golden.manifest.case))
    assert message in str(raised.value)


def test_files_of_a_call_deleted_from_the_manifest_are_reported(store):
    golden = write_golden(store, manifest(), {**files(), "call1.inputs.npz": b"", "call1.outputs.npz": b""})
    with pytest.raises(
        GoldenError, match=r"golden\.yaml: files: expected the call of call1\.inputs\.npz under `checks`"
    ):
        verify.check_forms([golden])


def test_all_manifests_here_are_as_this_tool_writes_them():
    goldens = GoldenStore(Path(__file__).parents[2] / "golden").goldens()
    assert len({golden.manifest.writer.id for golden in goldens}) > 4, "also those of earlier versions of this tool"
    verify.check_forms(goldens)

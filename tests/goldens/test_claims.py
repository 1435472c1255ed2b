"""What a golden claims of itself: its own bytes and the listed record of a conversion decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from making import ARTIFACTS, NEWEST, files, manifest, release, write_golden, writer

from export_core.artifact import read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.goldens import Golden, GoldenError, GoldenStore, Origin, verify
from export_core.goldens.conversion_record import ConversionRecord, dump_record
from export_core.goldens.manifest import ConvertedFrom, Manifest
from export_core.goldens.store import ARTIFACT, sha256
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions, Selection
from export_core.releases import load_calendar
from export_core.run.session import plan_here

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
    """A golden of a converted artifact with its record, of which some fields are changed."""
    record = ConversionRecord("converted", "", sha256(artifact), CONVERTED, "why")
    record = msgspec.structs.replace(record, **changes)
    content = {**files(jaxlib="0.9.2"), ARTIFACT: artifact, RECORD: dump_record(record)}
    return write_golden(store, manifest("t.a", "0.9.2", converted_from=CONVERTED), content)


def refused(golden: Golden) -> str:
    with pytest.raises(GoldenError) as raised:
        verify.check_claims([golden], load_calendar())
    return str(raised.value)


def test_a_conversion_with_its_record_counts(store):
    verify.check_claims([converted(store)], load_calendar())


def test_a_conversion_without_its_record_does_not_count(store):
    golden = write_golden(store, manifest("t.a", "0.9.2", converted_from=CONVERTED))
    assert f"converted_from: expected the record {RECORD} of the conversion under `files`, found none" in refused(
        golden
    )


@pytest.mark.parametrize(
    "changes",
    [{"sha256": sha256(ORIGINAL)}, {"converted_from": msgspec.structs.replace(CONVERTED, reader="0.10.0")}],
    ids=["another artifact", "another reader"],
)
def test_the_record_of_another_conversion_does_not_count(store, changes):
    assert "found the record of another artifact" in refused(converted(store, **changes))


def test_an_artifact_as_its_writer_wrote_it_is_not_converted_whatever_its_record_says(store):
    golden = converted(store, ORIGINAL)
    assert "expected a converted artifact, found one as jaxlib 0.9.2 writes it" in refused(golden)


def test_an_artifact_is_not_converted_from_itself(store):
    origin = msgspec.structs.replace(CONVERTED, sha256=sha256(REWRITTEN))
    golden = converted(store, converted_from=origin)
    made = msgspec.structs.replace(golden.manifest, converted_from=origin)
    assert "expected a converted artifact" in refused(write_golden(store, made, golden.files()))


def test_a_record_that_cannot_be_read_is_an_error(store):
    golden = converted(store)
    content = {**golden.files(), RECORD: b"{"}
    assert "not the record of a conversion" in refused(write_golden(store, golden.manifest, content))


@pytest.mark.parametrize(
    "words",
    [("goldens", "verify"), ("plan",), ("matrix", "--no-cache"), ("forecast",), ("can-i-deploy", "t.a", "--to", "x")],
)
@pytest.mark.parametrize(
    ("claims", "jaxlib", "message"),
    [
        ({"converted_from": CONVERTED}, "0.9.2", "converted_from: expected the record"),
        ({"origin": DERIVED}, "0.6.2", "writer: expected an artifact in a format that jax 0.6.2 writes, found another"),
    ],
    ids=["converted", "derived"],
)
def test_no_command_believes_what_the_bytes_contradict(store, jaxexport, tmp_path, words, claims, jaxlib, message):
    write_golden(store, manifest("t.a", jaxlib, **claims), files(jaxlib="0.9.2"))
    (tmp_path / "export_compat.yaml").write_text("deployed: [{name: x, jaxlib: 0.10.2}]\n")
    ended = jaxexport(*words)
    assert (ended.code, message in ended.err) == (2, True), ended


@pytest.mark.parametrize("claims", [{"converted_from": CONVERTED}, {"origin": DERIVED}], ids=["converted", "derived"])
def test_pytests_own_replay_does_not_believe_it_either(store, claims):
    golden = write_golden(store, manifest("t.a", "0.6.2", **claims), files(jaxlib="0.9.2"))
    with pytest.raises(GoldenError, match=r"converted_from: expected the record|writer: expected an artifact"):
        plan_here(Policy(), Selection(), RunOptions(), [golden], release(NEWEST))


@pytest.mark.parametrize(("jaxlib", "is_known"), [("0.9.0", True), ("0.8.1", False), ("0.9.1", False)])
def test_jaxs_own_golden_has_the_writer_that_stands_for_the_build_of_its_day(monkeypatch, jaxlib, is_known):
    artifact = read_bytes(ORIGINAL)
    day = load_calendar().built("0.9.0")
    monkeypatch.setattr(verify, "days_of_jax_goldens", lambda: {sha256(artifact.module.serialized()): [day]})
    assert verify.is_jax_golden(artifact, writer(jaxlib)) == is_known


def test_the_goldens_of_jax_are_listed_by_their_hashes():
    table = verify.days_of_jax_goldens()
    assert len(table) > 140
    assert all(len(module) == 64 and days for module, days in table.items())


OWN = GoldenStore(Path(__file__).parents[2] / "golden")
FIRST_ORDER, REDUCED = "test_derivatives.test_first_order", "test_collectives.test_reduced"
ANYWHERE = "test_platforms.test_run_on_another_platform_all_the_same"


def own(case: str) -> Golden:
    """The newest golden of a case of this project."""
    return OWN.generations(f"tests.compat.{case}")[-1]


def options(**changes: Any) -> Callable[[Manifest], Manifest]:
    return lambda made: msgspec.structs.replace(made, options=msgspec.structs.replace(made.options, **changes))


def changed(**changes: Any) -> Callable[[Manifest], Manifest]:
    return lambda made: msgspec.structs.replace(made, **changes)


def signature(**changes: Any) -> Callable[[Manifest], Manifest]:
    return lambda made: msgspec.structs.replace(made, signature=msgspec.structs.replace(made.signature, **changes))


def without_derivatives(made: Manifest) -> Manifest:
    return options(vjp_order=0)(msgspec.structs.replace(made, checks=()))


@pytest.mark.parametrize(
    ("case", "change", "message"),
    [
        (
            FIRST_ORDER,
            options(platforms=("tpu",)),
            "options.platforms: expected cpu, as in artifact.jaxexport, found tpu.",
        ),
        (FIRST_ORDER, options(platforms=("cpu", "tpu")), "options.platforms: expected cpu, as in"),
        (FIRST_ORDER, options(mesh={"x": 2}), "options.mesh: expected 1 devices, as in artifact.jaxexport, found 2"),
        (FIRST_ORDER, changed(custom_calls=("a",)), "custom_calls: expected none, as in artifact.jaxexport, found a."),
        (FIRST_ORDER, signature(inputs=("int8[7]",)), "signature.inputs: expected float32[2,3], float32[3,2], as in"),
        (FIRST_ORDER, signature(outputs=()), "signature.outputs: expected float32[2,2], as in"),
        (FIRST_ORDER, signature(in_tree="*"), "signature.in_tree: expected PyTreeDef"),
        (FIRST_ORDER, signature(out_tree="(*,)"), "signature.out_tree: expected PyTreeDef"),
        (FIRST_ORDER, without_derivatives, "options.vjp_order: expected 1, as in artifact.jaxexport, found 0."),
        (FIRST_ORDER, changed(checks=()), "checks: expected calls of derivatives [1], as in artifact.jaxexport, found"),
        (REDUCED, changed(out_shardings=()), "out_shardings: expected 2, as in artifact.jaxexport, found 0."),
        (ANYWHERE, options(disabled_checks={}), "options.disabled_checks: expected platform, as in"),
    ],
)
def test_what_a_golden_says_of_its_artifact_is_read_from_the_bytes(store, case, change, message):
    stored = own(case)
    verify.check_claims([stored], load_calendar())
    store.write(change(stored.manifest), stored.files())
    assert message in refused(*store.goldens())


def test_pytests_own_replay_believes_no_golden_that_leaves_it(store):
    stored = own(FIRST_ORDER)
    store.write(options(platforms=("tpu",))(stored.manifest), stored.files())
    with pytest.raises(GoldenError, match="platforms: expected cpu"):
        plan_here(Policy(), Selection(), RunOptions(), store.goldens(), release(NEWEST))

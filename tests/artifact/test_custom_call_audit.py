from __future__ import annotations

from types import SimpleNamespace

import pytest
from kept import DATA, jax_goldens

from export_core.artifact import CustomCall, DisabledCheck, read, read_bytes
from export_core.artifact.audit import audit, describe, judge_calls, unread_findings
from export_core.artifact.envelope.encode import encode
from export_core.artifact.unread import UNKNOWN, Unread
from export_core.releases.stable_targets import measured_release, stable_targets


def _call(target, **more):
    return CustomCall(target, 1, False, more.pop("config", ""), "main", "", **more)


def test_a_target_that_both_lists_have_is_stable():
    artifact = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    found = audit(artifact, stable_targets("0.12.0.1"), stable_targets("0.11.0"))
    assert {(f.target, f.standing, f.ok) for f in found} == {
        ("lapack_spotrf_ffi", "stable", True),
        ("lapack_strsm_ffi", "stable", True),
    }
    assert sum(f.count for f in found) == sum(call.count for call in artifact.custom_calls)


def test_an_unlisted_target_fails_with_its_place_and_advice():
    (finding,) = judge_calls([_call("my_kernel")], frozenset(), writer="jaxlib 0.12.0.1")
    assert (finding.standing, finding.ok) == ("unlisted", False)
    assert "called in @main" in finding.message
    assert "allow: {my_kernel:" in finding.advice


def test_an_unlisted_target_fails_where_no_release_is_known_either():
    (finding,) = judge_calls([_call("my_kernel")], None)
    assert (finding.standing, finding.ok, finding.advice) == ("unlisted", False, "Name the release that wrote it.")
    assert "was checked against no list" in finding.message


def test_an_unlisted_target_names_the_release_whose_list_lacks_it():
    names = {"writer": "jaxlib 0.9.2", "reader": "jaxlib 0.12.0.1"}
    (by_writer,) = judge_calls([_call("my_kernel")], frozenset(), frozenset(), **names)
    (by_reader,) = judge_calls([_call("my_kernel")], None, frozenset(), **names)
    assert "my_kernel (custom call) is not guaranteed stable by jaxlib 0.9.2;" in by_writer.message
    assert "my_kernel (custom call) is not guaranteed stable by jaxlib 0.12.0.1;" in by_reader.message


def test_a_target_listed_by_one_of_two_releases_only_is_not_stable():
    (new,) = judge_calls([_call("my_kernel")], frozenset(), {"my_kernel"})
    (gone,) = judge_calls([_call("my_kernel")], {"my_kernel"}, frozenset())
    assert [(new.standing, new.ok), (gone.standing, gone.ok)] == [("unlisted", False), ("dropped", False)]


def test_a_dropped_target_that_the_policy_allows_is_fine_and_said():
    (finding,) = judge_calls([_call("mine")], {"mine"}, frozenset(), {"mine": "we ship it"}, "0.9.2", "0.12.0.1")
    assert (finding.standing, finding.ok, finding.advice) == ("dropped", True, "Allowed: we ship it")
    assert "guaranteed by 0.9.2, and 0.12.0.1 no longer guarantees it" in finding.message


def test_a_listed_target_is_promised_to_artifacts_of_jax_export_only():
    artifact = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    bare = read_bytes(artifact.envelope.mlir_module_serialized)
    messages = [
        {f.message.partition(") ")[2] for f in audit(one, stable_targets("0.12.0.1"))} for one in (artifact, bare)
    ]
    listed = "is listed as stable, which counts for artifacts of jax.export only."
    assert messages == [{"is guaranteed stable."}, {listed}]
    assert "is guaranteed stable." in judge_calls([_call("mine")], {"mine"})[0].message


def test_a_finding_shows_the_first_twenty_places_and_counts_all_calls():
    calls = [_call("my_kernel")._replace(location=f"step_{number}", count=2) for number in range(25)]
    (finding,) = judge_calls(calls, frozenset())
    assert finding.where == tuple(f"@main at step_{number}" for number in range(20))
    assert finding.count == 50
    assert finding.message.endswith("called in @main at step_0.")


def test_an_unread_part_is_shown_in_its_first_place():
    part = Unread("tensor.unheard", "operation", UNKNOWN, "is in no known version")
    places = [(f"place {number}", part) for number in range(25)]
    (finding,) = unread_findings(SimpleNamespace(unread=places), {})
    assert finding.message.endswith("is in no known version; found in place 0.")
    assert finding.where == tuple(f"place {number}" for number in range(20))
    assert (finding.ok, finding.count) == (False, 0)


def test_the_policy_may_allow_a_target_with_a_reason():
    (finding,) = judge_calls([_call("my_kernel")], frozenset(), allow={"my_kernel": "we build it"})
    assert (finding.standing, finding.ok) == ("allowed", True)
    assert "we build it" in finding.message


def test_a_target_that_the_reader_dropped_is_said():
    artifact = read(DATA / "0.4.30" / "cholesky.jaxexport")
    found = audit(artifact, stable_targets("0.4.30"), stable_targets("0.12.0.1"), writer="0.4.30", reader="0.12.0.1")
    dropped = [f for f in found if f.target == "lapack_spotrf"]
    assert [(f.standing, f.ok) for f in dropped] == [("dropped", False)]
    assert "guaranteed by 0.4.30, and 0.12.0.1 no longer guarantees it" in dropped[0].message


def test_what_the_serializer_adds_for_shardy_is_fine():
    (finding,) = judge_calls([_call("xla.sdy.FuncResultSharding")], stable_targets("0.8.1"))
    assert (finding.standing, finding.ok) == ("serializer", True)


def test_disabled_checks_are_shown_and_change_nothing():
    artifact = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    disabled = artifact.envelope._replace(disabled_checks=(DisabledCheck("custom_call", "my_kernel"),))
    found = audit(read_bytes(encode(disabled)), frozenset())
    assert [(f.standing, f.ok) for f in found] == [("unlisted", False)] * 2 + [("disabled check", True)]
    assert (found[-1].target, found[-1].count) == ("my_kernel", 0)


def test_a_disabled_check_without_a_target_is_named_by_its_kind():
    artifact = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    disabled = artifact.envelope._replace(disabled_checks=(DisabledCheck("platform"),))
    assert audit(read_bytes(encode(disabled)), frozenset())[-1].target == "platform"


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("lapack_spotrf_ffi", "LAPACK routine"),
        ("__cudnn$convForward", "cuDNN call"),
        ("xla_python_cpu_callback", "Python callback"),
        ("xla_ffi_python_gpu_callback", "Python callback"),
        ("__gpu$xla.gpu.triton", "Triton kernel"),
        ("somebody_else", "custom call"),
    ],
)
def test_targets_are_named_as_what_they_are(target, kind):
    assert str(describe(_call(target, config="140234567"))) == kind


@pytest.mark.skipif(not jax_goldens(), reason="no jax is installed here to take goldens from")
def test_mosaic_payloads_give_their_own_version():
    versions = {}
    for name, golden in jax_goldens().items():
        for call in read_bytes(golden["mlir_module_serialized"], name).custom_calls:
            payload = describe(call)
            if payload.version is not None:
                versions.setdefault(call.target, set()).add(payload.version)
    assert set(versions) == {"tpu_custom_call", "mosaic_gpu_v2"}


@pytest.mark.skipif(not jax_goldens(), reason="no jax is installed here to take goldens from")
def test_of_payloads_of_several_versions_the_first_is_shown():
    calls = [
        call
        for golden in jax_goldens().values()
        for call in read_bytes(golden["mlir_module_serialized"]).custom_calls
        if call.target == "tpu_custom_call"
    ]
    old, new = (choose(calls, key=lambda call: describe(call).version or 0) for choose in (min, max))
    assert describe(old) != describe(new)
    shown = [judge_calls(both, frozenset())[0][3:5] for both in ([old, new], [new, old])]
    assert shown == [describe(old), describe(new)]


def test_the_lists_are_those_of_the_releases():
    assert len(stable_targets("0.12.0.1")) == 88
    assert len(stable_targets("0.4.30")) == 58
    assert "__gpu$xla.gpu.triton" in stable_targets("0.4.35")
    assert "__gpu$xla.gpu.triton" not in stable_targets("0.4.36")


def test_an_unmeasured_release_has_the_list_before_it():
    assert measured_release("0.4.32") == "0.4.31"
    assert measured_release("0.4.29") == "0.4.28"
    assert measured_release("0.13.0.dev20270101") == "0.12.0.1"
    assert measured_release("0.4.1") == "0.4.18"

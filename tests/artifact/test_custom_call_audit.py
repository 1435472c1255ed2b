from __future__ import annotations

import pytest
from kept import DATA, jax_goldens

from export_core.artifact import CustomCall, DisabledCheck, read, read_bytes
from export_core.artifact.audit import audit, judge_calls
from export_core.artifact.envelope.encode import encode
from export_core.artifact.payloads import describe
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

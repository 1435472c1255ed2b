from types import SimpleNamespace

import pytest
from stored_artifacts import DATA, jax_goldens

from export_core.artifact import CustomCall, DisabledCheck, read, read_bytes
from export_core.artifact.audit import audit, belongs, describe, judge_calls, unread_findings
from export_core.artifact.envelope.encode import encode
from export_core.artifact.unread import UNKNOWN, Unread
from export_core.releases.stable_targets import measured_release, stable_targets


def _call(target, **more):
    return CustomCall(target, 1, False, more.pop("config", ""), "main", "", **more)


def test_a_target_that_writer_and_reader_guarantee_is_stable():
    artifact = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    found = audit(artifact, stable_targets("0.12.0.1"), stable_targets("0.11.0"))
    assert {(f.target, f.standing, f.ok) for f in found} == {
        ("lapack_spotrf_ffi", "stable", True),
        ("lapack_strsm_ffi", "stable", True),
    }
    assert sum(f.count for f in found) == sum(call.count for call in artifact.custom_calls)


OLD, NEW = "jaxlib 0.9.2", "jaxlib 0.12.0.1"
MINE = frozenset({"mine"})
GONE = (
    "mine (custom call) was guaranteed by jaxlib 0.9.2, and jaxlib 0.12.0.1 no longer guarantees it; called in @main."
)
NOT_STABLE = "mine (custom call) is not guaranteed stable by"


@pytest.mark.parametrize(
    ("lists", "allow", "judged", "message", "advice"),
    [
        ((frozenset(),), {}, ("unlisted", False), f"{NOT_STABLE} {OLD}; called in @main.", "allow: {mine:"),
        ((None,), {}, ("unchecked", False), "its writer is not known; called in @main.", "Name the release that"),
        ((None, MINE), {}, ("unchecked", False), "its writer is not known; called in @main.", "Name the release that"),
        ((frozenset(), frozenset()), {}, ("unlisted", False), f"{NOT_STABLE} {OLD};", "Avoid it"),
        ((None, frozenset()), {}, ("unlisted", False), f"{NOT_STABLE} {NEW};", "Avoid it"),
        ((frozenset(), MINE), {}, ("unlisted", False), f"{NOT_STABLE} {OLD};", "Avoid it"),
        ((MINE, frozenset()), {}, ("dropped", False), GONE, "Export the function again with a release"),
        ((MINE, frozenset()), {"mine": "we ship it"}, ("dropped", True), GONE, "Allowed: we ship it"),
        ((frozenset(),), {"mine": "we build it"}, ("allowed", True), "by no release; allowed: we build it", ""),
        ((MINE,), {}, ("stable", True), "mine (custom call) is guaranteed stable.", ""),
        ((MINE, MINE), {}, ("stable", True), "mine (custom call) is guaranteed stable.", ""),
    ],
)
def test_a_target_is_judged_by_the_lists_of_writer_and_reader(lists, allow, judged, message, advice):
    writer, reader = (*lists, None)[:2]
    (finding,) = judge_calls([_call("mine")], writer, reader, allow, OLD, NEW)
    assert (finding.standing, finding.ok) == judged
    assert message in finding.message
    assert advice in finding.advice
    assert bool(advice) == bool(finding.advice)


def test_a_stable_target_of_a_bare_module_is_not_promised():
    artifact = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    bare = read_bytes(artifact.envelope.mlir_module_serialized)
    messages = [
        {f.message.partition(") ")[2] for f in audit(one, stable_targets("0.12.0.1"))} for one in (artifact, bare)
    ]
    listed = "is listed as stable, which counts for artifacts of jax.export only."
    assert messages == [{"is guaranteed stable."}, {listed}]


def test_a_finding_shows_20_locations_and_counts_all_calls():
    calls = [_call("my_kernel")._replace(location=f"step_{number}", count=2) for number in range(25)]
    (finding,) = judge_calls(calls, frozenset())
    assert finding.where == tuple(f"@main at step_{number}" for number in range(20))
    assert finding.count == 50
    assert finding.message.endswith("called in @main at step_0.")


def test_an_unknown_operation_shows_at_most_20_locations():
    part = Unread("tensor.unheard", "operation", UNKNOWN, "is in no known version")
    places = [(f"place {number}", part) for number in range(25)]
    (finding,) = unread_findings(SimpleNamespace(unread=places), {})
    assert finding.message.endswith("is in no known version; found in place 0.")
    assert finding.where == tuple(f"place {number}" for number in range(20))
    assert (finding.ok, finding.count) == (False, 0)


def test_a_target_that_the_reader_dropped_is_refused():
    artifact = read(DATA / "0.4.30" / "cholesky.jaxexport")
    found = audit(artifact, stable_targets("0.4.30"), stable_targets("0.12.0.1"), writer="0.4.30", reader="0.12.0.1")
    dropped = [f for f in found if f.target == "lapack_spotrf"]
    assert [(f.standing, f.ok) for f in dropped] == [("dropped", False)]
    assert "guaranteed by 0.4.30, and 0.12.0.1 no longer guarantees it" in dropped[0].message


def test_targets_that_the_serializer_adds_are_allowed():
    (finding,) = judge_calls([_call("xla.sdy.FuncResultSharding")], stable_targets("0.8.1"))
    assert (finding.standing, finding.ok) == ("serializer", True)


def test_disabled_checks_are_listed_but_do_not_fail():
    artifact = read(DATA / "0.12.0.1" / "cholesky.jaxexport")
    checks = (DisabledCheck("custom_call", "my_kernel"), DisabledCheck("platform"))
    found = audit(read_bytes(encode(artifact.envelope._replace(disabled_checks=checks))), frozenset())
    assert [(f.standing, f.ok) for f in found] == [("unlisted", False)] * 2 + [("disabled check", True)] * 2
    assert [(f.target, f.count) for f in found[2:]] == [("my_kernel", 0), ("platform", 0)]


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
def test_each_target_is_described_by_its_kind(target, kind):
    assert str(describe(_call(target, config="140234567"))) == kind


@pytest.mark.skipif(not jax_goldens(), reason="no jax is installed here to take goldens from")
def test_the_mosaic_version_is_read_from_the_first_small_payload(monkeypatch):
    calls: dict[str, list[CustomCall]] = {}
    for golden in jax_goldens().values():
        for call in read_bytes(golden["mlir_module_serialized"]).custom_calls:
            if describe(call).version is not None:
                calls.setdefault(call.target, []).append(call)
    assert set(calls) == {"tpu_custom_call", "mosaic_gpu_v2"}
    old, new = (choose(calls["tpu_custom_call"], key=lambda call: describe(call).version) for choose in (min, max))
    assert describe(old) != describe(new)
    shown = [judge_calls(both, frozenset())[0][3:5] for both in ([old, new], [new, old])]
    assert shown == [describe(old), describe(new)]
    (gpu, *_) = calls["mosaic_gpu_v2"]
    for call, size in ((old, len(old.backend_config)), (gpu, len(gpu.backend_config["module"]))):
        for limit in (size, size - 1):
            monkeypatch.setattr("export_core.artifact.audit.MAX_PAYLOAD", limit)
            assert (describe(call).version is not None) == (limit == size)
    monkeypatch.undo()
    monkeypatch.setattr("export_core.artifact.audit.MAX_ATTRIBUTES", 0)
    assert describe(gpu).version is None


def test_each_release_has_its_measured_stable_targets():
    assert len(stable_targets("0.12.0.1")) == 88
    assert len(stable_targets("0.4.30")) == 58
    assert "__gpu$xla.gpu.triton" in stable_targets("0.4.35")
    assert "__gpu$xla.gpu.triton" not in stable_targets("0.4.36")


def test_an_unmeasured_release_has_the_targets_of_a_measured_release():
    assert measured_release("0.4.32") == "0.4.31"
    assert measured_release("0.4.29") == "0.4.28"
    assert measured_release("0.13.0.dev20270101") == "0.12.0.1"
    assert measured_release("0.4.1") == "0.4.18"


@pytest.mark.parametrize(("target", "on_cpu"), [("ApproxTopK", True), ("Qr", False), ("lapack_sgeqrf_ffi", True)])
def test_a_target_belongs_to_platforms_that_run_it(target, on_cpu):
    assert belongs(target, "cpu") is on_cpu
    assert belongs(target, "tpu") is (not target.startswith("lapack"))

"""The forecast of custom calls on each platform, from the bytes of an artifact alone."""

from pathlib import Path

from export_core.artifact import read
from export_core.artifact.audit import belongs, foreseen
from export_core.base.platforms import PLATFORMS
from export_core.features.inspect.artifact_facts import describe
from export_core.features.inspect.audit_screen import audit_text
from export_core.features.inspect.screen import screen
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import shipped_entries
from export_core.releases.stable_targets import stable_targets

GOLDEN = Path(__file__).parents[2] / "golden"


def stored(case: str, writer: str = "0.12.0.1-cpu"):
    return read(GOLDEN / f"tests.compat.{case}" / writer / "artifact.jaxexport")


def notes(artifact, reader="0.12.0.1"):
    stable = stable_targets(reader)
    return {name: foreseen(artifact, name, stable, f"jaxlib {reader}").note for name in PLATFORMS}


def test_the_note_on_a_platform_lists_its_calls_or_its_refusal():
    assert notes(stored("test_accelerators.test_lu")) == {
        "cpu": "refused: it was exported for cuda, rocm, tpu",
        "cuda": "calls cu_lu_pivots_to_permutation, cusolver_getrf_ffi, all promised by jaxlib 0.12.0.1",
        "rocm": "calls hip_lu_pivots_to_permutation, hipsolver_getrf_ffi, all promised by jaxlib 0.12.0.1",
        "tpu": "calls LuDecomposition, all promised by jaxlib 0.12.0.1",
    }


def test_a_target_that_the_reader_does_not_promise_is_named():
    cholesky = stored("test_accelerators.test_cholesky")
    assert notes(cholesky, "0.6.2")["cuda"] == "calls cusolver_potrf_ffi, which jaxlib 0.6.2 does not promise to have"
    assert notes(cholesky)["tpu"] == "makes no custom call"


def test_random_bits_call_a_gpu_target_only_when_requested():
    assert notes(stored("test_accelerators.test_random_bits"))["cuda"] == "makes no custom call", (
        "unless it is asked for"
    )
    found = notes(stored("test_targets.test_gpu_random_bits"))
    assert found["cuda"] == "calls cu_threefry2x32_ffi, all promised by jaxlib 0.12.0.1"
    assert found["rocm"] == "calls hip_threefry2x32_ffi, all promised by jaxlib 0.12.0.1"


def test_the_note_says_that_the_platform_check_is_disabled():
    found = stored("test_platforms.test_run_on_another_platform_all_the_same")
    assert notes(found)["cpu"] == "not exported for it, and the check is off; makes no custom call"


def test_each_stable_target_is_of_one_platform_or_of_all():
    targets = sorted(stable_targets("0.12.0.1"))
    owners = {target: [name for name in PLATFORMS if belongs(target, name)] for target in targets}
    assert targets
    assert {target: names for target, names in owners.items() if len(names) not in (1, len(PLATFORMS))} == {}


def test_inspect_and_audit_print_calls_forecast_for_platforms():
    artifact, terms = stored("test_accelerators.test_qr"), Terms(shipped_entries())
    text = screen(describe(artifact, terms))
    newest = terms.releases[-1].jaxlib
    assert f"cuda: calls cusolver_geqrf_ffi, cusolver_orgqr_ffi, all promised by jaxlib {newest}" in text
    ok, audited = audit_text(terms, None, (), artifact)
    assert ok
    assert (
        f"note  on tpu: calls ProductOfElementaryHouseholderReflectors, Qr, all promised by jaxlib {newest}" in audited
    )

"""Failures that an accelerator's compiler has in the writer's own release too: they break no promise."""

import msgspec
import pytest
from making import judged_run, release, result, rules

from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.matrix.result import Control
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget, KnownFailure
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.report.view import view
from export_core.report.wording import headline, window_line

INT64 = "JaxRuntimeError: UNIMPLEMENTED: While lowering %dot.3, an integer dot of 64 bits is not supported"
TOO_LARGE = "JaxRuntimeError: RESOURCE_EXHAUSTED: Used 74.58G of 15.75G hbm. Exceeded hbm capacity by 58.83G."
DEVICE = {"platform": "tpu", "mode": Mode.COMPILE, "device": "TPU v5 lite"}
FAILED = {"stage": Stage.COMPILE, "message": INT64}


def compiled(reader, case="t.dot"):
    return result(Verdict.COMPILED, case=case, reader=reader, stage=Stage.COMPILE, **DEVICE)


def failed(reader, verdict=Verdict.ERROR, case="t.dot", **changes):
    return result(verdict, Judgement.BROKEN, case=case, reader=reader, **{**DEVICE, **FAILED, **changes})


WORKS = compiled("0.10.2", "t.works")


def finding_of(run, case="t.dot"):
    return next(one for one in view(run).findings if one.results and one.results[0].case == case)


def test_a_limit_of_the_device_breaks_no_promise():
    run = judged_run([failed("0.9.2"), failed("0.10.2"), WORKS])
    finding = finding_of(run)
    assert (finding.title, len(finding.results)) == ("DEVICE LIMIT", 2)
    assert {(one.judgement, one.promised) for one in finding.results} == {(Judgement.OUTSIDE, False)}
    assert finding.sentence == (
        "2 cells failed in stage compile on tpu: written by 0.9.2, read by 0.9.2, 0.10.2. The compiler for TPU v5 lite "
        "does not do this, in jaxlib 0.9.2 (built 2026-03-18) either, which wrote it. So no release breaks a promise."
    )
    assert "--target" in dict(finding.details)["to do"]
    assert "bisect" not in finding.text
    assert "report it to JAX" not in finding.text
    assert run.summary.exit_code == 0
    assert headline(run.summary)[0].startswith("KEPT: the 1 promised cell")
    assert "but no promise covers what the device cannot do" in window_line(finding.results[0])


@pytest.mark.parametrize(
    ("known", "title"),
    [
        ("tpu-int64-products", "DEVICE LIMIT"),  # of each release
        ("float8-dot-algorithm", "BROKEN PROMISE"),  # of some releases
        ("mosaic-gpu-environment", "BROKEN PROMISE"),  # of what a custom call lacks
    ],
)
def test_only_an_issue_of_every_release_can_be_a_device_limit(known, title):
    run = judged_run([failed(reader, upstream=known) for reader in ("0.9.2", "0.10.2")] + [WORKS])
    assert finding_of(run).title == title


def test_a_cause_says_that_a_program_is_too_large_for_a_device():
    run = judged_run([failed(reader, message=TOO_LARGE) for reader in ("0.9.2", "0.10.2")])
    assert "The program does not fit TPU v5 lite, in jaxlib 0.9.2" in finding_of(run).sentence


def test_a_run_with_only_device_limits_exits_with_3():
    assert judged_run([failed("0.9.2"), failed("0.10.2")]).summary.exit_code == 3


def test_a_failure_that_the_writers_release_does_not_have_is_broken():
    run = judged_run([compiled("0.9.2"), failed("0.10.2")])
    finding = finding_of(run)
    assert (finding.title, run.summary.exit_code) == ("BROKEN PROMISE", 1)
    assert "jaxlib 0.9.2 (built 2026-03-18), which wrote it, compiles it for TPU v5 lite." in finding.sentence


def test_a_failure_is_broken_if_its_writer_was_not_run():
    run = judged_run([failed("0.10.2")])
    finding = finding_of(run)
    assert (finding.title, run.summary.exit_code) == ("BROKEN PROMISE", 1)
    assert "compiles it for TPU v5 lite is not known: it was not run." in finding.sentence
    assert dict(finding.details)["to do"].startswith(
        "Run the release that wrote it for this device too (`--readers 0.9.2`)"
    )


@pytest.mark.parametrize(
    ("own", "later"),
    [
        ({"message": "another reason"}, {}),
        ({"message": TOO_LARGE}, {}),
        ({"stage": Stage.LOWER}, {}),
        # The second line alone says what the compiler cannot do.
        ({"message": "UNIMPLEMENTED:\none thing"}, {"message": "UNIMPLEMENTED:\nanother thing"}),
        ({"device": "TPU v4"}, {}),
        ({"platform": "cuda"}, {}),
        ({"verdict": Verdict.NOT_RUN, "stage": Stage.ENVIRONMENT}, {}),
        ({}, {"stage": Stage.DESERIALIZE}),
        ({"verdict": Verdict.CRASH}, {"verdict": Verdict.CRASH}),  # a crash does not say that it cannot be done
        ({"verdict": Verdict.TIMEOUT}, {"verdict": Verdict.TIMEOUT}),
        *[
            ({"message": message}, {"message": message})
            for message in (
                "No FFI handler registered for mine on a platform TPU",
                "Custom call target x was not found",
            )
        ],  # what a process lacks is no limit of the device
    ],
)
def test_a_cell_is_broken_if_the_writer_failed_differently(own, later):
    run = judged_run([failed("0.9.2", **own), failed("0.10.2", **later)])
    assert run.results[-1].judgement is Judgement.BROKEN
    assert run.results[-1].control is not Control.ALIKE


def test_a_golden_written_on_the_device_is_not_excused():
    own, later = (
        msgspec.structs.replace(one, mode=Mode.RUN, writer=msgspec.structs.replace(one.writer, platform="tpu"))
        for one in (failed("0.9.2"), failed("0.10.2"))
    )
    assert {one.judgement for one in judged_run([own, later]).results} == {Judgement.BROKEN}


def test_a_device_limit_is_owed_in_a_deployment_target():
    target = DeploymentTarget(name="pods", jaxlib="0.10.2", platform="tpu")
    run = judged_run([failed("0.9.2"), failed("0.10.2")], Policy(deployed=(target,)))
    assert [one.judgement for one in run.results] == [Judgement.OUTSIDE, Judgement.OWED]
    assert run.summary.exit_code == 1
    owed = next(one for one in view(run).findings if one.title == "OWED")
    assert "which wrote it. So no release breaks a promise." in owed.sentence


def test_a_listed_device_limit_stays_known():
    """Runs without the writer's release need the entry, so it is not stale."""
    entry = KnownFailure(
        cases=("t.dot",), writers=("*",), readers=("*",), platforms=("tpu",),
        verdict=Verdict.ERROR, stage=Stage.COMPILE, message="64 bits", reason="r", owner="o", issue="https://example.org/1",
        added=release("0.10.2").built, permanent=True, approver="a",
    )  # fmt: skip
    run = judged_run([failed("0.9.2"), failed("0.10.2")], rules(known=[entry]))
    assert {one.judgement for one in run.results} == {Judgement.KNOWN}
    assert not run.summary.stale


def test_judging_again_finds_the_same_device_limits():
    run = judged_run([failed("0.9.2"), failed("0.10.2"), WORKS])
    assert judged_run(run.results).results == run.results
    alone = judged_run([run.results[1]])
    assert alone.results[0].judgement is Judgement.BROKEN, (
        "what an earlier run has shown is shown again, or not believed"
    )

"""Why a cell fails: the cause of each kind, what to do about it, and what would have shown it earlier."""

import datetime
import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from export_core.features.convert.fixed_by_conversion import remedy
from export_core.features.why.choice import Asked, Choice, WhyError, choose
from export_core.features.why.explain import explanation
from export_core.features.why.explain.explanation import (
    Explanation,
    FailureCause,
    Reference,
    explain,
    explanation_lines,
    result_of,
)
from export_core.goldens import Golden, GoldenStore
from export_core.judge import Result, judge
from export_core.knowledge import conversion_may_help, forecast
from export_core.matrix import Verdict
from export_core.matrix.forecasts import in_words
from export_core.matrix.result import Control, new_result
from export_core.matrix.verdicts import DEVICE_LIMIT
from export_core.policy.load_check import find_reader
from export_core.policy.project_terms import terms_of
from export_core.policy.run_options import RunOptions
from export_core.readers.worker.protocol import Stage

ROOT = Path(__file__).parents[3]
DERIVATIVE = "tests.compat.test_derivatives.test_first_order"
CHOLESKY = "tests.compat.test_linear_algebra.test_cholesky"


@functools.cache
def goldens() -> list[Golden]:
    return GoldenStore(ROOT / "golden").goldens()


@functools.cache
def choice_of(case: str, writer: str, reader: str, platform: str = "cpu") -> Choice:
    run = RunOptions(goldens=ROOT / "golden", policy_file=POLICY, as_of=datetime.date(2026, 11, 21))
    read_once = goldens()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GoldenStore, "goldens", lambda _: read_once)
        return choose(Asked(case=case, writer=writer, reader=reader, platform=platform, run=run))


def explained(case: str, writer: str, reader: str, verdict: Verdict = Verdict.ERROR, **changes: Any) -> Explanation:
    choice = choice_of(case, writer, reader)
    return explain(choice, judged(choice, verdict, **changes))


def judged(choice: Choice, verdict: Verdict, **changes: Any) -> Result:
    values = {"stage": Stage.DESERIALIZE, "message": "what jax says", **changes}
    return judge(new_result(choice.cell, verdict=verdict, **values), choice.cell.golden, choice.options.policy)


NEWEST = ("0.11.0", "0.12.0.1")
FAR = {"stage": Stage.COMPARE, "max_abs_error": 0.5, "max_noise_error": 30.0}
NO_CALL = {"stage": Stage.COMPILE, "message": "No registered implementation for custom call to my_kernel for Host"}
SEGV = {"stage": Stage.RUN, "signal": 11, "message": "died by signal 11 (SIGSEGV) in stage run"}
POLICY = str(ROOT / "export_compat.yaml")
EXPIRED = (
    f"written before 0.8.2|jaxexport forecast|--readers 0.12.0.1 --policy {POLICY}`, without a run, since |--for "
    f"0.12.0.1 -o OUT --policy {POLICY}`"
)
CRASHED = "jaxexport bisect|--bundle|the reader takes the artifact as it is"


@pytest.mark.parametrize(
    ("case", "writer", "reader", "verdict", "result", "cause", "expected", "unexpected"),
    [
        (CHOLESKY, "0.6.2", "0.12.0.1", "refused", {}, FailureCause.EXPIRED, EXPIRED, "jaxexport bisect"),
        (
            DERIVATIVE,
            "0.12.0.1",
            "0.8.1",
            "error",
            {},
            FailureCause.FORMAT,
            "no number of devices|`deployed:`",
            "forecast",
        ),
        # A converted artifact would give the same numbers.
        (CHOLESKY, *NEWEST, "numerics", FAR, FailureCause.NUMBERS, "jaxexport reduce|`numbers` in the", "convert"),
        (CHOLESKY, *NEWEST, "error", NO_CALL, FailureCause.REGISTRATION, "register=", "jaxexport bisect"),
        (CHOLESKY, *NEWEST, "crash", {"signal": 11}, FailureCause.UNKNOWN, CRASHED, "jaxexport reduce"),
        (CHOLESKY, "0.6.2", "0.9.2", "crash", SEGV, FailureCause.UPSTREAM, "lapack-cold-process", "jaxexport bisect"),
        (CHOLESKY, "0.9.2", "0.9.2", "crash", SEGV, FailureCause.UPSTREAM, "lapack-cold-process", "goldens verify"),
    ],
)
def test_a_cause_is_reported_with_what_to_do(case, writer, reader, verdict, result, cause, expected, unexpected):
    found = explained(case, writer, reader, Verdict(verdict), **result)
    assert found.cause is cause
    text = " ".join((found.because, *(words for _, words in found.evidence), *found.steps, *found.earlier))
    assert [words for words in expected.split("|") if words not in text] == []
    assert unexpected not in text


def test_declaring_a_target_is_not_advised_if_it_is_already_declared():
    choice = choice_of(DERIVATIVE, "0.12.0.1", "0.8.1")
    result = msgspec.structs.replace(judged(choice, Verdict.ERROR), deployed=("edge",))
    assert "`deployed:`" in " ".join(explain(choice, judged(choice, Verdict.ERROR)).earlier)
    assert "`deployed:`" not in " ".join(explain(choice, result).earlier)


def test_wrong_numbers_are_explained_with_a_float64_reference():
    choice = choice_of(CHOLESKY, "0.11.0", "0.12.0.1")
    result = judged(
        choice, Verdict.NUMERICS, stage=Stage.COMPARE, max_abs_error=0.5, looks_like="rounding: errors of both signs"
    )
    found = explain(choice, result, references=[Reference("float64", "output 0: near\noutput 1: far")])
    assert ("looks like", "rounding: errors of both signs") in found.evidence
    assert ("float64", "output 0: near\noutput 1: far") in found.evidence
    assert next(text for text in found.steps if "to JAX" in text).startswith("If that operation is wrong, report it")


def test_advised_commands_name_the_given_goldens_and_policy():
    choice = choice_of(CHOLESKY, "0.11.0", "0.11.0")
    choice = replace(choice, run=RunOptions(goldens=Path("g"), policy_file="../p.yaml"))
    (step,) = explain(choice, judged(choice, Verdict.ERROR)).steps
    assert step.startswith("`jaxexport goldens verify --goldens g --policy ../p.yaml` checks the golden's files")


def test_no_release_is_blamed_if_the_writer_fails_too():
    found = explained(CHOLESKY, "0.11.0", "0.11.0", Verdict.ERROR)
    assert found.cause is FailureCause.OWN_WRITER
    (step,) = found.steps
    assert step.startswith(f"`jaxexport goldens verify --goldens {ROOT / 'golden'} --policy ")
    assert step.endswith("` checks the golden's files; export it again if they are undamaged.")


def test_a_writers_changed_numbers_blame_the_processor():
    both = "written on x86_64 AMX, read on x86_64 AVX2"
    found = explained(CHOLESKY, "0.11.0", "0.11.0", Verdict.NUMERICS, processors=both, **FAR)
    assert found.cause is FailureCause.PROCESSOR
    assert found.cause == "may depend on the processor", "its stored outputs may have been changed too"
    assert found.because.endswith(
        f"on another processor: {both}. No reference says whether the stored outputs are right."
    )
    assert found.steps[1].startswith("`git log -- ")
    assert found.steps[0].startswith("Replay it on the processor that wrote it")


BOTH = "written on x86_64 AMX, read on x86_64 AVX2"
AT_1_PERCENT = {"stage": Stage.COMPARE, "max_abs_error": 0.01, "max_noise_error": 3.55e4}
AS_A_NAN = {"stage": Stage.COMPARE, "max_abs_error": None, "max_noise_error": None}
READER, STORED, NOBODY = (Reference("float64", "who is nearer", side) for side in (False, True, None))


def own_numbers(*references: Reference, processors: str = BOTH, **changes: Any) -> Explanation:
    """Return the explanation of a golden whose own writer gives other numbers than it has stored."""
    choice = choice_of(CHOLESKY, "0.11.0", "0.11.0")
    return explain(choice, judged(choice, Verdict.NUMERICS, processors=processors, **changes), references=references)


@pytest.mark.parametrize("processors", [BOTH, ""], ids=["another processor", "the same processor"])
@pytest.mark.parametrize(
    ("references", "changes", "why"),
    [
        ([], AT_1_PERCENT, "no rounding of a processor is known to give such numbers (3.55e+04 times the noise)."),
        ([NOBODY], AS_A_NAN, "no rounding of a processor is known to give such numbers (not finite, which "),
        ([READER], FAR, "`float64` contradicts the stored outputs."),
        (
            [Reference("reference", "agrees with the reader", for_stored=False), READER],
            AT_1_PERCENT,
            "`reference` and `float64` contradict the stored outputs, and no rounding of a processor is known to",
        ),
        (
            [STORED, Reference("reference", "agrees with the reader", for_stored=False)],
            FAR,
            "`reference` contradicts",
        ),
    ],
    ids=["size", "not finite", "one reference", "all", "one against one"],
)
def test_stored_outputs_that_a_reference_contradicts_are_doubted(references, changes, why, processors):
    found = own_numbers(*references, processors=processors, **changes)
    assert found.cause is FailureCause.STORED
    assert f"the golden's stored outputs are in doubt: {why}" in found.because
    folder = ROOT / "golden" / CHOLESKY / "0.11.0-cpu"
    assert f"`git log -- {folder}`" in found.steps[0]
    assert "`jaxexport goldens verify " in found.steps[0]
    assert [text for text in found.steps if "rule" in text] == []
    may_be_rounding = processors == BOTH and changes is FAR
    assert [text[:40] for text in found.steps[1:]] == ["Replay it on the processor that wrote it"] * may_be_rounding
    assert found.earlier == ("A matrix in CI with `--readers 0.11.0` for each change of the golden's folder.",)


@pytest.mark.parametrize(
    ("references", "changes"),
    [([], FAR), ([NOBODY], FAR), ([STORED], FAR), ([STORED], AT_1_PERCENT), ([STORED, NOBODY], AS_A_NAN)],
    ids=["size", "no reference", "a reference", "far from the reader", "not finite in the reader"],
)
def test_the_processor_is_blamed_if_no_reference_contradicts(references, changes):
    found = own_numbers(*references, **changes)
    assert found.cause is FailureCause.PROCESSOR
    assert found.steps[0].startswith("Replay it on the processor that wrote it")
    assert ("allow the difference with a rule" in found.steps[0]) is (changes is FAR), "no rule for numbers so far off"
    assert found.earlier == ("A matrix on the processor that reads the golden, on the day it was written.",)


def test_replay_without_number_changing_xla_flags_is_advised_first():
    found = own_numbers(processors=f"{BOTH} with XLA_FLAGS=--xla_cpu_enable_fast_math=true", **AT_1_PERCENT)
    assert (found.cause, found.steps[0][:40]) == (FailureCause.STORED, "Replay it without these XLA_FLAGS first:")


def test_small_changes_on_the_same_processor_blame_the_test():
    found = own_numbers(processors="", **FAR)
    assert found.cause is FailureCause.OWN_WRITER
    assert found.earlier[0].startswith("`pytest --update-goldens` replays each golden")


@pytest.mark.parametrize(
    ("references", "own", "is_first"),
    [([READER], None, True), ([READER, STORED], None, False), ([READER], Verdict.PASS, False), ([NOBODY], None, False)],
    ids=["contradicted", "one against one", "its writer replays it", "nobody knows"],
)
def test_replaying_contradicted_outputs_in_their_writer_is_advised(references, own, is_first):
    choice = choice_of(CHOLESKY, *NEWEST)
    stored = [judged(choice_of(CHOLESKY, "0.11.0", "0.11.0"), own)] if own else []
    found = explain(replace(choice, stored=(*stored,)), judged(choice, Verdict.NUMERICS, **FAR), references=references)
    assert found.cause is FailureCause.NUMBERS
    advice = "Replay it in its own writer first (`--readers 0.11.0`): `float64` contradicts the stored outputs."
    assert any(step.startswith(advice) for step in found.steps) is is_first


def with_its_writer(
    reader: str, own: Verdict = Verdict.NUMERICS, case: str = CHOLESKY, writer: str = "0.11.0", **changes: Any
) -> Choice:
    """Return the choice of a cell whose run also has a cell in the golden's own writer, with the verdict `own`."""
    in_writer = judged(choice_of(case, writer, writer), own, **changes)
    return replace(choice_of(case, writer, reader), stored=(in_writer,))


def test_a_golden_is_doubted_if_reader_and_writer_differ_alike():
    choice = with_its_writer("0.12.0.1", **AT_1_PERCENT)
    found = explain(choice, judged(choice, Verdict.NUMERICS, **AT_1_PERCENT, message="0.01 off (3e4 times the noise)"))
    assert found.cause is FailureCause.STORED
    assert found.because.startswith("The release that wrote the golden gives other numbers too. Unless the test is")
    assert found.steps[0].startswith("Look at the history of the golden's folder: `git log -- ")
    assert not any("its own writer first" in step or "to JAX" in step for step in found.steps)


def test_no_release_is_blamed_if_reader_and_writer_crash_alike():
    choice = with_its_writer("0.12.0.1", Verdict.CRASH, **SEGV)
    found = explain(choice, judged(choice, Verdict.CRASH, **SEGV))
    assert found.cause is FailureCause.OWN_WRITER
    assert not any("bisect" in step or "to JAX" in step for step in found.steps)


def test_explaining_the_failure_in_the_writer_is_advised_first():
    choice = with_its_writer("0.12.0.1", Verdict.CRASH, **SEGV)
    found = explain(choice, judged(choice, Verdict.NUMERICS, **FAR), references=[READER])
    assert found.cause is FailureCause.NUMBERS
    first = "Explain it in its own writer first, where it fails too: `jaxexport explain "
    assert found.steps[0].startswith(f"{first}'{CHOLESKY}/0.11.0-cpu in 0.11.0-jax0.11.0 on cpu'")


def in_iree(choice: Choice, *references: Reference, **changes: Any) -> Explanation:
    """Return the explanation of other numbers in IREE, for a program that has a known issue of IREE."""
    result = judged(choice, Verdict.NUMERICS, **{**AT_1_PERCENT, **changes})
    known = msgspec.structs.replace(result, upstream="iree-sine-of-large-angles")
    return explain(choice, known, references=references)


def test_a_runtimes_known_issue_does_not_explain_a_changed_golden():
    golden = {"case": "tests.compat.test_dtypes.test_dtype[float32]", "writer": "0.12.0.1"}
    alone = choice_of(**golden, reader="iree==3.13.0")
    with_writer = with_its_writer("iree==3.13.0", **golden, **AT_1_PERCENT)
    assert in_iree(alone).cause is in_iree(alone, READER, STORED).cause is FailureCause.UPSTREAM
    assert in_iree(with_writer, max_abs_error=2.0).cause is FailureCause.UPSTREAM
    for found, cause in (
        (in_iree(with_writer), FailureCause.STORED),
        (in_iree(alone, READER), FailureCause.NUMBERS),
    ):
        assert found.cause is cause
        assert "iree-sine-of-large-angles" not in str(found)
    assert any(step.startswith("Replay it in its own writer first") for step in in_iree(alone, READER).steps)


def test_the_text_of_a_cause_ends_with_a_full_stop():
    found = explained(CHOLESKY, *NEWEST, Verdict.NUMERICS, **FAR, message="0.5 off (the noise of each)")
    assert found.because.endswith("0.5 off (the noise of each).")


def test_a_device_limit_is_named_if_the_writer_fails_alike():
    choice = choice_of("tests.compat.test_accelerators.test_lu", "0.12.0.1", "0.12.0.1", "tpu:compile")
    failed = {"stage": Stage.COMPILE, "message": "UNIMPLEMENTED: no such dot", "device": "TPU v5 lite"}
    result = judged(choice, Verdict.ERROR, **failed, control=Control.ALIKE)
    found = explain(choice, result)
    assert (found.cause, found.steps) == (FailureCause.DEVICE, (DEVICE_LIMIT.to_do,))
    assert found.because.startswith("The compiler for TPU v5 lite does not do this, in jaxlib 0.12.0.1")
    assert found.earlier == (
        "A matrix in CI with `--platforms tpu:compile`, on the day it was written: its own writer shows it.",
    )


def test_stored_results_are_listed_by_build_date():
    choice = choice_of(CHOLESKY, "0.11.0", "0.12.0.1")
    stored = [judged(choice_of(CHOLESKY, "0.11.0", reader), Verdict.PASS) for reader in ("0.11.1", "0.11.0")]
    found = explain(replace(choice, stored=(*stored,)), judged(choice, Verdict.ERROR))
    assert [row.reader.jaxlib for row in found.releases] == ["0.11.0", "0.11.1", "0.12.0.1"]


def test_no_withdrawn_release_is_advised_as_a_reader():
    choice = choice_of(CHOLESKY, "0.11.0", "0.12.0.1")
    stored = (*(judged(choice_of(CHOLESKY, "0.11.0", reader), Verdict.PASS) for reader in ("0.11.1", "0.11.0")),)
    calendar = choice.plan.calendar
    withdrawn = {"0.11.0": msgspec.structs.replace(calendar.jaxlib["0.11.0"], yanked="wrong numbers")}
    changed = replace(choice, plan=replace(choice.plan, calendar=calendar.extended(withdrawn, {})), stored=stored)
    step = "Read it with a release in which it works: jaxlib {}."
    assert step.format("0.11.0, 0.11.1") in explain(replace(choice, stored=stored), judged(choice, Verdict.ERROR)).steps
    assert step.format("0.11.1") in explain(changed, judged(choice, Verdict.ERROR)).steps


def test_a_jaxlib_with_two_jax_is_listed_with_its_jax():
    choice = choice_of(CHOLESKY, "0.12.0.1", "0.11.2")
    pairs = ("0.12.0-jax0.12.0", "0.12.0-jax0.12.0.1")
    readers = [choice.release(pair) for pair in pairs]
    works = judged(choice, Verdict.PASS)
    stored = (*(msgspec.structs.replace(works, reader=reader) for reader in readers),)
    found = explain(replace(choice, stored=stored), judged(choice, Verdict.ERROR))
    text = "\n".join(explanation_lines(found, choice, 120))
    assert (
        "\n  2026-10-16  jaxlib 0.12.0 (jax 0.12.0)   pass\n  2026-10-16  jaxlib 0.12.0 (jax 0.12.0.1) pass\n" in text
    )
    step = "Read it with a release in which it works: jaxlib 0.12.0 (jax 0.12.0), 0.12.0 (jax 0.12.0.1)."
    assert step in found.steps


def test_no_heading_is_printed_without_a_text_below_it():
    choice = choice_of(DERIVATIVE, "0.12.0.1", "0.11.2")
    wrong = msgspec.structs.replace(judged(choice, Verdict.NUMERICS, **FAR), deployed=("edge",))
    found = explain(choice, wrong)
    assert found.earlier == ()
    assert "What would have shown it earlier" not in "\n".join(explanation_lines(found, choice, 120))


def test_explain_names_a_command_that_would_have_foreseen_the_failure():
    choice = choice_of(CHOLESKY, "0.12.0.1", "0.9.2")
    crashed = msgspec.structs.replace(judged(choice, Verdict.ERROR), deployed=("edge",))
    asked = f"`jaxexport can-i-deploy {CHOLESKY}/0.12.0.1-cpu --to edge"
    assert any(text.startswith(asked) for text in explain(choice, crashed).earlier)


@pytest.mark.parametrize(
    ("verdict", "text"), [(Verdict.PASS, "found pass: nothing to explain"), (Verdict.NOT_RUN, "was not run: no disk")]
)
def test_a_cell_that_does_not_fail_is_not_explained(verdict, text):
    choice = choice_of(CHOLESKY, "0.11.0", "0.12.0.1")
    stored = judged(choice, verdict, message="no disk")
    with pytest.raises(WhyError, match=text):
        result_of(replace(choice, stored=(stored,)), print)


def test_a_cell_without_a_stored_run_is_replayed(monkeypatch):
    choice = choice_of(CHOLESKY, "0.11.0", "0.12.0.1")
    lines: list[str] = []

    def replay_here(cells, options, *, notify):
        notify("1 of 1 cell ran before with the same content: not run again")
        yield cells[0], new_result(cells[0], verdict=Verdict.ERROR, stage=Stage.COMPILE)

    monkeypatch.setattr(explanation, "replay_here", replay_here)
    assert result_of(choice, lines.append).verdict is Verdict.ERROR
    ending = ": it is replayed here, unless the cache has its outcome"
    assert lines[0] == f"no stored run has {choice.cell.key}{ending}"
    changed = "another value of `numbers` in the policy"
    result_of(replace(choice, not_counted=changed), lines.append)
    known = f"the stored result of {choice.cell.key} does not count any more, made with {changed}"
    assert f"{known}{ending}" in lines


@pytest.mark.parametrize(
    ("allowed", "step"),
    [
        ("0 ulp (golden)", "allow them with a rule (`numbers` in the policy) and its reason."),
        ("rtol 0.001, atol 0 (own/e.yaml:50)", "change what is allowed at own/e.yaml:50, and its reason."),
    ],
)
def test_advice_to_allow_numbers_names_the_policy_rule_in_force(allowed, step):
    """In a matrix, the first rule of the policy that matches decides; the marker of the test does not."""
    found = explained(CHOLESKY, *NEWEST, Verdict.NUMERICS, **FAR, allowed=allowed)
    assert f"If the new numbers are as good, {step}" in found.steps


@pytest.mark.parametrize("case", ["test_eig", "test_schur"])
def test_a_conversion_that_replaces_no_custom_call_is_not_advised(case):
    """LAPACK's eig and schur crash jaxlib before 0.10.0, and a conversion can replace neither there."""
    (golden,) = (each for each in goldens() if each.id == f"tests.compat.test_linear_algebra.{case}/0.12.0.1-cpu")
    choice = choice_of(golden.manifest.case, golden.folder.name, "0.9.2")
    step = remedy(choice.cell, choice.options)
    assert step.startswith("It cannot be converted: lapack_sgee"), step
    assert step.endswith("_ffi cannot be replaced: jax has no lowering of it without LAPACK."), step
    reader = choice.cell.reader
    assert not conversion_may_help("no: it crashes", reader, golden.manifest.custom_calls)
    assert conversion_may_help("no: it crashes", reader, ["Sharding", "lapack_sgesdd_ffi"])


SHARDED_OR_CALLING = (
    *("test_programs.test_random/", "test_random_key[rbg]/0.9.2", "test_linear_algebra.test_svd/0.6.2"),
    *("test_devices.test_layouts/", "test_lapack_with_pivoting/"),
)
RUNTIMES = ["iree==3.13.0", "litert==2.3.0", "tensorflow==2.21.0", "stablehlo==0.12.0.1"]


@pytest.mark.parametrize("reader", ["0.8.1", "0.9.2", "0.12.0.1", *RUNTIMES])
def test_reports_deny_a_conversion_only_where_explain_does(reader):
    """Explain asks what a conversion would change; a report and can-i-deploy ask the forecast."""
    on_cpu = [golden for golden in goldens() if "cpu" in golden.manifest.runs_on]
    chosen = [golden for golden in on_cpu if any(part in golden.id for part in SHARDED_OR_CALLING)]
    for golden in (*on_cpu[::90], *chosen):
        choice = choice_of(golden.manifest.case, golden.folder.name, reader)
        placed = find_reader(reader, terms_of(choice.options.policy), choice.plan.calendar)
        text = in_words(forecast(golden.read_artifact(), placed, "cpu").spoiled)
        step = remedy(choice.cell, choice.options)
        helps_not = ("Conversion does not help: ", "Conversion seldom helps: ", "It cannot be converted: ")
        targets, allow = golden.manifest.custom_calls, choice.options.policy.allow
        assert conversion_may_help(text, placed.release, targets, allow) or step.startswith(helps_not), (
            golden.id,
            text,
            step,
        )


@pytest.mark.parametrize("reader", ["0.12.0.1", "0.11.0"], ids=["another reader", "its own writer"])
def test_a_rerun_with_a_longer_limit_is_advised_for_a_timeout(reader):
    found = explained(CHOLESKY, "0.11.0", reader, Verdict.TIMEOUT, stage=Stage.COMPILE, message="after 120 s, killed")
    assert found.cause is FailureCause.TIME_LIMIT
    again, bisect, report = found.steps
    assert again.startswith("Run it again, alone and with a longer limit: `jaxexport matrix ")
    assert bisect.startswith("Only if it times out again on a quiet machine, ")
    assert all(" --timeout 480" in step for step in found.steps)
    assert " --no-cache " in again
    assert "report it to JAX" in report
    assert found.earlier == (), "no earlier matrix would have shown a busy machine"
    texts = " ".join((found.because, *found.steps))
    assert not any(words in texts for words in ("onversion", "convert", "goldens verify", "Read it with"))

"""The findings of a report: what failed, why, and what to do, in sentences."""

import io
import re
from pathlib import Path

import msgspec
import pytest
from making import document, of_runtime, result, summarize
from rich.console import Console

from export_core.base.error_grid import ErrorGrid
from export_core.base.text import first_line, ranges
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.matrix.verdicts import BROKEN_PROMISE
from export_core.policy.known_issues import known_issues, todo_about
from export_core.policy.run_options import OPTIONS
from export_core.readers.errors import STILL_STARTS, tried_twice
from export_core.readers.worker.client import START_SECONDS
from export_core.readers.worker.protocol import Stage
from export_core.releases import load_calendar
from export_core.report.annotations import annotation_commands
from export_core.report.document import capped
from export_core.report.junit import junit_xml
from export_core.report.markdown import markdown_text
from export_core.report.page import html_page
from export_core.report.terminal import print_report
from export_core.report.view import broken_cell
from export_core.report.wording import began_and_ended, headline, outcome_line, window_line

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "matrix.md"


def findings(*results, **options):
    """Return the findings of a report of these results."""
    return document(results, **options).findings


def crash(case="t.test_cholesky", reader="0.10.2", **changes):
    changes = {"message": "died by signal 11 (SIGSEGV)", "stage": Stage.RUN, "signal": 11, **changes}
    return result(Verdict.CRASH, **{"judgement": Judgement.BROKEN, "case": case, "reader": reader, **changes})


def wrong(reader, case="t.f", bits="a", **changes):
    """Build the result of a cell that ran with different numbers."""
    changes = {"message": "far", "outputs": bits, "max_abs_error": 0.5, **changes}
    return result(Verdict.NUMERICS, Judgement.BROKEN, case=case, reader=reader, **changes)


def test_a_broken_cell_has_dates_evidence_and_command():
    found = broken_cell(crash())
    assert found.title == "BROKEN PROMISE"
    assert found.text.splitlines() == [
        "t.test_cholesky, written by jax 0.9.2 with jaxlib 0.9.2 (built 2026-03-18) and read by jax 0.10.2 with "
        "jaxlib 0.10.2 (built 2026-06-17) on cpu, crashed.",
        "  window     backward: reader built 91 days after the writer; promised to jaxlibs built until 2026-09-14 "
        "(180 days)",
        "  stage      run",
        "  message    died by signal 11 (SIGSEGV)",
        "  reproduce  jaxexport matrix --cases t.test_cholesky --writers 0.9.2 --readers 0.10.2 --platforms cpu",
    ]


@pytest.mark.parametrize(
    ("reader", "promised", "expected"),
    [
        ("0.11.2", False, "backward: reader built 183 days after the writer; outside the window: {} until 2026-09-14"),
        ("0.9.1", True, "forward: reader built 18 days before the writer; {} from 2026-02-25 on (21 days)"),
        ("0.9.0", False, "forward: reader built 57 days before the writer; outside the window: {} from 2026-02-25 on"),
        ("0.9.2", True, "same: reader and writer were built on the same day; {} until 2026-09-14 (180 days)"),
    ],
)
def test_the_window_line_has_days_dates_and_direction(reader, promised, expected):
    assert window_line(result(writer="0.9.2", reader=reader, promised=promised)).startswith(
        expected.format("promised to jaxlibs built")
    )


def test_wrong_numbers_outside_the_window_are_explained():
    message = "output 0: far\n  largest error at [3]: expected 1, got 2"
    text = broken_cell(wrong("0.12.0.1", promised=False, message=message)).text
    assert "ran with different numbers, and other numbers are broken on any date." in text
    assert "  message    output 0: far\n               largest error at [3]: expected 1, got 2\n" in text


def test_an_error_shows_only_the_error_lines_of_stderr():
    wrong = result(
        Verdict.ERROR, Judgement.BROKEN, stage=Stage.COMPILE, message="XlaRuntimeError: INTERNAL",
        stderr="W chatter\nE error: 'vhlo.op' is not legal\nmore",
    )  # fmt: skip
    assert "  stderr     E error: 'vhlo.op' is not legal\n" in broken_cell(wrong).text
    assert "chatter" not in broken_cell(wrong).text


def test_causes_with_most_cells_come_first_and_numerics_last():
    results = [
        result(Verdict.REFUSED, Judgement.BROKEN, case="refused", stage=Stage.LOWER, message="r"),
        crash("crash2"),
        crash("crash1"),
        *(
            result(Verdict.NUMERICS, Judgement.BROKEN, case="numbers", message="n", reader=reader)
            for reader in ("0.10.1", "0.10.2", "0.11.0")
        ),
        result(Verdict.TIMEOUT, Judgement.BROKEN, case="slow", stage=Stage.RUN, message="t"),
    ]
    found = findings(*results)
    assert [finding.title for finding in found] == ["BROKEN PROMISE"] * 4
    assert [{cell.case for cell in finding.results} for finding in found] == [
        {"crash1", "crash2"}, {"refused"}, {"slow"}, {"numbers"},
    ]  # fmt: skip


def test_a_golden_that_fails_in_its_writer_is_called_not_replayable():
    own, newer, other = crash(reader="0.9.2"), crash(), crash("t.other")
    found = findings(own, newer, other)
    assert [(finding.title, [cell.key for cell in finding.results]) for finding in found] == [
        ("NOT REPLAYABLE", [own.key, newer.key]),
        ("BROKEN PROMISE", [other.key]),
    ]
    assert found[0].sentence.endswith(" This is not a broken promise: the golden's own writer cannot replay it.")
    assert html_page(document([own, newer, other])).count("This is not a broken promise: the golden&#39;s own") == 1


@pytest.mark.parametrize("processors", ["", "written on a, read on b"], ids=["not replayable", "another processor"])
def test_every_report_advises_on_a_writer_that_cannot_replay(processors):
    own = wrong("0.9.2", processors=processors)
    (finding,) = findings(own)
    advice = finding.kind.to_do[:40]
    assert advice in broken_cell(own).text
    assert advice in html_page(document([own]))
    assert advice in unwrapped(own)
    assert advice in unwrapped(own, *(crash("t.b", reader) for reader in ("0.10.2", "0.11.0")))


def terminal_text(reported):
    """Return a report as a terminal shows it, in one line."""
    file = io.StringIO()
    print_report(Console(file=file, width=100), reported)
    return " ".join(file.getvalue().split())


def unwrapped(*results):
    """Return the report of these results in a terminal, in one line."""
    return terminal_text(document(results))


def test_writers_and_readers_of_a_cause_are_named_once():
    results = [crash(case, reader) for case in ("t.a", "t.b") for reader in ("0.10.0", "0.10.2", "0.11.0")]
    assert unwrapped(*results).count("written by 0.9.2, read by 0.10.0 to 0.11.0") == 1
    (finding,) = findings(*results)
    first, _, _ = finding.sentence.partition(". ")
    assert first == "6 cells crashed in stage run: written by 0.9.2, read by 0.10.0 to 0.11.0"
    assert [label for label, text in finding.details if "0.9.2" in text] == ["example", "reproduce"]


BOTH = "written on x86_64 SSE4_2, read on x86_64 AMX with XLA_FLAGS=--xla_x"


def test_a_writers_changed_numbers_name_the_processor():
    own = wrong("0.9.2", processors=BOTH)
    for finding in (*findings(own, wrong("0.10.2", processors=BOTH)), broken_cell(own)):
        assert finding.title == "OTHER PROCESSOR"
        assert f"The reason may be the processor or its settings ({BOTH}), a test" in finding.sentence
        assert "or stored outputs that were changed." in finding.sentence, "a changed golden looks the same here"
        details = dict(finding.details)
        assert details["processor"] == BOTH
        first, second, third, *_ = details["to do"].split(". ")
        assert "`jaxexport explain --case t.f --writer 0.9.2 --reader 0.9.2` compares both sides with double" in first
        assert second.startswith("`git log -- golden/t.f/0.9.2-cpu` shows whether the stored outputs were changed")
        assert third.startswith("Replay it on the processor that wrote it")
        assert "Check the test before" not in finding.text
    assert findings(wrong("0.9.2"))[0].title == broken_cell(wrong("0.9.2")).title == "NOT REPLAYABLE"


def test_a_broken_promise_shows_the_processors():
    own = result(case="t.f", reader="0.9.2", processors="")
    (finding,) = findings(own, wrong("0.10.2", processors=BOTH))
    assert (finding.title, dict(finding.details)["processor"]) == ("BROKEN PROMISE", BOTH)


GRID = ErrorGrid(1, 2, 1, 2, (0.5, 1e-9), (1e-3, 1e-3))
IN_DOUBT = "the golden's stored outputs are in doubt: no rounding of a processor is known to give such numbers"


@pytest.mark.parametrize(
    "processors", [BOTH.partition(" with ")[0], ""], ids=["another processor", "the same processor"]
)
@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({"max_noise_error": 3.55e4}, "3.55e+04 times the noise"),
        ({"max_noise_error": 3.55e3}, "3.55e+03 times the noise"),
        ({"error_grid": GRID}, "500 times what is allowed"),
        ({"looks_like": "NaN replaced by zeros"}, "NaN replaced by zeros"),
        ({"max_abs_error": None}, "not finite, which rounding gives only at the edge of what a function is defined "),
    ],
    ids=["1 %", "0.1 %", "without noise", "garbage", "not finite"],
)
def test_no_processor_is_blamed_for_numbers_too_far_off(changes, size, processors):
    own = wrong("0.9.2", processors=processors, **changes)
    reader = wrong("0.10.2", processors=processors, **changes)
    for finding in (*findings(own, reader), broken_cell(own)):
        assert finding.title == "NOT REPLAYABLE"
        assert f"{IN_DOUBT} ({size}" in finding.sentence
        assert "This is not a broken promise: the golden's own writer gives other numbers too." in finding.sentence
        advice = dict(finding.details)["to do"]
        assert advice.startswith("Look at the history of the golden's folder: `git log -- golden/t.f/0.9.2-cpu`. ")
        assert "`jaxexport explain --case t.f --writer 0.9.2 --reader 0.9.2` compares both sides" in advice
        assert "rule" not in advice
        assert "be the processor" not in finding.text
    assert summarize([own]).exit_code == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"max_noise_error": 6.8},
        {"max_noise_error": 380.0},
        {"error_grid": msgspec.structs.replace(GRID, errors=(0.09, None))},
        {"error_grid": msgspec.structs.replace(GRID, allowed=(0.0, 0.0))},
    ],
    ids=["few times the noise", "less than 100 times what is allowed", "without noise", "equal values"],
)
def test_numbers_off_by_rounding_alone_are_blamed_on_the_processor(changes):
    own = wrong("0.9.2", processors=BOTH, **changes)
    assert [finding.title for finding in (*findings(own), broken_cell(own))] == ["OTHER PROCESSOR"] * 2


def iree(**changes):
    """Build the result of a cell that gives different numbers in IREE, which has a known issue with such programs."""
    plain = wrong("0.10.2", bits="c", promised=False, upstream="iree-sine-of-large-angles", **changes)
    return of_runtime(plain, "iree==3.13.0", "2026-10-01")


def test_a_runtimes_known_issue_is_not_named_if_the_writer_errs_alike():
    off = {"max_abs_error": 0.0100, "max_noise_error": 3.55e4}
    found = findings(wrong("0.9.2", **off), wrong("0.10.2", **off), iree(**{**off, "max_abs_error": 0.0101}))
    assert [finding.title for finding in found] == ["NOT REPLAYABLE"] * 2
    in_iree = next(finding for finding in found if finding.results[0].reader.family)
    assert IN_DOUBT in in_iree.sentence
    assert "iree-sine-of-large-angles" not in in_iree.text
    assert in_iree.results[0].upstream == ""


@pytest.mark.parametrize(
    ("own", "in_iree"),
    [
        (wrong("0.9.2", max_noise_error=3.55e4), iree(max_noise_error=9e4, max_abs_error=2.0)),
        (wrong("0.9.2", max_noise_error=3.0), iree(max_noise_error=3.0)),
        (result(case="t.f", reader="0.9.2"), iree(max_noise_error=3.55e4)),
    ],
    ids=["another difference", "rounding in the writer", "the writer replays it"],
)
def test_a_runtimes_known_issue_is_named_unless_the_writer_errs_alike(own, in_iree):
    issues = {finding.cause.upstream for finding in findings(own, in_iree) if finding.cause}
    assert "iree-sine-of-large-angles" in issues


def test_in_a_runtime_an_unreplayable_golden_is_a_separate_finding():
    off = {"max_abs_error": 0.01, "max_noise_error": 3.55e4, "promised": False}
    before = [of_runtime(result(case=case), "iree==3.12.0", "2026-09-01") for case in ("t.f", "t.g")]
    since = [of_runtime(wrong("0.10.2", case, **off), "iree==3.13.0", "2026-10-19") for case in ("t.f", "t.g")]
    found = findings(wrong("0.9.2", **off), *before, *since)
    in_iree = {finding.results[0].case: finding.title for finding in found if finding.results[0].reader.family}
    assert in_iree == {"t.f": "NOT REPLAYABLE", "t.g": "OTHER NUMBERS"}


def test_a_runtime_without_lapack_gets_no_advice_that_cannot_help():
    def refused(case, *calls):
        changes = {"message": "Shardy's dialect", "stage": Stage.DESERIALIZE, "deployed": ("robot",)}
        plain = result(Verdict.REFUSED, Judgement.OWED, case=case, reader="0.10.2", custom_calls=calls, **changes)
        return of_runtime(plain, "iree==3.13.0", "2026-10-19", promised=False)

    def advice(*results):
        (finding,) = findings(*results)
        return dict(finding.details)["to do"]

    lapack, other = refused("t.f", "lapack_spotrf_ffi", "Sharding"), refused("t.g", "lapack_sgeqrf_ffi")
    assert advice(lapack, other) == (
        "Only jax registers lapack_sgeqrf_ffi, lapack_spotrf_ffi; compute with operations that need no LAPACK. A "
        "conversion seldom helps, and another release of iree does not."
    )
    assert "convert it" in advice(lapack, refused("t.g")), "it may help one of both"


@pytest.mark.parametrize(
    ("forecast", "in_jaxlib", "in_iree"),
    [
        ("yes", False, False),
        ("yes, but: it needs flags", False, False),
        ("no: a reverse is refused", True, False),
        ("no: no sdy dialect: `jaxexport convert FILE --for iree==3.13.0 -o OUT`", True, True),
        ("", True, True),
    ],
)
def test_no_conversion_is_advised_if_it_would_change_nothing(forecast, in_jaxlib, in_iree):
    died = crash(forecast=forecast, promised=False, deployed=("farm",), judgement=Judgement.OWED)
    for cell, advised in ((died, in_jaxlib), (of_runtime(died, "iree==3.13.0", "2026-10-19"), in_iree)):
        finding, *_ = findings(cell)
        to_do = dict(finding.details)["to do"]
        assert to_do.startswith("Do not deploy it there: export it with a release that this one reads (`jaxexport in")
        assert ("convert it" in to_do) is advised


def test_an_export_for_one_device_is_advised_where_no_release_takes_two():
    plain = result(Verdict.REFUSED, Judgement.OWED, devices=2, deployed=("robot",), stage=Stage.READ)
    (finding,) = findings(of_runtime(plain, "iree==3.13.0", "2026-10-19", promised=False))
    assert dict(finding.details)["to do"] == "Export the function for one device."


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (
            "lapack_spotrf_ffi",
            "A conversion helps only with `--replace-custom-calls`, and another release",
        ),
        ("xla_ffi_python_cpu_callback", "Neither a conversion nor another release of tensorflow helps."),
    ],
)
def test_a_runtime_with_xla_can_have_its_lapack_calls_replaced(call, advice):
    plain = result(Verdict.REFUSED, Judgement.OWED, custom_calls=(call,), deployed=("robot",), stage=Stage.COMPILE)
    (finding,) = findings(of_runtime(plain, "tensorflow==2.21.0", "2026-03-05", promised=False))
    assert advice in dict(finding.details)["to do"]


def test_a_known_issue_is_not_named_if_jaxlib_differs_the_same_way():
    off = {"max_abs_error": 0.01, "max_noise_error": 3.55e4}
    (in_jaxlib, in_iree) = findings(wrong("0.10.2", **off), iree(**off))
    assert (in_jaxlib.title, in_iree.title) == ("BROKEN PROMISE", "OTHER NUMBERS")
    assert "iree-sine-of-large-angles" not in in_iree.text


@pytest.mark.parametrize(
    ("promised", "title", "which", "counted"),
    [
        ((True, True), "BROKEN PROMISE", "", "2 of 3 promised cells, "),
        ((True, False), "BROKEN PROMISE", ", 1 of them promised,", "1 of 2 promised cells and 1 cell with other"),
        ((False, False), "OTHER NUMBERS", ", none of them promised,", "2 cells with other numbers outside the window"),
    ],
)
def test_a_finding_of_several_cells_counts_the_promised_cells(promised, title, which, counted):
    cells = [wrong(reader, promised=known) for reader, known in zip(("0.10.2", "0.11.0"), promised, strict=True)]
    report = document([result(reader="0.9.2", case="t.f"), *cells])
    (finding,) = (one for one in report.findings if one.results)
    assert finding.title == title
    assert finding.brief.startswith(f"2 cells of t.f{which} ran with different numbers in stage compare")
    assert counted in " ".join(report.headline)


def test_the_advised_git_log_is_for_the_goldens_of_the_run():
    command = "jaxexport matrix --cases t.f --writers 0.9.2 --readers 0.9.2 --goldens 'my goldens'"
    own = wrong("0.9.2", max_noise_error=1e5, reproduce=command)
    for finding in (*findings(own), broken_cell(own)):
        assert "`git log -- 'my goldens/t.f/0.9.2-cpu'`" in dict(finding.details)["to do"]
    assert "`git log -- kept/t.f/0.9.2-cpu`" in broken_cell(wrong("0.9.2", max_noise_error=1e5), (), "kept").text


def test_a_golden_is_titled_not_replayable_unless_processors_differ():
    results = wrong("0.9.2", processors=BOTH), wrong("0.9.2", "t.g"), crash("t.h", "0.9.2")
    assert sorted(finding.title for finding in findings(*results)) == ["NOT REPLAYABLE"] * 2 + ["OTHER PROCESSOR"]


def test_each_failure_of_an_unreplayable_golden_says_so():
    own, newer = crash(reader="0.9.2"), crash(message="died by signal 6 (SIGABRT)")
    found = findings(own, newer)
    assert [finding.title for finding in found] == ["NOT REPLAYABLE"] * 2
    assert {finding.sentence.partition("cannot replay it")[2] for finding in found} == {".", " either."}


def test_a_known_issue_is_one_cause_with_a_remedy():
    lapack = {"custom_calls": ("lapack_spotrf_ffi",), "upstream": "lapack-cold-process"}
    results = [crash(case, reader, **lapack) for case in ("t.a", "t.b") for reader in ("0.9.1", "0.9.2")]
    (finding,) = findings(*results)
    assert (finding.title, len(finding.results)) == ("BROKEN PROMISE", 4), "a release is to blame, not the goldens"
    details = dict(finding.details)
    assert "https://github.com/jax-ml/jax/issues/29610, fixed in 0.10.0" in details["known as"]
    assert details["to do"].startswith("Upgrade the reader to jaxlib 0.10.0 or later")
    assert finding.cause is not None
    assert finding.cause.id == "lapack-cold-process"


@pytest.mark.parametrize(
    ("targets", "reader", "advised"),
    [
        ((), "0.9.2", ", or export with an older jaxlib."),
        (("lapack_spotrf_ffi",), "0.9.2", ". An older export would crash there by its calls of LAPACK."),
        (("lapack_spotrf_ffi",), "0.10.0", ", or export with an older jaxlib."),
    ],
)
def test_an_older_export_is_advised_where_it_would_not_crash(targets, reader, advised):
    (issue,) = [one for one in known_issues() if one.id == "stablehlo-too-new"]
    assert todo_about(issue, "a/b.jaxexport", [(targets, load_calendar().release(reader))]) == (
        f"Upgrade the reader to a release that `jaxexport inspect a/b.jaxexport` has under `loads in`{advised}"
    )


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"upstream": "calling-convention-too-old"}, ""),
        ({"upstream": "stablehlo-too-new", "stage": Stage.MODULE}, ""),
        ({"reader": "0.9.2", "custom_calls": ("lapack_spotrf_ffi",)}, " --replace-custom-calls"),
        ({"reader": "0.9.2", "custom_calls": ("lapack_sgeev_ffi",)}, None),
        ({"forecast": "yes"}, None),
        ({"converted": True}, None),
        ({"upstream": "needs-x64", "stage": Stage.LOWER}, None),
    ],
)
def test_a_conversion_is_advised_for_a_refusal_that_it_may_end(changes, option):
    refused = {"upstream": "calling-convention-too-new", "stage": Stage.DESERIALIZE, "forecast": "no: too old"}
    at = {"writer": "0.6.2", "reader": "0.12.0.1", "judgement": Judgement.BROKEN, "message": "refused"}
    cell = result(Verdict.REFUSED, **{**at, **refused, **changes})
    for finding in (findings(cell)[0], broken_cell(cell, known_issues())):
        todo = dict(finding.details)["to do"]
        command = f"jaxexport convert golden/{cell.golden} --for {cell.reader.name}{option} -o converted"
        assert todo.endswith(f" Or try `{command}`.") if option is not None else "jaxexport convert" not in todo


@pytest.mark.parametrize("calls", [(("lapack_spotrf_ffi",),) * 2, (("lapack_spotrf_ffi",), ())])
def test_readers_where_an_older_export_crashes_are_named(calls):
    new = {"writer": "0.12.0.1", "upstream": "stablehlo-too-new", "stage": Stage.MODULE, "message": "too new"}
    outside = {"judgement": Judgement.OUTSIDE, "promised": False, **new}
    cells = zip(calls, ("t.a", "t.b"), strict=True)
    results = [
        result(Verdict.ERROR, case=case, reader=reader, custom_calls=targets, **outside)
        for targets, case in cells
        for reader in ("0.9.1", "0.9.2", "0.10.2")
    ]
    (finding,) = (one for one in findings(*results) if one.results)
    crash_there = " In 0.9.1, 0.9.2, an older export with calls of LAPACK would crash. Or try `jaxexport convert "
    assert f", or export with an older jaxlib.{crash_there}" in dict(finding.details)["to do"]


def test_the_finding_of_one_cell_names_its_known_issue():
    found = broken_cell(crash(reader="0.9.2", upstream="lapack-cold-process"), known_issues())
    assert found.title == "BROKEN PROMISE", "the writer itself has the issue"
    assert "  known as   LAPACK calls crash in a fresh process, https://github.com/" in found.text
    assert "  to do      Upgrade the reader to jaxlib 0.10.0" in found.text


def test_crashes_since_different_releases_are_separate_findings():
    results = [
        *(result(case="t.a", reader="0.10.0"), crash("t.a", "0.10.2")),
        *(result(case="t.b", reader="0.10.2"), crash("t.b", "0.11.0")),
    ]
    first, second = findings(*results)
    assert (
        "Began to fail between jaxlib 0.10.0 (built 2026-04-16) and jaxlib 0.10.2 (built 2026-06-17)." in first.sentence
    )
    assert "Fails since jaxlib 0.11.0" in second.sentence


def test_each_kind_of_finding_is_limited_separately():
    results = [crash(f"t.{number}", message=f"{chr(97 + number)} died") for number in range(9)]
    results += [result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="n", stage=Stage.ENVIRONMENT, message="no wheel")]
    shown, left_out = capped(findings(*results), 4)
    assert [finding.title for finding in shown] == ["BROKEN PROMISE"] * 4 + ["INCOMPLETE"]
    assert left_out == {BROKEN_PROMISE: 5}


def test_adjacent_releases_are_written_as_a_range():
    among = ["0.9.0", "0.8.3", "0.9.1", "0.9.2", "0.10.0"]
    assert ranges(["0.9.0", "0.8.3", "0.9.1", "0.10.0"], among) == "0.9.0 to 0.9.1, 0.10.0"
    assert ranges(["0.9.0", "0.8.3"], among) == "0.9.0, 0.8.3"
    assert ranges([], among) == ""


def test_numbers_changed_in_the_same_release_are_one_finding():
    results = [
        *(result(reader="0.10.0", case=case) for case in ("t.a", "t.b")),
        *(wrong(reader, case) for case in ("t.a", "t.b") for reader in ("0.10.2", "0.11.0")),
    ]
    (finding,) = findings(*results)
    assert (finding.title, len(finding.results)) == ("BROKEN PROMISE", 4)
    assert [line for line in finding.text.splitlines() if not line.startswith("  cases")][:5] == [
        "4 cells ran with different numbers in stage compare: written by 0.9.2, read by 0.10.2, 0.11.0. "
        "Numbers changed between jaxlib 0.10.0 (built 2026-04-16) and jaxlib 0.10.2 "
        "(built 2026-06-17).",
        "  goldens    t.a/0.9.2-cpu: off by 0.5",
        "             t.b/0.9.2-cpu: off by 0.5",
        "  bits       the same in all these readers of a golden",
        "  example    t.a, written by jax 0.9.2 with jaxlib 0.9.2 (built 2026-03-18) and read by jax 0.10.2 with "
        "jaxlib 0.10.2 (built 2026-06-17) on cpu",
    ]
    assert "  reproduce  jaxexport matrix --cases t.a " in finding.text


@pytest.mark.parametrize(
    ("results", "found", "ending"),
    [
        (
            [
                *(result(reader=reader, case="t.b") for reader in ("0.10.0", "0.10.2")),
                *(wrong(reader, "t.a") for reader in ("0.10.0", "0.10.2", "0.11.0")),
                *(wrong(reader, "t.b") for reader in ("0.11.0", "0.11.2")),
            ],
            [("BROKEN PROMISE", 3), ("BROKEN PROMISE", 2)],
            "changed in jaxlib 0.10.0 (built 2026-04-16), after jaxlib 0.9.2 (built 2026-03-18).",
        ),
        (
            [wrong("0.10.2"), wrong("0.11.0"), result(reader="0.11.2", case="t.f")],
            [("BROKEN PROMISE", 2)],
            " changed between jaxlib 0.9.2 (built 2026-03-18) and jaxlib 0.10.2 (built 2026-06-17), and changed back "
            "between jaxlib 0.11.0 (built 2026-07-16) and jaxlib 0.11.2 with jax 0.12.0.1 (built 2026-09-17).",
        ),
        (
            [wrong("0.9.0"), wrong("0.9.1")],
            [("BROKEN PROMISE", 2)],
            " Numbers changed in jaxlib 0.9.2 (built 2026-03-18): older readers differ from the writer.",
        ),
        (
            [wrong(reader, case) for case in ("t.a", "t.b") for reader in ("0.9.1", "0.10.2")],
            [("BROKEN PROMISE", 2), ("BROKEN PROMISE", 2)],
            " None of the 2 releases of jaxlib that ran it agrees with the writer.",
        ),
        (
            [wrong(reader) for reader in ("0.9.2", "0.10.2", "0.11.0")],
            [("NOT REPLAYABLE", 3)],
            "the golden's own writer cannot replay it.",
        ),
        (
            [wrong("0.10.2"), wrong("0.11.0"), msgspec.structs.replace(wrong("0.11.2"), judgement=Judgement.KNOWN)],
            [("BROKEN PROMISE", 2), ("known failure", 1)],
            "",
        ),
    ],
    ids=["two releases", "changed back", "older readers", "no reader agrees", "its own writer", "known failures apart"],
)
def test_different_changes_of_numbers_are_separate_findings(results, found, ending):
    by_kind = findings(*results)
    assert [(finding.title, len(finding.results)) for finding in by_kind] == found
    assert by_kind[0].sentence.endswith(ending)


def test_a_finding_whose_bits_change_again_points_to_the_trend_report():
    results = [wrong("0.10.2"), wrong("0.11.0", bits="b")]
    (finding,) = findings(*results, folder=Path("out"))
    see = "`jaxexport report out --trend numbers`"
    assert f"  bits       those of 1 golden change again among these readers: see {see}" in finding.text
    (finding,) = findings(wrong("0.10.2", bits=""), wrong("0.11.0", bits=""))
    assert "  bits  " not in finding.text, "an earlier version did not record them"


def test_the_example_in_a_finding_on_numbers_has_the_largest_error():
    results = [
        wrong("0.10.2", case, max_noise_error=noise) for case, noise in (("t.a", 9.0), ("t.b", 31.0), ("t.c", 7.0))
    ]
    (finding,) = findings(*results)
    assert "\n             t.b/0.9.2-cpu: 31 x noise\n" in finding.text
    assert "  example    t.b, " in finding.text


def test_at_most_twenty_changed_goldens_are_listed():
    results = [wrong("0.10.2", f"t.{number:02}") for number in range(25)]
    (finding,) = findings(*results)
    assert "/0.9.2-cpu: off by 0.5\n             and 5 more, in results.jsonl\n" in finding.text


def test_findings_are_ordered_from_broken_to_outside():
    results = [
        result(Verdict.ERROR, Judgement.OUTSIDE, case="o", stage=Stage.COMPILE, message="e", promised=False),
        result(Verdict.CRASH, Judgement.KNOWN, case="k", stage=Stage.RUN, message="c"),
        result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="n", stage=Stage.ENVIRONMENT, message="no wheel"),
        crash("b"),
    ]
    made = msgspec.structs.replace(summarize(results), stale=["known_failures[0]: expired"])
    found = document(results, made).findings
    assert [finding.title for finding in found] == [
        "BROKEN PROMISE", "INCOMPLETE", "STALE LIST", "known failure", "outside the window",
    ]  # fmt: skip
    assert found[2].text == "known_failures[0]: expired"


def test_kept_bonus_and_refused_cells_give_no_finding():
    bonus = result(judgement=Judgement.BONUS, case="bonus", promised=False)
    refused = result(Verdict.REFUSED, Judgement.OUTSIDE, case="r", stage=Stage.DESERIALIZE, message="m", promised=False)
    assert findings(result(), bonus, refused) == []


def test_cells_not_run_for_the_same_reason_are_one_finding():
    same = [
        result(
            Verdict.NOT_RUN, Judgement.INCOMPLETE, case=f"t.test_{i}", reader=reader, stage=Stage.ENVIRONMENT,
            message=f"installing jax=={reader} failed with status {i}",
        )
        for i in range(6)
        for reader in ("0.10.0", "0.10.2")
    ]  # fmt: skip
    another = result(
        Verdict.NOT_RUN, Judgement.INCOMPLETE, case="z", stage=Stage.ENVIRONMENT, message="the worker died"
    )
    found = findings(*same, another)
    assert [finding.title for finding in found] == ["INCOMPLETE", "INCOMPLETE"]
    text = next(finding.text for finding in found if "12 cells" in finding.text)
    assert text.startswith("12 cells were not run in stage environment: written by 0.9.2, read by 0.10.0, 0.10.2.")
    assert "  cases      6: t.test_0, t.test_1, t.test_2 and 3 more\n" in text
    assert "installing jax==0.10.0 failed with status 0" in text
    assert "reproduce" not in text, "one of these cells alone would end in the same way"


def test_a_worker_that_starts_too_slowly_blames_the_machine():
    problem = f"the worker of jaxlib 0.10.2 {STILL_STARTS}, after 121 s"
    (finding,) = findings(
        result(Verdict.NOT_RUN, Judgement.INCOMPLETE, stage=Stage.ENVIRONMENT, message=tried_twice(problem, problem))
    )
    assert dict(finding.details)["to do"] == (
        "The machine may be busy: run fewer cells at a time (--jobs), and run the same `jaxexport matrix` command with "
        "--resume. Or the disk with the environments is slow: JAXEXPORT_CACHE names a folder on another one. How long "
        "a worker may take to start does not depend on --timeout."
    )
    assert f"A worker has {START_SECONDS:g} s more to start." in OPTIONS["timeout"].help
    assert f"within {START_SECONDS:g} s, whatever `--timeout` is" in PAGE.read_text()


def test_the_outcome_of_a_cell_fits_on_a_line():
    assert outcome_line(crash(message="died\nlong story")) == "stage run: died"
    assert outcome_line(crash(message="")) == "stage run: crash"
    assert outcome_line(crash(message="x" * 1000)) == "stage run: " + "x" * 297 + "..."


def test_flaky_cells_are_one_finding_even_if_they_pass_now():
    was = "was crash on 2026-11-20"
    results = [result(case="t.a", flaky=was), result(case="t.b"), crash("t.c", flaky="was pass on 2026-11-19")]
    (finding,) = [each for each in findings(*results) if each.title == "FLAKY"]
    assert finding.text.splitlines() == [
        "2 cells had another verdict last time, with the same content. The judgement uses the verdict of this run.",
        "  cells      t.a/0.9.2-cpu in jaxlib 0.10.2 on cpu: pass, was crash on 2026-11-20",
        "             t.c/0.9.2-cpu in jaxlib 0.10.2 on cpu: crash, was pass on 2026-11-19",
        "  to do      Run the same command again: it runs flaky cells that work, and with `--no-cache` those that fail "
        "too.",
    ]
    many = [result(case=f"t.{number}", flaky=was) for number in range(25)]
    (finding,) = findings(*many)
    assert finding.text.splitlines()[-2] == "             and 5 more, in results.jsonl"
    assert (summarize(many).flaky, summarize(many).exit_code) == (25, 0)
    assert headline(summarize(many))[0] == "KEPT: all 25 promised cells, 25 flaky."


@pytest.mark.parametrize(
    ("title", "fields", "text"),
    [
        (
            "NO NOISE",
            {"unmeasured": ["t.a/0.9.2-cpu", "t.b/0.9.2-cpu"]},
            "2 goldens without noise: t.a/0.9.2-cpu, t.b/0.9.2-cpu. `jaxexport goldens verify --noise` measures it.",
        ),
        ("LITTLE NOISE", {"inputs_only": ["t.a/0.9.2-cpu"]}, "1 golden with noise of inputs only: t.a/0.9.2-cpu."),
        (
            "NOT DECIDED",
            {"undecided": ["t.a/0.9.2-cpu: output 0", "t.a/0.9.2-cpu: output 1"]},
            "1 golden with outputs that would not show a wrong number, since rounding alone moves them as far: "
            "t.a/0.9.2-cpu.\n  outputs    t.a/0.9.2-cpu: output 0\n             t.a/0.9.2-cpu: output 1\n"
            "  to do      Elements that would not show a wrong number change by more than a tenth of the",
        ),
    ],
)
def test_goldens_with_no_little_or_too_much_noise_are_counted(title, fields, text):
    (found,) = document([], msgspec.structs.replace(summarize([]), **fields)).findings[1:]
    assert (found.title, found.text[: len(text)]) == (title, text)


def test_advice_in_findings_names_the_folder_of_the_run():
    for folder, named in ((None, "jaxexport report --trend"), (Path("out dir"), "jaxexport report 'out dir' --trend")):
        (finding,) = findings(wrong("0.10.2"), folder=folder)
        assert named in dict(finding.details)["to do"]


def test_a_cause_names_outputs_with_elements_out_of_proportion():
    cells = [wrong("0.12.0"), wrong("0.12.0.1")]
    jumps = "t.f/0.9.2-cpu: output 0 (['index']): 12 of 400 elements jump"
    made = msgspec.structs.replace(summarize(cells), undecided=[jumps, "t.other/0.9.2-cpu: output 1"])
    (found,) = [finding for finding in document(cells, made).findings if finding.cause]
    assert dict(found.details)["outputs"] == jumps
    assert (
        html_page(document(cells, made)).partition('class="card"')[2].partition("</article>")[0].count("12 of 400") == 1
    )
    assert "outputs" not in dict(findings(crash())[0].details)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("died\nsomewhere", "died"),
        ("uv failed with status 2:\n  no wheel\nhint", "uv failed with status 2: no wheel"),
        ("Failed to serialize;\n\n  it needs 1.22\nhint", "Failed to serialize; it needs 1.22"),
        ("", ""),
    ],
)
def test_a_causes_line_ending_in_a_colon_is_joined_to_the_next_line(message, line):
    assert first_line(message) == line
    causes = summarize([crash(message=message)]).causes
    assert [cause.message for cause in causes] == [line or "crash"]


ROUNDING = "rounding: errors of both signs, at most 2^-21 of the largest element"


def moved(reader="0.12.0.1", case="t.f", **changes):
    """Build the result of a cell whose numbers differ as by rounding."""
    return wrong(reader, case, writer="0.11.0", looks_like=ROUNDING, **changes)


def test_rounding_is_titled_numbers_moved_and_exits_1():
    results = [moved()]
    (finding,) = findings(*results)
    assert (finding.title, summarize(results).exit_code) == ("NUMBERS MOVED", 1)
    assert broken_cell(results[0]).title == "NUMBERS MOVED"


def test_the_advice_for_rounding_is_reduce_and_not_an_issue_report():
    reproduce = (
        "jaxexport matrix --cases t.f --writers 0.11.0 --readers 0.12.0.1 --platforms cpu --goldens 'my goldens'"
    )
    results = [moved(reproduce=f"{reproduce} --no-cache --results out")]
    (finding,) = findings(*results)
    chosen = "--case t.f --writer 0.11.0 --reader 0.12.0.1 --goldens 'my goldens'"
    for details in (finding.details, broken_cell(results[0]).details):
        to_do = dict(details)["to do"]
        assert f"`jaxexport reduce {chosen} -o reduced`" in to_do
        assert f"`jaxexport explain {chosen}`" in to_do
        assert "to JAX" not in to_do
    assert "`jaxexport explain`" in dict(broken_cell(moved(reproduce="it's broken")).details)["to do"]


def test_the_advice_to_inspect_names_the_artifact_of_the_cell():
    """By the artifact, and not by the message, is it known which releases read it."""
    one = crash(reader="0.9.2", upstream="stablehlo-too-new")
    named = f"`jaxexport inspect golden/{one.golden}/artifact.jaxexport`"
    for found in (broken_cell(one, known_issues()), findings(one)[0]):
        assert f"Upgrade the reader to a release that {named} has under `loads in`" in dict(found.details)["to do"]


VISIBLE = re.compile(r"<(script|style|template).*?</\1>|<[^>]*>", re.DOTALL)


def page_text(reported):
    """Return what the page shows without its script."""
    return VISIBLE.sub("", html_page(reported))


@pytest.mark.parametrize("made", [terminal_text, markdown_text, junit_xml, annotation_commands, page_text])
def test_no_report_calls_rounding_wrong(made):
    text = made(document([moved(), moved(case="t.g")]))
    assert "rounding" in text
    assert re.findall(r"(?i)[^\n]*\bwrong\b[^\n]*", text) == []


def to_do(one, *unmeasured):
    made = msgspec.structs.replace(summarize([one]), unmeasured=list(unmeasured))
    return next(dict(finding.details)["to do"] for finding in document([one], made).findings if finding.results)


def test_wrong_numbers_without_noise_suggest_measuring_it():
    """For a golden written with `--noise=later`, a fixed tolerance can call a correct reader wrong."""
    unmeasured = moved(max_noise_error=None)
    assert to_do(unmeasured, unmeasured.golden).startswith(
        "Measure its noise first: `jaxexport goldens verify --noise`."
    )
    assert to_do(unmeasured, "t.another/0.11.0-cpu").startswith("Find the operation that rounds in another way:")
    assert to_do(moved(max_noise_error=9.0), unmeasured.golden).startswith("Find the operation that rounds in another")


def test_suggested_commands_set_the_variables_of_the_cell():
    again = "OPENBLAS_CORETYPE=Haswell jaxexport matrix --cases t.f --writers 0.11.0 --readers 0.12.0.1"
    assert "`OPENBLAS_CORETYPE=Haswell jaxexport reduce --case t.f " in to_do(moved(reproduce=again))
    flags = """LD_PRELOAD=x.so SCALE="${SCALE?}" XLA_FLAGS='--xla_a --xla_b' """
    passed = """`LD_PRELOAD="${LD_PRELOAD?}" SCALE="${SCALE?}" XLA_FLAGS='--xla_a --xla_b' jaxexport reduce """
    assert passed in to_do(moved(reproduce=again.replace("OPENBLAS_CORETYPE=Haswell ", flags)))


def test_rounding_and_wrong_numbers_are_two_findings():
    results = [moved(), moved(case="t.g"), wrong("0.12.0.1", "t.h", writer="0.11.0")]
    found = findings(*results)
    assert [(finding.title, len(finding.results)) for finding in found] == [("NUMBERS MOVED", 2), ("BROKEN PROMISE", 1)]
    assert "2 causes, 1 of which looks like rounding." in headline(summarize(results))[0]


def test_rounding_with_a_known_reason_is_not_titled_numbers_moved():
    own_writer = findings(moved("0.11.0"), wrong("0.12.0.1", writer="0.11.0"))
    assert [finding.title for finding in own_writer] == ["NOT REPLAYABLE"]
    known = moved(upstream="lapack-cold-process")
    assert [finding.title for finding in findings(known)] == ["BROKEN PROMISE"]
    assert broken_cell(known, known_issues()).title == "BROKEN PROMISE"


@pytest.mark.parametrize(
    ("works_in", "sentence", "when"),
    [
        ("0.12.0", "changed in jaxlib 0.12.0.1 (built 2026-10-20), after jaxlib 0.12.0 with", ("since", "0.12.0.1")),
        ("0.11.1", "changed between jaxlib 0.11.1 ", ("began between", "0.11.1 and 0.12.0.1")),
    ],
)
def test_a_change_is_dated_by_the_nearest_releases_that_ran(works_in, sentence, when):
    works = result(reader=works_in, case="t.f", writer="0.11.0")
    (finding,) = findings(works, wrong("0.12.0.1", writer="0.11.0"))
    assert f"Numbers {sentence}" in finding.sentence
    assert began_and_ended(finding.cause) == [when]


def test_the_headline_lists_readers_by_cause():
    results = [
        *(crash("t.a", reader, message="a died", writer="0.12.0.1") for reader in ("0.9.0", "0.9.1", "0.9.2")),
        crash("t.b", "0.12.0", message="b died", writer="0.12.0.1"),
    ]
    _, below = headline(summarize(results))
    assert "Readers affected, by cause: crash in 0.9.0 to 0.9.2 and 0.12.0" in below
    assert "; oldest reader affected 0.9.0, newest 0.9.2" in headline(summarize(results[:3]))[0]


def test_the_headline_names_each_reader_of_a_verdict_once():
    readers = {"a": ["0.10.2", "0.11.0", "0.11.1", "0.12.0"], "b": ["0.12.0", "0.12.0.1"], "c": ["0.9.2"]}
    readers |= {"d": ["0.11.1"], "e": ["0.12.0.1"]}
    crashes = [
        crash(f"t.{name}", reader, message=name, writer="0.12.0.1") for name in readers for reader in readers[name]
    ]
    summary = summarize(crashes)
    assert len(summary.causes) == 5
    assert "Readers affected, by cause: crash in 0.9.2 and 0.10.2 to 0.12.0.1" in headline(summary)[1]


def test_headline_terminal_and_page_list_causes_in_the_same_order():
    results = [
        crash("t.few", "0.9.1", message="a"),
        *(crash(f"t.many{number}", "0.12.0", message="b") for number in range(3)),
        *(wrong("0.9.0", f"t.numbers{number}", looks_like="rounding: x") for number in range(4)),
        result(Verdict.ERROR, Judgement.OWED, case="t.owed", reader="0.8.1", stage=Stage.LOWER, message="d"),
    ]
    order = ["0.12.0", "0.9.1", "0.9.0", "0.8.1"]
    made = summarize(results)
    affected = "crash in 0.9.1 and 0.12.0, numerics in 0.9.0, error in 0.8.1"
    assert f"readers affected, by cause: {affected}. " in headline(made)[1]
    cards = re.findall("<dt>read by</dt><dd>(.*?)</dd>", html_page(document(results, made)))
    assert cards == order
    text = unwrapped(*results)
    titles = [text.index(title) for title in ("BROKEN PROMISE ", "and 1 cause, 1 cell", "NUMBERS MOVED ", "OWED ")]
    assert titles == sorted(titles)

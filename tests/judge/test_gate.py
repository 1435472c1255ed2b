"""The exit code of a run, and files of a run that are read as they were written."""

import re
from types import SimpleNamespace

import msgspec
import pytest
from making import day, document, result, rules, summarize

from export_core.base.json_text import safe_json
from export_core.judge import Judgement, RunFacts, gate, judge_again
from export_core.judge.gate import RunIdentity, calendar_age, exit_code_of, facts_at_end, in_order, part_of_project
from export_core.matrix import Verdict
from export_core.matrix.selection import selection_by_policy
from export_core.policy import Policy, PolicyError
from export_core.policy.entries import DeploymentTarget, KnownFailure, Required
from export_core.policy.known_issues import known_issues
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows, load_calendar
from export_core.releases.release_list import dated_calendar
from export_core.run.errors import RunError
from export_core.run.results import RESULTS, read_summary, write_summary
from tools.stored_results import read_results

LEFTOVER = KnownFailure(
    ("gone",), ("*",), ("*",), "crash", "run", "m", "r", "o", "i", added=day("2026-10-01"), expires=day("2026-12-01")
)
PASS = result()
ANOTHER = result(case="another")
BROKEN = result(Verdict.CRASH, Judgement.BROKEN, case="broken", stage=Stage.RUN)
OUTSIDE = result(Verdict.ERROR, Judgement.OUTSIDE, case="outside", promised=False)
BONUS = result(judgement=Judgement.BONUS, case="bonus", promised=False)
KNOWN = result(Verdict.CRASH, Judgement.KNOWN, case="known")
NOT_RUN = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="not run", stage=Stage.ENVIRONMENT)


def summary(*results, **facts):
    return summarize(results, selection={"whole": True}, **facts)


@pytest.mark.parametrize(
    ("results", "code", "stale"),
    [
        ([PASS], 0, 4),
        ([PASS, BONUS, OUTSIDE, KNOWN], 0, 4),
        ([PASS, BROKEN], 1, 1),
        ([PASS, NOT_RUN], 3, 3),
        ([BROKEN, NOT_RUN], 3, 3),
    ],
)
def test_the_exit_code_is_the_worst_of_all_judgements(results, code, stale):
    assert summary(*results).exit_code == code
    assert summary(*results, policy=Policy(known_failures=(LEFTOVER,))).exit_code == stale


@pytest.mark.parametrize(("others", "is_shown"), [([], False), ([PASS], True)])
def test_a_run_of_converted_goldens_reports_no_unmatched_cases(others, is_shown):
    target = DeploymentTarget(name="serving", jaxlib="0.10.2", cases=("misspelled",))
    results = [msgspec.structs.replace(ANOTHER, converted=True), *others]
    selection = {"whole": True, "platforms": ["cpu"]}
    found = summarize(results, policy=Policy(deployed=(target,)), selection=selection).uncovered
    assert any("its `cases` match no case" in text for text in found) is is_shown


@pytest.mark.parametrize(
    ("results", "planned"),
    [
        ([PASS], 2),
        ([], 0),
        ([], 1),
        ([PASS, ANOTHER], 1),
        ([PASS, PASS], 2),
        ([PASS, PASS, ANOTHER], 2),
        ([PASS, PASS, ANOTHER], 3),
    ],
    ids=["missing", "nothing planned", "none", "too many", "one twice", "one too often", "one twice, one missing"],
)
def test_a_missing_or_second_result_makes_a_run_incomplete(results, planned):
    assert summary(*results, planned=planned).exit_code == 3


def test_missing_shards_are_named():
    (text,) = summary(PASS, planned=3, missing_shards=[Shard(2, 3)]).uncovered
    assert text.startswith("1 of 3 shards missing or not finished: --shard 2/3. Run them, then judge")


def test_duplicate_results_are_counted():
    duplicates = "2 duplicate results: expected one for each of 4 planned cells."
    assert summary(PASS, PASS, PASS, ANOTHER).uncovered == [duplicates]


def test_a_summary_has_counts_policy_and_calendar():
    made = summary(PASS, ANOTHER, BROKEN, OUTSIDE, seconds=1.23)
    assert (made.planned, made.results, made.seconds, made.resumed) == (4, 4, 1.2, 0)
    assert made.verdicts == {"crash": 1, "error": 1, "pass": 2}
    assert made.judgements == {"broken": 1, "kept": 2, "outside": 1}
    assert made.policy["windows"] == {"backward": 180, "forward": 21}
    assert made.calendar["newest_jaxlib"] == "0.12.0.1"
    listed = dated_calendar(load_calendar(), Windows(), made.as_of).releases
    assert made.calendar["releases"] == len(listed), "as `jaxexport releases list` has them"
    assert made.selection["whole"]


def test_results_and_summary_read_as_they_were_written(tmp_path):
    (tmp_path / RESULTS).write_bytes(b"".join(safe_json(written) + b"\n" for written in (PASS, BROKEN, NOT_RUN)))
    write_summary(tmp_path, summary(PASS, BROKEN))
    assert read_results(tmp_path) == [PASS, BROKEN, NOT_RUN]
    read = read_summary(tmp_path)
    assert msgspec.json.encode(read) == msgspec.json.encode(summary(PASS, BROKEN))


def test_a_result_with_any_message_is_written_on_one_line(tmp_path):
    text = {"message": 'a\nb\r\n\u2028\x85\x00"é', "stderr": "\udcff".encode("utf8", "replace").decode()}
    odd = result(Verdict.ERROR, Judgement.BROKEN, **text)
    assert len(safe_json(odd).splitlines()) == 1
    (tmp_path / RESULTS).write_bytes(safe_json(odd) + b"\n")
    assert read_results(tmp_path) == [odd]


@pytest.mark.parametrize("bad", [b"", b"{", b"{}", b"null", b'{"case": 1}', b"\xff"])
def test_a_line_that_is_not_a_result_is_located(tmp_path, bad):
    good = msgspec.json.encode(PASS)
    (tmp_path / RESULTS).write_bytes(good + b"\n" + bad + b"\n" + good + b"\n")
    with pytest.raises(RunError, match=r"results\.jsonl:2: not a result: "):
        read_results(tmp_path)


def test_an_unknown_verdict_is_an_error(tmp_path):
    (tmp_path / RESULTS).write_bytes(msgspec.json.encode(PASS).replace(b'"pass"', b'"passed"'))
    message = "results.jsonl:1: not a result: `verdict`: expected a value that this version knows, found 'passed'"
    with pytest.raises(RunError, match=re.escape(message)):
        read_results(tmp_path)


def test_results_are_ordered_by_reader_case_and_writer():
    ordered = [
        result(case="t.a", writer="0.9.2", reader="0.10.2"),
        result(case="t.a", writer="0.10.1", reader="0.10.2"),
        result(case="t.b", writer="0.9.2", reader="0.10.2"),
        result(case="t.a", writer="0.9.2", reader="0.12.0.1"),
    ]
    assert in_order(reversed(ordered)) == ordered


@pytest.mark.parametrize(
    "broken",
    [{"failed_on": ["outside: 1 cell"]}, {"custom_call_changes": [SimpleNamespace(broken=("too early",), deleted=())]}],
)
def test_fail_on_or_a_call_change_breaks_a_run_without_broken_cells(broken):
    assert exit_code_of(msgspec.structs.replace(summary(PASS), **broken)) == 1


AT_MOST_ONE = Policy(known_failures=(msgspec.structs.replace(LEFTOVER, cases=("a*",), at_most=1),))


@pytest.mark.parametrize("cell", [{"promised": True}, {"promised": False, "deployed": ("serving",)}])
def test_a_known_failure_covers_at_most_its_limit_of_cells(cell):
    cells = [result(judgement=Judgement.KEPT, case=case, **cell) for case in ("a1", "a2")]
    with pytest.raises(
        PolicyError,
        match=r"expected at most 1 cell that it can excuse \(promised, or of a deployment target\), found 2",
    ):
        summary(*cells, policy=AT_MOST_ONE)


def test_unpromised_cells_do_not_count_for_a_known_failures_limit():
    cells = [result(judgement=Judgement.KEPT, case=case, promised=False) for case in ("a1", "a2")]
    assert summary(PASS, *cells, policy=AT_MOST_ONE).results == 3


def test_a_run_records_when_it_ended_and_how_long_it_took():
    facts = RunFacts(1, day("2026-11-21"), {"whole": True}, {}, 0.0)
    after = facts_at_end(facts, 2.5)
    assert (facts.seconds, after.seconds) == (0, 2.5)
    assert after.identity.ended.microsecond == 0


def test_cells_marked_flaky_are_counted_in_the_summary():
    assert [summary(one, ANOTHER).flaky for one in (PASS, msgspec.structs.replace(PASS, flaky="crash"))] == [0, 1]
    without = {name: value for name, value in msgspec.to_builtins(summary(PASS)).items() if name != "flaky"}
    assert msgspec.convert(without, gate.Summary).flaky == 0, "an older version did not count them"


def test_a_summary_has_the_known_issues_of_its_cells():
    issue = known_issues()[1]
    shows = msgspec.structs.replace(BROKEN, upstream=issue.id)
    assert [summary(*cells).known_issues for cells in ((PASS, BROKEN), (PASS, shows))] == [[], [issue]]


# --- what the policy requires -----------------------------------------------------------------------------------------


WITHOUT_ENVIRONMENT = result(
    Verdict.NOT_RUN, Judgement.INCOMPLETE, case="b", reader="0.11.2", stage=Stage.ENVIRONMENT, promised=False
)


def run_that_asks(*results, required=None, **selection):
    """Return the summary of a whole run whose policy requires this."""
    policy = Policy(required=required or Required())
    return summarize(results, policy=policy, selection={"whole": True, **selection})


@pytest.mark.parametrize(
    ("required", "message"),
    [
        (Required(readers=("0.12.*",)), "required.readers: expected a cell that ran for 0.12.*, found 0.10.2."),
        (Required(writers=("0.9.2", "0.6.2")), "required.writers: expected a cell that ran for 0.6.2, found 0.9.2."),
        (Required(platforms=("tpu",)), "required.platforms: expected a cell that ran for tpu, found cpu."),
        (Required(cells=2), "required.cells: expected at least 2 cells that ran, found 1."),
    ],
)
def test_a_run_without_a_required_cell_is_incomplete(required, message):
    made = run_that_asks(PASS, required=required)
    assert (made.exit_code, made.uncovered) == (3, [message])
    (finding,) = document([PASS], made).findings
    assert (finding.title, finding.text) == ("INCOMPLETE", message)


def test_a_partial_run_that_lacks_required_cells_says_what_to_do():
    required = Required(cells=3, writers=("0.6.2",))
    first, second = gate.uncovered([PASS], required, ["cpu"], is_part=True)
    assert first.startswith(
        "required.cells: expected at least 3 cells that ran, found 1. `required` holds for each run"
    )
    assert "this one is a part of the project's: `can-i-deploy` counts its cells all the same. For an exit" in first
    assert first.endswith("into a file, and name it with --policy.")
    assert second == "required.writers: expected a cell that ran for 0.6.2, found 0.9.2."
    asked = run_that_asks(PASS, required=required, cases=["t.a"])
    assert asked.uncovered[0] == first
    met = run_that_asks(PASS, required=Required(platforms=("cpu",)), cases=["t.a"])
    assert (met.exit_code, met.uncovered) == (0, [])


def test_a_run_with_all_required_cells_is_kept():
    required = Required(("0.10.*",), ("0.9.2",), ("cpu",), 1)
    made = run_that_asks(PASS, required=required)
    assert (made.exit_code, made.uncovered) == (0, [])


def test_a_cell_that_was_not_run_meets_no_requirement():
    missing = result(Verdict.NOT_RUN, Judgement.OUTSIDE, reader="0.11.2")
    assert run_that_asks(result(), missing, required=Required(("0.11.2",))).exit_code == 3


@pytest.mark.parametrize(
    ("required", "judgement"),
    [
        (Required(), Judgement.INCOMPLETE),
        (Required(outside=False), Judgement.OUTSIDE),
        (Required(outside=False, readers=("0.11.*",)), Judgement.INCOMPLETE),
        (Required(outside=False, writers=("0.9.2",)), Judgement.INCOMPLETE),
        (Required(outside=False, readers=("0.10.*",)), Judgement.OUTSIDE),
    ],
)
def test_outside_the_window_only_required_cells_must_run(required, judgement):
    assert judge_again(WITHOUT_ENVIRONMENT, rules(required=required)).judgement is judgement
    inside = judge_again(WITHOUT_ENVIRONMENT, rules(Windows(400), required=required))
    assert inside.judgement is Judgement.INCOMPLETE, "inside it always must"


def test_a_run_in_which_no_cell_ran_is_incomplete():
    outside = judge_again(WITHOUT_ENVIRONMENT, rules(required=Required(outside=False)))
    made = run_that_asks(outside, required=Required(outside=False))
    assert (made.exit_code, made.uncovered) == (3, ["No cell ran, so nothing was tested."])
    missing = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="c", stage=Stage.ENVIRONMENT)
    both = run_that_asks(outside, missing, required=Required(outside=False))
    assert (both.exit_code, both.uncovered) == (3, []), "the cell that had to run is reported already"


@pytest.mark.parametrize(
    ("commit", "changed", "text"),
    [("a1", True, "a1 with changes"), ("a1", False, "a1"), ("", True, ""), ("", None, "")],
)
def test_a_checkout_is_named_by_its_commit_and_changes(commit, changed, text):
    assert RunIdentity(commit=commit, changed=changed).checkout == text


def test_a_run_of_all_that_the_policy_selects_is_not_partial():
    whole = selection_by_policy(Policy())
    assert part_of_project(whole, Policy()) == ""
    assert part_of_project(whole, Policy(), Shard(1, 7)) == "shard 1/7"


@pytest.mark.parametrize(
    ("newest", "text"),
    [
        ("", ""),  # a run by an earlier version, which did not record it
        ("2026-09-22", ""),
        ("2026-09-21", "the calendar of releases ends on 2026-09-21, 61 days before"),
    ],
)
def test_only_a_calendar_older_than_calendar_days_is_reported(newest, text):
    assert calendar_age(newest, day("2026-11-21"), Policy(calendar_days=60)) == text

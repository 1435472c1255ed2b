"""The judgement of a verdict, which depends only on the build dates of writer and reader."""

import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import NEWEST, golden, release, result, rules

from export_core.goldens.manifest import ConvertedFrom
from export_core.judge import Judgement, Result, judge, judge_again
from export_core.judge.judgement import judge_verdict
from export_core.matrix import Cell, Verdict
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.readers.worker.protocol import Cost, Stage, Timings
from export_core.releases import Windows, load_calendar, promise

KEPT, BROKEN, BONUS, OUTSIDE, INCOMPLETE = (
    Judgement.KEPT, Judgement.BROKEN, Judgement.BONUS, Judgement.OUTSIDE, Judgement.INCOMPLETE,
)  # fmt: skip

TABLE = [  # verdict, inside the window, outside
    (Verdict.PASS, KEPT, BONUS),
    (Verdict.COMPILED, KEPT, BONUS),
    (Verdict.CONVERTED, BONUS, BONUS),
    (Verdict.NUMERICS, BROKEN, BROKEN),
    (Verdict.REFUSED, BROKEN, OUTSIDE),
    (Verdict.ERROR, BROKEN, OUTSIDE),
    (Verdict.CRASH, BROKEN, OUTSIDE),
    (Verdict.TIMEOUT, BROKEN, OUTSIDE),
    (Verdict.NOT_RUN, INCOMPLETE, INCOMPLETE),
]


@pytest.mark.parametrize(("verdict", "inside", "outside"), TABLE, ids=[str(row[0]) for row in TABLE])
def test_verdict_and_window_decide_the_judgement(verdict, inside, outside):
    assert {row[0] for row in TABLE} == set(Verdict)
    assert judge_verdict(verdict, promised=True) is inside
    assert judge_verdict(verdict, promised=False) is outside
    assert judge_verdict(verdict, promised=True, required=False) is inside
    optional = OUTSIDE if verdict is Verdict.NOT_RUN else outside
    assert judge_verdict(verdict, promised=False, required=False) is optional


def judged(writer: str, reader: str, verdict=Verdict.CRASH, windows=None, **outcome) -> Result:
    """Return the judged result of a cell."""
    cell = Cell(golden(jaxlib=writer), release(reader), "cpu")
    return judge(new_result(cell, Stage.RUN, verdict, **outcome), cell.golden, rules(windows))


@pytest.mark.parametrize(
    ("writer", "reader", "direction", "days", "promised", "until"),
    [
        ("0.9.2", "0.9.2", "same", 0, True, "2026-09-14"),
        ("0.9.2", "0.11.1", "backward", 152, True, "2026-09-14"),
        ("0.9.2", "0.11.2", "backward", 183, False, "2026-09-14"),
        ("0.9.2", "0.9.1", "forward", 18, True, "2026-02-25"),
        ("0.9.2", "0.9.0.1", "forward", 43, False, "2026-02-25"),
        ("0.9.0", "0.8.3", "backward", 8, True, "2026-07-19"),
    ],
)
def test_a_result_has_direction_days_and_promise(writer, reader, direction, days, promised, until):
    cell = judged(writer, reader)
    dates = cell.direction, cell.days, cell.promised, str(cell.promised_until)
    assert dates == (direction, days, promised, until)
    assert cell.judgement is (BROKEN if promised else OUTSIDE)


@given(
    st.sampled_from(load_calendar().versions()),
    st.sampled_from(load_calendar().versions()),
    st.sampled_from(list(Verdict)),
    st.integers(0, 400),
    st.integers(0, 100),
)
def test_every_judgement_follows_from_promise_and_table(writer, reader, verdict, backward, forward):
    windows = Windows(backward, forward)
    cell = judged(writer, reader, verdict, windows)
    is_promised = promise(cell.writer.built, cell.reader.built, windows).promised
    row = next(row for row in TABLE if row[0] is verdict)
    assert cell.judgement is (row[1] if is_promised else row[2])
    assert judge_again(cell, rules(windows)) == cell, "judging again says the same"


def test_other_windows_change_only_promise_and_judgement():
    before = judged("0.9.2", "0.11.2")
    after = judge_again(before, rules(Windows(200, 21)))
    assert (before.judgement, after.judgement) == (OUTSIDE, BROKEN)
    assert (after.promised, str(after.promised_until)) == (True, "2026-10-04")
    changed = {name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)}
    assert changed == {"promised", "promised_until", "judgement"}


def test_a_line_of_results_has_exactly_the_listed_fields():
    line = msgspec.json.decode(msgspec.json.encode(judged("0.9.2", "0.10.2")))
    assert " ".join(line) == (
        "case golden writer reader platform mode stage verdict message signal stderr max_abs_error max_rel_error "
        "seconds custom_calls direction days promised promised_until judgement reproduce flaky device driver foreseen "
        "forecast max_noise_error allowed outputs as_written cost timings test converted devices must_be_refused "
        "upstream deployed looks_like error_grid processors cause control facts"
    )
    assert {*line["writer"]} == {"jax", "jaxlib", "platform", "built"}
    assert {*line["reader"]} == {"jax", "jaxlib", "built", "runtime", "with_settings"}
    assert line["writer"]["built"] == "2026-03-18"


def test_judging_does_not_change_the_outcome():
    cell = Cell(golden(jaxlib="0.9.2"), release("0.10.2"), "cpu")
    outcome = new_result(cell, Stage.COMPARE, Verdict.NUMERICS, "m", signal=11, stderr="e", seconds=1.5, outputs="0a")
    made = judge(outcome, cell.golden, rules())
    changed = {name for name in made.__struct_fields__ if getattr(outcome, name) != getattr(made, name)}
    assert changed == {"direction", "days", "promised", "promised_until", "judgement"}
    assert msgspec.json.decode(msgspec.json.encode(made), type=Result) == made


def test_an_outcome_not_yet_judged_is_incomplete():
    outcome = new_result(Cell(golden(), release(NEWEST), "cpu"), Stage.COMPARE, Verdict.PASS)
    assert (outcome.judgement, outcome.promised) == (INCOMPLETE, False)


def test_equal_costs_and_times_of_results_are_one_object():
    first, second = (
        judged("0.9.2", "0.10.2", Verdict.PASS, cost=Cost(temp_bytes=1, flops=1.0), timings=Timings(run=float("0.25")))
        for _ in range(2)
    )
    assert first.cost is second.cost
    assert first.timings.run is second.timings.run
    assert (first.cost, first.timings) == (Cost(temp_bytes=1, flops=1.0), Timings(run=0.25))
    assert type(first.cost.flops) is float, "not the whole number that is equal"


def test_a_result_names_writer_reader_and_golden():
    cell = judged("0.10.1", "0.11.2")
    assert (cell.writer.jax, cell.writer.jaxlib, cell.writer.platform) == ("0.10.2", "0.10.1", "cpu")
    assert (cell.reader.jax, cell.reader.jaxlib) == ("0.12.0.1", "0.11.2")
    assert cell.reader.built - cell.writer.built == datetime.timedelta(days=cell.days)
    assert cell.golden == "tests.test_a.test_f/0.10.1-jax0.10.2-cpu"


def test_judging_again_changes_no_result_of_the_test_helpers():
    assert judge_again(result(), rules()) == result()


@pytest.mark.parametrize(
    ("verdict", "shown"), [(Verdict.PASS, Verdict.CONVERTED), (Verdict.COMPILED, Verdict.CONVERTED),
                           (Verdict.CRASH, Verdict.CRASH)]
)  # fmt: skip
def test_a_converted_golden_that_works_has_the_verdict_converted(verdict, shown):
    converted = golden(converted_from=ConvertedFrom("0" * 64, NEWEST, "rewritten", (), "jaxexport"))
    cell = judge(new_result(Cell(converted, release(NEWEST), "cpu"), Stage.RUN, verdict), converted, rules())
    assert (cell.verdict, cell.promised, cell.converted) == (shown, False, True)


def test_a_failing_cell_shows_its_known_issue(tmp_path):
    (tmp_path / "issues.yaml").write_text("- {id: mine, title: It dies, todo: Wait, message: died, outcome: crash}")
    policy = Policy(known_issues=str(tmp_path / "issues.yaml"))
    cell = Cell(golden(), release(NEWEST), "cpu")
    outcome = new_result(cell, Stage.RUN, Verdict.CRASH, "died")
    assert judge(outcome, cell.golden, policy).upstream == "mine"

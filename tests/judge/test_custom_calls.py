"""The life of a custom call: what must hold on each day, and what the results of a run show about it."""

import datetime
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import day, document, result, summarize

from export_core.judge import Judgement
from export_core.judge.custom_call_changes import Phase, judge_changes, status_of
from export_core.matrix import Verdict
from export_core.policy import Policy, PolicyError
from export_core.policy.entries import CustomCallChange
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows, promise
from export_core.report.wording import headline
from export_core.run.results import SUMMARY, read_summary

# `introduced` is the day after 0.9.0.1 (2026-02-03) was built, `release` the day of 0.9.1 (2026-02-28).
CHANGE = CustomCallChange(
    "scale_v1", "scale_v2", day("2026-02-04"), day("2026-02-28"), "adds an offset", "me", "https://example.org/1"
)
TODAY = day("2026-11-21")


def change(**changes):
    """Return `CHANGE` with other values."""
    return msgspec.structs.replace(CHANGE, **changes)


def ran(writer, reader, *calls, verdict=Verdict.PASS, **changes):
    """Return the result of a cell whose artifact has these custom calls."""
    promised = promise(day_of(writer), day_of(reader), Windows()).promised
    return result(verdict, writer=writer, reader=reader, custom_calls=calls, promised=promised, **changes)


def day_of(jaxlib):
    return result(writer=jaxlib).writer.built


def judged(*results, declared=CHANGE, as_of=TODAY, windows=None):
    (status,) = judge_changes(results, [declared], windows or Windows(), as_of)
    return status


# --- the days ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("date", "phase"),
    [
        ("2026-02-03", Phase.BEFORE),
        ("2026-02-04", Phase.FORWARD),
        ("2026-02-24", Phase.FORWARD),
        ("2026-02-25", Phase.UNRELEASED),
        ("2026-02-28", Phase.BACKWARD),
        ("2026-08-27", Phase.BACKWARD),
        ("2026-08-28", Phase.OVER),
    ],
)
def test_the_day_decides_the_phase_of_a_custom_call_change(date, phase):
    status = status_of(CHANGE, Windows(), day(date))
    assert (status.phase, status.new_from, status.delete_from) == (phase, day("2026-02-25"), day("2026-08-28"))


OLD = "scale_v1 until the end of 2026-08-27: the release of 2026-02-28 and 180 days"


@pytest.mark.parametrize(
    ("date", "sentences"),
    [
        ("2026-02-03", ["exports use scale_v1; the change begins on 2026-02-04", f"readers run {OLD}"]),
        (
            "2026-02-04",
            [
                "exports use scale_v1 until 2026-02-25, 21 days after scale_v2 was introduced: readers built before "
                "2026-02-04 are still promised, and do not have it",
                f"readers run scale_v2 too, and {OLD}",
            ],
        ),
        (
            "2026-08-28",
            [
                "exports may use scale_v2 since 2026-02-25: every promised reader has it",
                "readers no longer have to run scale_v1 since 2026-08-28",
            ],
        ),
    ],
)
def test_a_custom_call_change_says_what_exports_and_readers_must_do(date, sentences):
    assert list(status_of(CHANGE, Windows(), day(date)).must) == sentences


def test_a_target_replaced_1_february_may_be_deleted_1_august():
    """The example of JAX's own note on these windows, in which the window's last day is included."""
    status = status_of(change(introduced=day("2026-01-01"), release=day("2026-02-01")), Windows(), day("2026-07-31"))
    assert promise(day("2026-02-01"), day("2026-07-31"), Windows()).promised
    assert (status.phase, status.delete_from) == (Phase.BACKWARD, day("2026-08-01"))


def test_without_a_declared_release_readers_must_run_the_old_target():
    status = status_of(change(release=None), Windows(), day("2036-01-01"))
    assert (status.phase, status.delete_from) == (Phase.UNRELEASED, None)
    assert status.must[1] == (
        "readers run scale_v2 too, and scale_v1: no release is declared, so the 180 days have not begun"
    )


def test_readers_must_still_run_a_target_removed_without_a_successor():
    status = status_of(change(new=None), Windows(), day("2026-02-28"))
    assert (status.phase, status.new_from) == (Phase.BACKWARD, day("2026-02-04"))
    assert status.must == ("exports no longer have to use scale_v1 since 2026-02-04", f"readers run {OLD}")


@pytest.mark.parametrize(("days", "is_later"), [(-1, False), (0, False), (1, True)])
def test_only_exports_after_the_release_extend_the_old_targets_life(days, is_later):
    status = status_of(CHANGE, Windows(), TODAY - datetime.timedelta(200), CHANGE.release + datetime.timedelta(days))
    assert status.must[1].endswith(", and longer because exports continued to use it") is is_later


LENGTHS = st.builds(Windows, st.integers(0, 60), st.integers(0, 60))
OFFSETS = st.integers(-130, 260)  # days around `introduced` with every edge of such windows


def later(date, days):
    return date + datetime.timedelta(days=days)


@st.composite
def changes(draw):
    introduced = draw(st.dates(datetime.date(2020, 1, 1), datetime.date(2040, 12, 31)))
    release = draw(st.none() | st.integers(0, 100).map(lambda days: later(introduced, days)))
    return change(introduced=introduced, release=release, new=draw(st.sampled_from(["scale_v2", None])))


@st.composite
def promised_pairs(draw):
    """Draw a change, windows, and build dates of a writer and a reader to which its artifacts are promised."""
    declared, windows = draw(changes()), draw(LENGTHS)
    writer = later(declared.introduced, draw(OFFSETS))
    reader = later(writer, draw(st.integers(-windows.forward_days, windows.backward_days)))
    assert promise(writer, reader, windows).promised
    return declared, windows, writer, reader


@given(changes(), LENGTHS, OFFSETS)
def test_phases_of_a_custom_call_change_never_go_back(declared, windows, days):
    today, tomorrow = (status_of(declared, windows, later(declared.introduced, offset)) for offset in (days, days + 1))
    assert (today.new_from, today.delete_from) == (tomorrow.new_from, tomorrow.delete_from)
    assert list(Phase).index(today.phase) <= list(Phase).index(tomorrow.phase)


@given(changes(), LENGTHS, OFFSETS)
def test_readers_run_a_target_while_exports_must_use_it(declared, windows, days):
    date = later(declared.introduced, days)
    status = status_of(declared, windows, date)
    assert status.phase is not Phase.OVER or date >= status.new_from


@given(promised_pairs())
def test_readers_already_run_the_new_target_of_promised_exports(pair):
    declared, windows, writer, reader = pair
    if declared.new and writer >= status_of(declared, windows, writer).new_from:
        assert status_of(declared, windows, reader).phase is not Phase.BEFORE


@given(promised_pairs())
def test_readers_still_run_the_old_target_of_promised_exports(pair):
    declared, windows, writer, reader = pair
    assert status_of(declared, windows, reader, last_writer=writer).phase is not Phase.OVER


# --- the goldens ------------------------------------------------------------------------------------------------------


def test_a_call_of_the_new_target_too_early_is_broken():
    late = change(introduced=day("2026-02-08"))  # 20 days before 0.9.1 was built
    (text,) = judged(ran("0.9.1", "0.9.1", "scale_v2"), ran("0.9.1", "0.9.2", "scale_v2"), declared=late).broken
    assert text == (
        "tests.test_a.test_f/0.9.1-cpu, written by jaxlib 0.9.1 (built 2026-02-28), calls scale_v2: expected scale_v1 "
        "in exports until 2026-03-01. The golden is promised to readers built since 2026-02-07, and those built before "
        "2026-02-08 do not have scale_v2. Let the lowering use scale_v1 where ctx.is_forward_compat() is true, export "
        "without jax_export_ignore_forward_compatibility, or correct `introduced`."
    )


@pytest.mark.parametrize(
    ("introduced", "calls"), [("2026-02-07", "scale_v2"), ("2026-02-08", "scale_v1"), ("2026-02-08", "another")]
)
def test_a_call_of_the_new_target_after_21_days_is_not_broken(introduced, calls):
    assert judged(ran("0.9.1", "0.9.1", calls), declared=change(introduced=day(introduced))).broken == ()


def test_the_policys_forward_window_decides_what_is_too_early():
    golden = ran("0.9.1", "0.9.1", "scale_v2")
    assert judged(golden, windows=Windows(forward_days=24)).broken == ()
    assert len(judged(golden, windows=Windows(forward_days=25)).broken) == 1


def test_a_change_is_measured_only_in_promised_readers_that_have_it():
    status = judged(
        ran("0.9.0.1", "0.9.0.1", "scale_v1"),  # this reader is from before the change
        ran("0.9.0.1", "0.9.1", "scale_v1"),
        ran("0.9.0.1", "0.10.2", "scale_v1", verdict=Verdict.CRASH),
        ran("0.9.0.1", "0.11.0", "scale_v1", verdict=Verdict.NOT_RUN),
        ran("0.9.0.1", "0.11.2", "scale_v1"),  # outside the window
        ran("0.9.0", "0.10.2", "scale_v1", verdict=Verdict.ERROR, golden="t/0.9.0-cpu"),
        ran("0.9.1", "0.10.2", "scale_v2"),
    )
    assert (status.measured, status.passed, status.cells) == (("tests.test_a.test_f/0.9.0.1-cpu",), 1, 3)
    assert status.goldens == ("t/0.9.0-cpu", "tests.test_a.test_f/0.9.0.1-cpu")
    compiled = judged(ran("0.9.0.1", "0.9.1", "scale_v1", verdict=Verdict.COMPILED))
    assert (compiled.measured, compiled.cells) == ((), 1), "what was only compiled measures nothing"


def test_a_reader_built_on_the_day_of_a_change_measures_it():
    introduced = change(introduced=day_of("0.9.2"), release=day_of("0.10.0"))
    status = judged(ran("0.9.1", "0.9.2", "scale_v1"), ran("0.9.1", "0.9.1", "scale_v1"), declared=introduced)
    assert (status.cells, status.passed) == (1, 1)


def test_a_custom_call_change_ignores_releases_after_the_as_of_day():
    results = [ran("0.9.0.1", "0.9.1", "scale_v1"), ran("0.9.1", "0.9.1", "scale_v2")]
    early = judged(*results, as_of=day("2026-02-27"))
    assert (early.phase, early.goldens, early.measured) == (Phase.UNRELEASED, (), ())
    assert judged(*results, as_of=day("2026-02-28")).measured == ("tests.test_a.test_f/0.9.0.1-cpu",)


def test_a_late_export_postpones_deleting_the_old_target():
    last_of_two = judged(ran("0.10.2", "0.11.0", "scale_v1"), ran("0.9.2", "0.9.2", "scale_v1"))
    assert last_of_two.delete_from == day_of("0.10.2") + datetime.timedelta(days=181)
    status = judged(ran("0.9.2", "0.9.2", "scale_v1"))
    last = result(writer="0.9.2").promised_until
    assert status.delete_from == last + datetime.timedelta(days=1) == day("2026-09-15")
    assert judged(ran("0.9.2", "0.9.2", "scale_v1"), as_of=day("2026-09-14")).must[1] == (
        "readers run scale_v2 too, and scale_v1 until the end of 2026-09-14: the release of 2026-02-28 and 180 days, "
        "and longer because exports continued to use it"
    )


def test_a_custom_call_change_ignores_cells_with_other_calls():
    status = judged(ran("0.9.1", "0.10.2", "another"))
    assert (status.broken, status.goldens, status.measured, status.cells) == ((), (), (), 0)


# --- how it is reported -----------------------------------------------------------------------------------------------


def summary(*results, declared=CHANGE):
    return summarize(results, policy=Policy(custom_call_changes=(declared,)))


def test_a_call_of_the_new_target_too_early_exits_with_1():
    late = change(introduced=day("2026-02-14"))
    early, old = ran("0.9.1", "0.9.1", "scale_v2"), ran("0.9.0.1", "0.9.1", "scale_v1")
    assert summary(early, old).exit_code == 0
    assert summary(early, old, declared=late).exit_code == 1
    missing = {"verdict": Verdict.NOT_RUN, "stage": Stage.ENVIRONMENT, "judgement": Judgement.INCOMPLETE}
    not_run = ran("0.9.0.1", "0.10.2", "scale_v1", **missing)
    assert summary(early, not_run, declared=late).exit_code == 3, "what could not be completed outranks what is broken"


LACKS = {
    "stage": Stage.COMPILE,
    "judgement": Judgement.OUTSIDE,
    "message": "No registered implementation for untyped custom call to scale_v1 for Host",
}


@pytest.mark.parametrize(
    ("release", "changes", "code"),
    [
        ("2026-02-28", {}, 1),
        (None, {}, 1),
        ("2025-08-01", {}, 0),  # its last day was before the reader
        ("2026-02-28", {"message": "older than the 6-month backward-compatibility window"}, 0),
        ("2026-02-28", {"judgement": Judgement.KNOWN}, 0),
    ],
)
def test_deleting_the_old_target_too_early_is_broken(release, changes, code):
    declared = change(introduced=day("2025-07-01"), new=None, release=day(release) if release else None)
    works = ran("0.9.1", "0.9.1")
    lacks = ran("0.6.2", "0.9.2", "scale_v1", verdict=Verdict.ERROR, **{**LACKS, **changes})
    assert not lacks.promised, "outside its own window"
    made = summary(works, lacks, declared=declared)
    assert made.exit_code == code
    assert made.custom_call_changes[0].broken == ()
    assert bool(made.custom_call_changes[0].deleted) == bool(code)
    if code:
        (text,) = made.custom_call_changes[0].deleted
        assert headline(made)[0].startswith("BROKEN: 1 cell in which a custom call was deleted too early")
        until = "until the end of 2026-08-27" if release else "as long as no release is declared"
        assert (
            f"calls scale_v1, which jaxlib 0.9.2 (built 2026-03-18) does not run: readers must run it {until}," in text
        )


def test_a_violated_custom_call_change_is_reported_first():
    results = [ran("0.9.1", "0.9.1", "scale_v2"), ran("0.9.0.1", "0.9.1", "scale_v1")]
    findings = document(results, summary(*results, declared=change(introduced=day("2026-02-14")))).findings
    assert [finding.title for finding in findings] == ["BROKEN PROMISE", "custom call"]
    assert findings[0].text.startswith(
        "tests.test_a.test_f/0.9.1-cpu, written by jaxlib 0.9.1 (built 2026-02-28), calls scale_v2"
    )
    assert findings[1].text.splitlines() == [
        "scale_v1 → scale_v2: over (adds an offset; owner me, https://example.org/1).",
        "  must hold  exports may use scale_v2 since 2026-03-07: every promised reader has it",
        "             readers no longer have to run scale_v1 since 2026-08-28",
        "  measured   tests.test_a.test_f/0.9.0.1-cpu: 1 of 1 promised cells passes in readers that have the change",
        "  delete     scale_v1 from 2026-08-28 on, and the goldens that call it: tests.test_a.test_f/0.9.0.1-cpu",
    ]


def test_a_change_that_no_cell_measures_is_reported():
    results = [ran("0.9.1", "0.9.1", "scale_v2")]
    (finding,) = document(results, summary(*results, declared=change(release=None, new=None))).findings
    first, *_, measured, delete = finding.text.splitlines()
    assert first == "scale_v1 → nothing: unreleased (adds an offset; owner me, https://example.org/1)."
    assert [measured, delete] == [
        "  measured   nothing: no promised reader that has the change ran a golden of scale_v1",
        "  delete     scale_v1 on a day that depends on the release, and the goldens that call it: none",
    ]


def test_a_summary_without_call_changes_is_read_as_having_none(tmp_path):
    made = json.loads(msgspec.json.encode(summary(ran("0.9.1", "0.9.1", "scale_v2"))))
    assert len(made.pop("custom_call_changes")) == 1
    (tmp_path / SUMMARY).write_text(json.dumps(made))
    assert read_summary(tmp_path).custom_call_changes == []


# --- the policy -------------------------------------------------------------------------------------------------------

ENTRY = """
custom_call_changes:
  - old: scale_v1
    new: scale_v2
    introduced: 2026-02-04
    release: 2026-02-28
    reason: adds an offset
    owner: me
    issue: https://example.org/1
"""


def test_a_policy_can_declare_a_custom_call_change(load):
    assert load(ENTRY).custom_call_changes == (CHANGE,)
    text = ENTRY.replace("scale_v2", "null").replace("2026-02-28", "null")
    assert load(text).custom_call_changes == (change(new=None, release=None),)
    same_day = change(release=CHANGE.introduced)
    assert load(ENTRY.replace("2026-02-28", "2026-02-04")).custom_call_changes == (same_day,)


AGAIN = ENTRY.partition("\n")[2].partition("\n")[2].replace("scale_v2", "scale_v3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY.replace("release: 2026-02-28", "release: 2026-02-03"),
         r"\[0\]\.release: expected 2026-02-04 \(introduced\) or later, or null .*found 2026-02-03"),
        (ENTRY.replace("scale_v2", "scale_v1"), r"\[0\]\.new: expected a name other than old, found 'scale_v1' twice"),
        (ENTRY.replace("old: scale_v1", "old: ' '"), r"\[0\]\.old: expected text, found none"),
        (ENTRY.replace("new: scale_v2", "new: ''"), r"\[0\]\.new: expected text, found none"),
        (ENTRY.replace("owner: me", "owner: ''"), r"\[0\]\.owner: expected text, found none"),
        (ENTRY + AGAIN, r"\[1\]\.old: 'scale_v1' already changes in .*\[0\]"),
        (ENTRY.replace("introduced: 2026-02-04", ""), r"\[0\]: lacks the key `introduced`"),
        (ENTRY.replace("2026-02-04", "soon"), r"\[0\]\.introduced: .*'soon'"),
        (ENTRY.replace("introduced", "introducd"), r".*Did you mean `introduced`\?"),
    ],
)  # fmt: skip
def test_a_wrong_custom_call_change_is_an_error_with_its_line(load, text, message):
    with pytest.raises(PolicyError, match=rf"export_compat\.yaml:\d+: custom_call_changes{message}"):
        load(text)

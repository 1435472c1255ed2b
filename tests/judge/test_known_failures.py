"""A known failure must fail just so, and the list must stay true."""

from __future__ import annotations

import datetime

import msgspec
import pytest
from making import day, result

from export_core.judge import Judgement, judge_again, summarize
from export_core.judge.known import covers, stale_entries
from export_core.matrix import Stage, Verdict
from export_core.policy import KnownFailure, Policy, PolicyError, load_policy
from export_core.releases import Windows

ENTRY = KnownFailure(
    cases=("t.test_chol*",),
    writers=("0.9.*",),
    readers=("0.10.0", "0.10.2"),
    verdict="crash",
    stage="run",
    message="signal 11",
    reason="LAPACK starts late",
    owner="me",
    issue="https://example.org/1",
    added=day("2026-10-01"),
    expires=day("2026-12-01"),
)
TODAY = day("2026-11-21")


def crash(case="t.test_cholesky", reader="0.10.2", message="died by signal 11 (SIGSEGV)", **changes):
    judged = result(
        Verdict.CRASH, Judgement.BROKEN, case=case, reader=reader, stage=Stage.RUN, message=message, signal=11, **changes
    )  # fmt: skip
    return judge_again(judged, Windows(), [ENTRY])


def stale(*results, entry=ENTRY, as_of=TODAY, whole=True):
    return stale_entries(results, [entry], as_of, whole=whole)


def test_a_broken_cell_that_fails_just_so_is_known_and_the_list_is_true():
    assert crash().judgement is Judgement.KNOWN
    assert stale(crash()) == []


@pytest.mark.parametrize(
    ("changes", "covered"),
    [
        ({}, True),
        ({"case": "t.test_cholesky[4]"}, True),
        ({"case": "t.test_eigh"}, False),
        ({"reader": "0.10.1"}, False),
        ({"platform": "cuda"}, False),
    ],
)
def test_an_entry_covers_the_cells_its_globs_name(changes, covered):
    found = crash(**changes)
    assert covers(ENTRY, found) is covered
    assert (found.judgement is Judgement.KNOWN) is covered


def test_an_entry_with_brackets_names_the_case_of_that_name():
    entry = msgspec.structs.replace(ENTRY, cases=("t.test_f[4-x]",))
    assert covers(entry, crash("t.test_f[4-x]"))
    assert not covers(entry, crash("t.test_f[5-x]"))


@pytest.mark.parametrize(
    "changes", [{"message": "died by signal 6 (SIGABRT)"}, {"stage": Stage.COMPILE}, {"verdict": Verdict.TIMEOUT}]
)
def test_a_cell_that_fails_in_another_way_is_broken_and_the_list_is_stale(changes):
    other = judge_again(msgspec.structs.replace(crash(), **changes), Windows(), [ENTRY])
    assert other.judgement is Judgement.BROKEN
    (said,) = stale(other)
    assert "1 of its cells fail in another way: expected crash in stage run with 'signal 11', found" in said
    assert "LAPACK starts late; owner me, https://example.org/1" in said


def test_a_cell_that_passes_now_makes_the_list_stale():
    now = result(Verdict.PASS, case="t.test_cholesky")
    (said,) = stale(now, crash("t.test_chol2"))
    assert "1 of its cells pass now, such as t.test_cholesky/0.9.2-cpu. Take them off the list." in said


def test_an_entry_is_stale_the_day_after_it_expires():
    assert stale(crash(), as_of=day("2026-12-01")) == []
    (said,) = stale(crash(), as_of=day("2026-12-02"))
    assert "expired on 2026-12-01. Decide again." in said


def test_an_entry_that_matches_no_cell_of_a_whole_run_is_a_leftover():
    (said,) = stale(result())
    assert "matches no promised cell of this run. Delete it." in said
    assert stale(result(), whole=False) == []


def test_an_entry_that_only_meets_cells_outside_the_window_is_a_leftover():
    outside = result(Verdict.CRASH, Judgement.OUTSIDE, case="t.test_cholesky", promised=False)
    assert len(stale(outside, result())) == 1


def test_an_entry_for_a_platform_that_was_not_run_is_no_leftover():
    assert stale(result(), entry=msgspec.structs.replace(ENTRY, platforms=("tpu",))) == []
    assert len(stale(result(platform="tpu"), entry=msgspec.structs.replace(ENTRY, platforms=("tpu",)))) == 1


def test_an_entry_made_after_the_day_that_is_asked_about_is_no_leftover():
    assert stale(result(), as_of=day("2026-09-30")) == []


def test_a_permanent_entry_never_expires():
    permanent = msgspec.structs.replace(ENTRY, expires=None, permanent=True, approver="boss")
    assert stale(crash(), entry=permanent, as_of=day("2036-01-01")) == []


def test_a_known_failure_never_excuses_what_is_outside_the_window_and_wrong():
    wrong = result(Verdict.NUMERICS, case="t.test_cholesky", stage=Stage.COMPARE, message="output 0")
    entry = msgspec.structs.replace(ENTRY, verdict="numerics", stage="compare", message="output 0")
    assert judge_again(wrong, Windows(), [entry]).judgement is Judgement.KNOWN, "inside, and listed"
    assert stale(judge_again(wrong, Windows(0, 0), [entry]), result(), entry=entry) != [], (
        "outside it is no promised cell"
    )


def test_every_entry_is_looked_at_on_its_own():
    entries = [
        ENTRY,
        msgspec.structs.replace(ENTRY, cases=("gone",)),
        msgspec.structs.replace(ENTRY, expires=day("2026-11-01")),
    ]
    said = stale_entries([crash()], entries, TODAY, whole=True)
    assert [text.split(" ")[0] for text in said] == ["known_failures[1]", "known_failures[2]"]
    found = summarize(
        [crash()],
        planned=1,
        policy=Policy(known_failures=tuple(entries)),
        as_of=TODAY,
        selection={"whole": True},
        seconds=0,
    )
    assert (found.stale, found.exit_code) == (said, 4)


# --- what a policy file may say ---------------------------------------------------------------------------------------

GOOD = """
known_failures:
  - {cases: [a], writers: ["*"], readers: ["*"], verdict: crash, stage: run, message: m, reason: r, owner: o, issue: i,
     added: 2026-10-01, expires: 2026-12-30}
"""


def policy(tmp_path, old: str = "", new: str = "") -> Policy:
    assert old in GOOD
    path = tmp_path / "export_compat.yaml"
    path.write_text(GOOD.replace(old, new))
    return load_policy(path)


def test_ninety_days_are_allowed_and_one_more_is_not(tmp_path):
    (entry,) = policy(tmp_path).known_failures
    assert entry.expires - entry.added == datetime.timedelta(days=90)
    with pytest.raises(
        PolicyError, match=r"known_failures\[0\]: expires 2026-12-31 is 91 days after added; at most 90"
    ):
        policy(tmp_path, "2026-12-30", "2026-12-31")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", expires: 2026-12-30", "", "expected expires .* or permanent: true with an approver"),
        ("expires: 2026-12-30", "permanent: true", "permanent: true needs an approver"),
        ("expires: 2026-12-30", "permanent: true, approver: ''", "permanent: true needs an approver"),
        ("owner: o", "owner: ' '", "owner: expected text, found none"),
        ("issue: i", "issue: ''", "issue: expected text, found none"),
        ("reason: r, ", "", "missing required field `reason`"),
        ("verdict: crash", "verdikt: crash", "unknown field `verdikt`.* Did you mean `verdict`"),
        ("added: 2026-10-01", "added: lately", "added"),
    ],
)
def test_an_entry_that_is_not_whole_is_refused(tmp_path, old, new, said):
    with pytest.raises(PolicyError, match=said):
        policy(tmp_path, old, new)


def test_a_permanent_entry_needs_an_approver_and_no_expiry(tmp_path):
    (entry,) = policy(tmp_path, "expires: 2026-12-30", "permanent: true, approver: boss").known_failures
    assert (entry.permanent, entry.approver, entry.expires) == (True, "boss", None)

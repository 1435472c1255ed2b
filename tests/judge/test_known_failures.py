"""Known failures: what an entry excuses, when it is stale, and the entries that `judge --propose` writes."""

import datetime
import re

import msgspec
import pytest
import yaml
from commands import assert_bad_input, finished
from hypothesis import given, settings
from hypothesis import strategies as st
from making import day, golden, of_runtime, release, result, rules, summarize, with_causes

from export_core.judge import Judgement, judge_again
from export_core.judge.causes import causes_in
from export_core.judge.known import (
    Scope,
    check_width,
    covers,
    expired_by_noun,
    matching_entry,
    may_excuse,
    promised_scopes,
    scope_of,
    stale_entries,
)
from export_core.matrix import Cell, Verdict
from export_core.policy import Policy, PolicyError, load_policy
from export_core.policy.entries import DeploymentTarget, KnownFailure, Quirk
from export_core.policy.run_options import Selection, Shard
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows, load_calendar
from export_core.report.document import ReportError
from export_core.report.policy_text import proposal

ENTRY = KnownFailure(
    *(("t.test_chol*", "t.gone"), ("0.9.*", "0.8.*"), ("0.10.0", "0.10.2"), "crash", "run", "signal 11"),
    *("LAPACK starts late", "me", "https://example.org/1"),
    added=day("2026-10-01"),
    expires=day("2026-12-01"),
)
TODAY = day("2026-11-21")
SEGV = "died by signal 11 (SIGSEGV)"


def dying(case="t.a", reader="0.10.2", message=SEGV, **changes):
    died = {"stage": Stage.RUN, "message": message, "signal": 11, **changes}
    return result(Verdict.CRASH, Judgement.BROKEN, case=case, reader=reader, **died)


def crash(case="t.test_cholesky", **changes):
    """Return a crash that is judged by a policy with `ENTRY`."""
    return judge_again(dying(case, **changes), rules(known=[ENTRY]))


def stale(*results, entry=ENTRY, as_of=TODAY, whole=True):
    return stale_entries(results, rules(known=[entry]), as_of, whole=whole)


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
    cell = crash(**changes)
    assert covers(ENTRY, scope_of(cell)) is covered
    assert (cell.judgement is Judgement.KNOWN) is covered


def test_brackets_in_an_entrys_case_are_matched_literally():
    entry = msgspec.structs.replace(ENTRY, cases=("t.test_f[4-x]",))
    assert covers(entry, scope_of(crash("t.test_f[4-x]")))
    assert not covers(entry, scope_of(crash("t.test_f[5-x]")))


@pytest.mark.parametrize(
    "changes", [{"message": "died by signal 6 (SIGABRT)"}, {"stage": Stage.COMPILE}, {"verdict": Verdict.TIMEOUT}]
)
def test_a_different_failure_makes_its_entry_stale(changes):
    other = judge_again(msgspec.structs.replace(crash(), **changes), rules(known=[ENTRY]))
    assert other.judgement is Judgement.BROKEN
    (message,) = stale(other)
    assert "1 of its cells fails in another way: expected crash in stage run with 'signal 11', found" in message
    assert "LAPACK starts late; owner me, https://example.org/1" in message


CHOLESKY = {"case": "t.test_cholesky"}
COMPILED = result(Verdict.COMPILED, **CHOLESKY, stage=Stage.COMPILE, mode=Mode.COMPILE)
NOT_RUN = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, **CHOLESKY, stage=Stage.ENVIRONMENT)
OUTSIDE = result(Verdict.CRASH, Judgement.OUTSIDE, **CHOLESKY, promised=False)
FAILS_SO_OUTSIDE = msgspec.structs.replace(crash(), promised=False, judgement=Judgement.OUTSIDE)
PASSING = [result(case=f"t.test_cholesky{number}", reader=reader) for number in (1, 2) for reader in ENTRY.readers]
TWO = [crash("t.test_chol_a"), crash("t.test_chol_b")]
OF_CONVERTED = {**CHOLESKY, "converted": True, "promised": False, "deployed": ("old",)}
CONVERTED = result(Verdict.CONVERTED, Judgement.BONUS, **OF_CONVERTED)
OTHERWISE = [crash(message="a" * 300), crash(reader="0.10.0", message="b" * 300)]
ADVICE = (
    r"[.?] (Correct the entry|Delete it|Take them off|Name|Let the entry name|Write|If it is still needed, write) ?"
)
MATCHES_NONE = "matches no cell of this run that it can excuse. Delete it."
NO_CASE = (
    "matches no cell of this run that it can excuse: no golden of the run matches its cases 't.test_chol*', 't.gone'."
)


@pytest.mark.parametrize(
    ("cells", "changes", "options", "message"),
    [
        ([crash()], {}, {}, ""),
        ([NOT_RUN], {}, {}, ""),
        ([COMPILED], {}, {}, ""),  # it says nothing of failures at run
        ([COMPILED], {"stage": "compile"}, {}, "1 of its cells passes now"),
        (
            [*PASSING, crash("t.test_chol3")],
            {},
            {},
            "4 of its cells pass now: t.test_cholesky1/0.9.2-cpu on cpu in jaxlib 0.10.0, 0.10.2; "
            "t.test_cholesky2/0.9.2-cpu on cpu in jaxlib 0.10.0, 0.10.2. Take them off the list.",
        ),
        (
            OTHERWISE,
            {},
            {},
            "2 of its cells fail in another way: expected crash in stage run with 'signal 11', found crash in stage "
            f"run with {'a' * 200!r} in",
        ),
        ([CONVERTED], {}, {}, ""),  # of the original, it shows nothing
        ([crash(**OF_CONVERTED, message="otherwise")], {}, {}, ""),
        ([CONVERTED, result(case="t.test_chol1")], {}, {}, "1 of its cells passes now: t.test_chol1/0.9.2-cpu on cpu"),
        ([result(case="t.a", converted=True, promised=False)], {}, {}, ""),
        ([result()], {}, {}, f"{NO_CASE} Delete it."),
        ([result()], {}, {"whole": False}, ""),
        ([result()], {}, {"as_of": day("2026-09-30")}, ""),  # made after that day
        ([result()], {"location": "p.yaml:12"}, {}, "p.yaml:12: known_failures[0] (LAPACK starts late; owner me, "),
        ([OUTSIDE, result()], {}, {}, MATCHES_NONE),
        (
            [FAILS_SO_OUTSIDE, result()],
            {},
            {},
            "that it can excuse: its 1 cell that fails so is outside the window, and needs no excuse. Delete it.",
        ),
        ([result()], {"platforms": ("tpu",)}, {}, ""),  # nothing was run there
        ([result(platform="tpu")], {"platforms": ("tpu",)}, {}, f"{NO_CASE} Delete it."),
        ([result()], {"readers": ("9",)}, {}, f"{NO_CASE} Delete it."),  # no jaxlib
        ([result()], {"readers": ("tensorflow==2.21.0",)}, {}, ""),  # another run may have it
        ([crash("t.other")], {"added": day("2026-11-20")}, {}, NO_CASE),
        ([crash("t.other")], {"added": day("2026-11-21")}, {}, NO_CASE),
        ([crash("t.other")], {"added": day("2026-11-22")}, {}, ""),
        (TWO, {"at_most": 2}, {}, ""),
        (TWO, {"at_most": 1}, {}, "expected at most 1 cell that it can excuse, found 2"),
        ([crash()], {}, {"as_of": day("2026-12-01")}, ""),
        ([crash()], {}, {"as_of": day("2026-12-02")}, "expired on 2026-12-01; this is as of 2026-12-02. If it is"),
        ([crash()], {"expires": None, "permanent": True, "approver": "me"}, {"as_of": day("2036-01-01")}, ""),
    ],
)
def test_only_an_outdated_entry_is_stale_and_says_why(cells, changes, options, message):
    problems = stale(*cells, entry=msgspec.structs.replace(ENTRY, **changes), **options)
    assert len(problems) == bool(message)
    assert message in "".join(problems)
    assert all(re.search(ADVICE, problem) for problem in problems), "each says what to do"


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        (["test_ridge"], "'test_ridge'. Did you mean 't.test_fns.test_ridge'?"),
        (["test_r*"], "'test_r*'. Did you mean 't.test_fns.test_ridge' or 't.test_fns.test_rnn'?"),
        (["test_ridge", "test_rnn"], "'test_ridge', 'test_rnn'. Did you mean 't.test_fns.test_ridge', 't.test_fns"),
        (["test_solve"], "'test_solve'. Did you mean 't.test_fns.test_solve[*]'?"),
        (["t.test_fns.test_solve"], "'t.test_fns.test_solve'. Did you mean 't.test_fns.test_solve[*]'?"),
        (["test_*"], "'test_*'. Did you mean '*.test_*'?"),
    ],
)
def test_a_stale_entry_with_a_short_case_name_shows_the_full_id(cases, found):
    stored = ["ridge", "rnn", *(f"solve[{size}]" for size in range(4))]
    cells = [crash(f"t.test_fns.test_{name}") for name in stored]
    (problem,) = stale(*cells, entry=msgspec.structs.replace(ENTRY, cases=tuple(cases)))
    assert f"matches no cell of this run that it can excuse: no golden of the run matches its cases {found}" in problem
    assert problem.endswith("? Correct the entry, or delete it.")


def test_a_stale_quirk_with_a_short_case_name_shows_the_full_id():
    quirk = Quirk("test_f", "*", "rounded", "me", "#7", added=day("2026-11-01"), rtol=1e-3, expires=day("2026-12-01"))
    (problem,) = stale_entries([result(case="t.test_f")], Policy(quirks=(quirk,)), TODAY, whole=True)
    advice = "Did you mean 't.test_f'? Correct the entry, or delete it."
    assert problem.endswith(f": matches no golden of this run. {advice}")


LISTED = Policy(readers="0.10.0,0.10.2")
OF_LIST = {"readers": "0.10.0,0.10.2", "whole": True}
FEWER = {"readers": "0.10.2", "whole": True}  # recorded before the policy had another reader


@pytest.mark.parametrize(
    ("readers", "selection", "is_stale"),
    [
        (("0.10.0",), OF_LIST, True),
        (("*",), OF_LIST, True),
        (("0.12.*", "0.10.2"), OF_LIST, True),
        (("0.12.*",), OF_LIST, False),  # no reader of the list: another run may have such cells
        (("tensorflow==*",), OF_LIST, False),
        (("0.10.0",), {**OF_LIST, "cases": ["t.*"]}, False),
        (("*",), FEWER, False),
        (("0.10.0",), {"readers": "0.10.0,0.10.2,0.11.0", "whole": True}, True),
    ],
)
def test_a_run_of_the_policys_readers_can_make_an_entry_stale(readers, selection, is_stale):
    policy = msgspec.structs.replace(LISTED, known_failures=(msgspec.structs.replace(ENTRY, readers=readers),))
    cells = [result(reader=reader) for reader in ("0.10.0", "0.10.2")]
    made = summarize(cells, policy=policy, selection=selection)
    assert (made.exit_code, len(made.stale)) == ((4, 1) if is_stale else (0, 0))
    if is_stale:
        assert made.stale[0].endswith(f"{NO_CASE} Delete it, or let it name only readers of other runs.")


def test_an_entry_can_be_stale_in_a_run_that_adds_deployed_readers():
    serving = DeploymentTarget(name="serving", jaxlib="0.9.2")
    policy = msgspec.structs.replace(LISTED, known_failures=(ENTRY,), deployed=(serving,))
    cells = [judge_again(result(reader=reader, writer="0.9.2"), policy) for reader in ("0.9.2", "0.10.0", "0.10.2")]
    assert summarize(cells, policy=policy, selection={**OF_LIST, "readers": "0.10.0,0.10.2,deployed"}).exit_code == 4
    part = summarize(cells, policy=policy, selection=OF_LIST)
    assert (part.exit_code, part.partial) == (0, "only readers 0.10.0, 0.10.2")


def test_a_converted_golden_that_fails_as_listed_is_excused():
    target = DeploymentTarget("old", jaxlib="0.10.2")
    policy = msgspec.structs.replace(rules(known=[ENTRY]), deployed=(target,))
    alike, otherwise = (judge_again(dying(**OF_CONVERTED, message=text), policy) for text in (SEGV, "otherwise"))
    assert (alike.judgement, otherwise.judgement) == (Judgement.KNOWN, Judgement.OWED)
    assert (summarize([alike], policy=policy).exit_code, summarize([otherwise], policy=policy).exit_code) == (0, 1)
    assert summarize([judge_again(CONVERTED, policy)], policy=policy).exit_code == 0


def test_a_cell_excused_by_one_entry_can_make_another_stale():
    other = msgspec.structs.replace(ENTRY, message="signal 6")
    aborted = judge_again(msgspec.structs.replace(crash(), message="signal 6"), rules(known=[ENTRY, other]))
    assert aborted.judgement is Judgement.KNOWN
    (message,) = stale_entries([aborted], rules(known=[ENTRY, other]), TODAY, whole=True)
    assert message.startswith("known_failures[0]")
    assert "1 of its cells fails in another way" in message


def test_wrong_numbers_outside_the_window_can_be_known():
    entry = msgspec.structs.replace(ENTRY, verdict="numerics", stage="compare", message="output 0")
    wrong = result(Verdict.NUMERICS, case="t.test_cholesky", stage=Stage.COMPARE, message="output 0")
    outside = judge_again(wrong, rules(Windows(0, 0), [entry]))
    assert (outside.promised, outside.judgement) == (False, Judgement.KNOWN)
    assert stale(outside, entry=entry) == []
    bonus = result(judgement=Judgement.BONUS, case="t.test_cholesky", reader="0.10.0", promised=False)
    assert stale(outside, bonus, entry=entry) == [], "nothing was promised there that could pass now"
    (message,) = stale(bonus, entry=entry)
    assert MATCHES_NONE in message


def test_globs_that_cover_too_many_cells_are_an_error():
    promised = [scope_of(crash(f"t.test_chol{number}")) for number in range(51)]
    check_width([ENTRY], promised[:50])
    with pytest.raises(
        PolicyError,
        match=r"^policy: known_failures\[0\]: expected at most 50 cells that it can excuse \(promised, or of a "
        r"deployment target\), found 51\. Name cases",
    ):
        check_width([ENTRY], promised)
    check_width([msgspec.structs.replace(ENTRY, at_most=51)], promised)
    check_width([ENTRY], promised[:50] * 2)  # in readers of one jaxlib with different jax, as --propose counts them


def test_each_stale_entry_is_reported():
    others = {"cases": ("gone",)}, {"expires": day("2026-11-01")}
    entries = [ENTRY, *(msgspec.structs.replace(ENTRY, **changes) for changes in others)]
    messages = stale_entries([crash()], rules(known=entries), TODAY, whole=True)
    assert [text.split(" ")[0] for text in messages] == ["known_failures[1]", "known_failures[2]"]
    made = summarize([crash()], policy=rules(known=entries))
    assert (made.stale, made.exit_code) == (messages, 4)


def test_the_limit_of_an_entry_counts_promised_and_deployed_cells():
    one = golden("t.f", "0.9.2")
    cells = [
        Cell(one, release("0.10.2"), "cpu", promised=True),
        Cell(one, release("0.4.30"), "cuda", deployed=("serving",)),
        Cell(one, release("0.6.2"), "cpu"),
    ]
    assert list(promised_scopes(cells)) == [
        Scope("t.f", "0.9.2", "0.10.2", "cpu"),
        Scope("t.f", "0.9.2", "0.4.30", "cuda"),
    ]


@pytest.mark.parametrize("as_of", [-100, 0])
@pytest.mark.parametrize(("days", "is_reported"), [(1, False), (2, True)])
def test_an_entry_may_be_dated_tomorrow_but_not_later(days, is_reported, as_of):
    today = datetime.datetime.now(tz=datetime.UTC).date()
    entry = msgspec.structs.replace(ENTRY, added=today + datetime.timedelta(days), expires=None)
    problems = stale(crash(), entry=entry, as_of=today + datetime.timedelta(as_of), whole=False)
    assert any("added in the future" in problem for problem in problems) is is_reported


@pytest.mark.parametrize(
    ("writer", "added", "whole", "is_reported"),
    [
        ("0.9.2-cpu", "2026-11-01", True, False),
        ("0.9.*", "2026-11-01", True, False),
        ("0.9.1", "2026-11-01", True, True),
        ("0.9.1", "2026-11-21", True, True),
        ("0.9.1", "2026-11-22", True, False),
        ("0.9.1", "2026-11-01", False, False),
    ],
)
def test_a_quirk_that_matches_no_golden_is_reported(writer, added, whole, is_reported):
    quirk = Quirk("t.f", writer, "rounded", "me", "#7", added=day(added), rtol=1e-3, expires=day("2026-12-01"))
    cells = [result(case="t.f", writer="0.9.2"), result(case="t.f", writer="0.10.2")]
    policy = Policy(quirks=(quirk,))
    for readers in ("deployed", "tensorflow==2.21.0"):  # such readers may leave out the quirk's golden
        assert stale_entries(cells, policy, TODAY, whole=whole, selection=Selection(readers)) == []
    assert len(stale_entries(cells, policy, TODAY, whole=whole, selection=Selection("0.9.2"))) == is_reported
    assert stale_entries([*cells, CONVERTED], policy, TODAY, whole=whole) == []
    problems = stale_entries(cells, policy, TODAY, whole=whole)
    assert problems == (["quirks[0] (rounded; owner me, #7): matches no golden of this run. Delete it."] * is_reported)


def test_entries_of_a_runtime_not_in_the_run_are_not_stale():
    entry = msgspec.structs.replace(ENTRY, cases=("*",), writers=("*",), readers=("tensorflow==*",))
    passing = result(case="t.test_f")
    assert stale(passing, entry=entry) == []
    bonus = of_runtime(
        result(case="t.test_f", promised=False, judgement=Judgement.BONUS), "tensorflow==2.21.0", "2026-03-05"
    )
    (message,) = stale(passing, bonus, entry=entry)
    assert message.endswith(MATCHES_NONE)


def test_a_stale_entry_names_readers_of_jaxlib_first():
    entry = msgspec.structs.replace(ENTRY, cases=("*",), writers=("*",), readers=("*",))
    cells = [result(reader=reader) for reader in ("0.11.0", "0.12.0.1")]
    (message,) = stale(*cells, of_runtime(cells[0], "tensorflow==2.21.0", "2026-10-01"), entry=entry)
    assert "on cpu in jaxlib 0.11.0, 0.12.0.1, tensorflow 2.21.0." in message


# --- judge --propose --------------------------------------------------------------------------------------------------


FILLED = {"reason": "r", "owner": "o", "issue": "i", "expires": "2026-12-01"}


def entries(*results) -> list[dict]:
    """Return the entries that are proposed for these results."""
    text = proposal(results, summarize(results))
    return yaml.safe_load(text)["known_failures"] if text else []


def test_cells_that_fail_alike_are_proposed_as_one_entry():
    cells = [dying(case, reader) for case in ("t.a", "t.b") for reader in ("0.10.0", "0.10.2")]
    (entry,) = entries(*cells, result())
    assert entry == {
        "cases": ["t.a", "t.b"], "writers": ["0.9.2"], "readers": ["0.10.0", "0.10.2"], "platforms": ["cpu"],
        "verdict": "crash", "stage": "run", "message": SEGV, "reason": "TODO why it fails",
        "owner": "TODO who is responsible for it", "issue": "TODO the issue that tracks it", "added": day("2026-11-21"),
        "expires": "TODO a day, at most 90 days after added",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("upstream", "tracked_by"),
    [
        ("lapack-cold-process", "https://github.com/jax-ml/jax/issues/29610"),
        ("gspmd-reduction-in-0.7.0", "gspmd-reduction-in-0.7.0"),  # nobody has reported it
        ("stablehlo-too-new", "TODO the issue that tracks it"),  # as the documentation of JAX says
    ],
)
def test_a_link_to_documentation_is_not_proposed_as_an_issue(upstream, tracked_by):
    (entry,) = entries(dying(upstream=upstream))
    assert entry["issue"] == tracked_by


def test_proposed_entries_cover_no_kept_cell():
    broken = [dying("t.a", "0.10.0"), dying("t.a", "0.10.2"), dying("t.b", "0.10.2")]
    cells = [*broken, result(case="t.b", reader="0.10.0")]
    assert [(entry["cases"], entry["readers"]) for entry in entries(*cells)] == [
        (["t.a"], ["0.10.0", "0.10.2"]),
        (["t.b"], ["0.10.2"]),
    ]


def test_a_proposed_entry_leaves_out_how_far_numbers_are_off():
    def wrong(case, error):
        text = f"output 0 float32[2]: 1 of 2 elements differ (max abs error {error}, allowed 0)\n  largest error at [0]"
        return result(Verdict.NUMERICS, Judgement.BROKEN, case=case, message=text)

    (entry,) = entries(wrong("t.a", 0.5), wrong("t.b", 0.7))
    assert entry["message"] == "output 0 float32[2]: 1 of 2 elements differ"


@pytest.mark.parametrize("own", ["(result['b']) ", ""])
def test_an_entrys_message_may_lack_the_paths_of_outputs(own):
    message = "output 0 (result['b']) float32[2]: 1 of 2 elements differ (max abs error 0.5, allowed 0)"
    failed = result(Verdict.NUMERICS, Judgement.BROKEN, case="t.a", stage=Stage.COMPARE, message=message)
    how = {"verdict": "numerics", "stage": "compare"}
    known = msgspec.structs.replace(ENTRY, cases=("t.a",), **how, message=f"output 0 {own}float32[2]: 1 of 2")
    assert matching_entry(failed, [known])
    other = msgspec.structs.replace(known, message="output 0 (result['c']) float32[2]: 1 of 2")
    assert matching_entry(failed, [other]) is None


def test_a_proposal_lists_readers_by_build_date():
    (entry,) = entries(*(dying(reader=reader, writer="0.9.0") for reader in ("0.10.0", "0.8.3", "0.9.0")))
    assert entry["readers"] == ["0.9.0", "0.8.3", "0.10.0"]


def test_a_run_without_broken_cells_proposes_no_entry():
    assert entries(result()) == []


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.tuples(*map(st.sampled_from, (["t.a", "t.b", "t.c"], ["0.9.2", "0.10.0"], ["0.10.2", "0.11.0"]))),
        st.sampled_from([None, SEGV, "died by signal 6 (SIGABRT)"]),
        min_size=1,
    )
)  # fmt: skip
def test_entries_once_filled_in_excuse_every_broken_cell(cells):
    results = [
        dying(case, reader, message, writer=writer) if message else result(case=case, writer=writer, reader=reader)
        for (case, writer, reader), message in cells.items()
    ]
    known = [msgspec.convert({**entry, **FILLED}, KnownFailure) for entry in entries(*results)]
    judged = [judge_again(cell, rules(known=known)) for cell in results]
    assert {cell.judgement for cell in judged} <= {Judgement.KNOWN, Judgement.KEPT}
    assert stale_entries(judged, rules(known=known), day("2026-11-21"), whole=True) == []


def test_a_proposal_is_refused_until_it_is_filled_in(tmp_path):
    path = tmp_path / "export_compat.yaml"
    text = proposal([dying()], summarize([dying()]))
    for name in ("reason", "owner", "issue"):
        path.write_text(text)
        with pytest.raises(PolicyError, match=r"expires: expected a date such as 2026-10-25, found 'TODO a day"):
            load_policy(path)
        path.write_text(text.replace("TODO a day, at most 90 days after added", "2026-12-01"))
        message = rf"known_failures\[0\]\.{name}: expected your own text in the place of 'TODO"
        with pytest.raises(PolicyError, match=message):
            load_policy(path)
        text = re.sub(rf"^    {name}: .*", f"    {name}: filled in", text, flags=re.M)
    path.write_text(text.replace("TODO a day, at most 90 days after added", "2026-12-01"))
    assert len(load_policy(path).known_failures) == 1


@pytest.mark.parametrize(
    ("results", "facts", "message"),
    [
        (
            [dying()],
            {"selection": {"whole": False, "cases": ["t.f"]}},
            "found only cases t.f: run the matrix again, without",
        ),
        ([dying()], {"shard": Shard(1, 3)}, "shard 1 of 3: judge all shards together first"),
        ([dying(), result(Verdict.NOT_RUN, Judgement.INCOMPLETE)], {}, "1 cell that was not run"),
    ],
)
def test_a_partial_run_proposes_nothing(results, facts, message, jaxexport, cwd):
    finished(cwd / "out", *results, **facts)
    expected = "--propose: expected a whole run whose cells all ran"
    assert_bad_input(jaxexport("judge", "out", "--propose"), expected, message)


@pytest.mark.parametrize(
    ("own", "advice"),
    [
        ("readers: [0.10.2]\n", "judge it by that one, with `--policy own.yaml`."),
        ("readers: [0.11.0]\n", "run the matrix again by this one."),
        (None, "run the matrix again by this one."),
    ],
    ids=["here", "changed", "gone"],
)
def test_propose_advises_the_policy_with_which_the_run_is_whole(own, advice, jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text("readers: [window]\n")
    if own:
        (cwd / "own.yaml").write_text(own)
    plan = {"options": ["--policy", "own.yaml"]}
    finished(
        cwd / "out", dying(), policy=Policy(readers="0.10.2"), selection={"readers": "0.10.2", "whole": True}, plan=plan
    )
    found = "found only readers 0.10.2; but it is whole by the policy that it was made with: "
    # The policy of the project is taken where the one that the run was made with is not named.
    assert_bad_input(jaxexport("judge", "out", "--propose"), found + advice)
    if own == "readers: [0.10.2]\n":
        assert "known_failures:" in jaxexport("judge", "out", "--propose", "--policy", "own.yaml", code=1).out


def test_a_run_without_promised_cells_proposes_nothing():
    summary = msgspec.structs.replace(summarize([dying()]), uncovered=["4 cells of the promised plan never ran."])
    with pytest.raises(ReportError, match=r"found 4 cells of the promised plan never ran\.$"):
        proposal([dying()], summary)


@pytest.mark.parametrize("readers", ["window", "0.9.2,0.12.0.1"], ids=["a group", "a list, as the tutorial teaches"])
def test_propose_prints_yaml_and_the_broken_promises(readers, jaxexport, cwd):
    (cwd / "export_compat.yaml").write_text(f"readers: [{readers}]\n")
    # One made-up cell is not all that a window promises.
    selection = {"whole": True} if readers == "window" else {"readers": readers, "whole": True}
    finished(cwd / "out", dying(), policy=Policy(readers=readers), selection=selection)
    ended = jaxexport("judge", "out", "--propose", code=1)
    assert len(yaml.safe_load(ended.out)["known_failures"]) == 1
    assert "BROKEN: 1 of 1 promised cells, 1 cause" in ended.err


FRAME = (
    'JaxRuntimeError: UNIMPLEMENTED: %dot.0 = s64[8,8] dot(%a, %b), metadata={op_name="jit(f)/dot" stack_frame_id=17}'
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (FRAME, "JaxRuntimeError: UNIMPLEMENTED: %dot.0 = s64[8,8] dot(%a, %b)"),
        ("INTERNAL: a program could not be loaded from 0x7f31c0a4d2e0", "INTERNAL: a program could not be loaded from"),
        ("INTERNAL: no room for /tmp/tmpx1/a.o: disk full", "INTERNAL: no room for"),
        ("INTERNAL: the program 9f86d081884c7d65 was not found", "INTERNAL: the program"),
        (
            "NOT_FOUND: No FFI handler registered for a/b on Host",
            "NOT_FOUND: No FFI handler registered for a/b on Host",
        ),
        ("died by signal 11 (SIGSEGV)", "died by signal 11 (SIGSEGV)"),
    ],
)
def test_a_proposed_message_leaves_out_addresses_paths_and_hashes(message, expected):
    failed = result(Verdict.ERROR, Judgement.BROKEN, stage=Stage.COMPILE, message=message)
    (entry,) = yaml.safe_load(proposal([failed], summarize([failed])))["known_failures"]
    assert entry["message"] == expected


@pytest.mark.parametrize(
    ("changes", "may"),
    [
        ({}, True),
        ({"cases": ("t.absent", "t.gone")}, True),
        ({"cases": ("t.absent",)}, False),
        ({"writers": ("0.12.*",)}, False),
        ({"readers": ("0.12.*",)}, False),
        ({"platforms": ("tpu",)}, False),
        ({"verdict": "error"}, False),
        ({"stage": "compile"}, False),
    ],
)
def test_an_entry_that_matches_a_cell_of_a_cause_may_excuse_the_cause(changes, may):
    (cause,) = causes_in(with_causes([dying("t.gone"), dying("t.another")]), load_calendar())
    assert may_excuse(msgspec.structs.replace(ENTRY, **changes), cause) is may


def test_expired_entries_are_listed_by_kind_oldest_first():
    ended = [msgspec.structs.replace(ENTRY, expires=day(text)) for text in ("2026-11-20", "2026-11-10", "2026-11-21")]
    assert expired_by_noun(rules(known=ended), TODAY) == {"known-failure entry": [ended[1], ended[0]]}

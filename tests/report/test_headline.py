"""The headline of a run that fails in several ways or by several causes: one line, with counts below it."""

import pytest
from making import day, document, release, result, rules, summarize, with_causes
from msgspec import structs

from export_core.judge import Judgement, judge_again
from export_core.matrix import Verdict
from export_core.policy.entries import KnownFailure, Required
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.report.annotations import annotation_commands
from export_core.report.badge import badge
from export_core.report.run_tables import named_among
from export_core.report.view import entry_text
from export_core.report.wording import headline

CRASH = result(Verdict.CRASH, Judgement.BROKEN, stage=Stage.RUN, message="signal 11")
LATER = result(Verdict.CRASH, Judgement.BROKEN, reader="0.11.0", stage=Stage.RUN, message="signal 11")
WRONG = result(Verdict.NUMERICS, Judgement.BROKEN, case="t.c", promised=False, reader="0.8.1", message="far")
ERROR = result(Verdict.ERROR, Judgement.BROKEN, case="t.e", reader="0.11.1", stage=Stage.COMPILE, message="no")
COMPILED = result(Verdict.COMPILED, case="t.f", platform="tpu", mode=Mode.COMPILE)
OWED = result(Verdict.ERROR, Judgement.OWED, case="t.o", promised=False, reader="0.8.1", deployed=("serving",))


@pytest.mark.parametrize(
    ("results", "line", "below"),
    [
        (
            [CRASH, LATER, WRONG],
            "BROKEN: 3 cells, 2 causes.",
            "2 of 2 promised cells and 1 cell with other numbers out",
        ),
        ([CRASH, OWED], "BROKEN: 2 cells, 2 causes.", "1 of 1 promised cells, 1 cause; owed: 1 cell that deployment"),
        ([CRASH, ERROR], "BROKEN: 2 of 2 promised cells, 2 causes.", "Readers affected, by cause: "),
        ([CRASH], "BROKEN: 1 of 1 promised cells, 1 cause; only reader affected 0.10.2.", "1 of 1 planned cells"),
    ],
    ids=["two ways", "two judgements", "two causes", "one cause"],
)
def test_a_headline_is_one_line_with_counts_below(results, line, below):
    made = summarize(with_causes(results))
    if len(results) > 1:
        made = structs.replace(made, partial="only cells that are promised")
    first, counts = headline(made)
    assert first == line
    assert counts.startswith(below)
    assert "planned cells: " in counts
    assert ("; partial: only cells that are promised. " in counts) == (len(results) > 1)
    assert len(first) <= 80


@pytest.mark.parametrize(
    ("results", "line", "below"),
    [
        (
            [CRASH, OWED],
            "BROKEN: 2 cells, 2 causes; incomplete: 1 of 3 planned cells has no result that counts.",
            "1 of 2 promised cells, 1 cause; owed: 1 cell that ",
        ),
        (
            [OWED],
            "OWED: 1 cell that deployment targets  must run; incomplete: 1 of 2 planned cells has no result",
            "2 of 2 planned cells: 1 incomplete, 1 owed.",
        ),
    ],
    ids=["three ways", "two ways"],
)
def test_an_incomplete_run_that_fails_in_several_ways_has_one_line(results, line, below):
    missing = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="t.n", stage=Stage.ENVIRONMENT, message="disk full")
    first, counts = headline(summarize(with_causes([missing, *results])))
    assert first.startswith(line)
    assert counts.startswith(below)
    assert "only reader affected" in f"{first} {counts}" or "readers affected, by cause" in counts
    assert "exit code 3." in counts


def test_badge_and_annotation_say_the_verdict_once():
    results = with_causes([CRASH, LATER, WRONG])
    made = summarize(results)
    assert badge(made)["message"] == "broken: 3 cells"
    first = annotation_commands(document(results, made)).splitlines()[0]
    assert first.startswith("::error title=BROKEN%3A 3 cells%2C 2 causes::2 of 2 promised cells and 1 cell with")
    assert first.count("BROKEN") == 1


@pytest.mark.parametrize(
    ("required", "more"),
    [
        (Required(cells=9), ""),
        (Required(cells=9, readers=("0.6.2",)), "; 1 more requirement is not met"),
        (Required(cells=9, readers=("0.6.2", "0.4.30")), "; 2 more requirements are not met"),
    ],
)
def test_a_semicolon_separates_missing_cells_from_counts(required, more):
    cells = [structs.replace(CRASH, judgement=Judgement.KNOWN), result(case="t.g", flaky="was crash"), COMPILED]
    line, _ = headline(summarize(cells, policy=rules(required=required)))
    what = f"INCOMPLETE: required.cells: expected at least 9 cells that ran, found 3{more}"
    assert line == f"{what}; 1 compiled only, 1 known failure, 1 flaky."


LISTED = KnownFailure(
    *(("tests.*",), ("*",), ("0.10.2",), "crash", "run", "signal 11", "r", "me", "#7"),
    added=day("2026-10-01"),
    expires=day("2026-12-01"),
)
LATER_ENDING = structs.replace(LISTED, readers=("0.11.0",), owner="you", expires=day("2026-12-24"))
FOREVER = structs.replace(LISTED, expires=None, permanent=True, approver="me")
LEFTOVER = structs.replace(LISTED, cases=("t.gone",))


def listed(entries, as_of, *others):
    policy = rules(known=entries)
    cells = [result(case="t.kept"), *(judge_again(cell, policy) for cell in (CRASH, LATER)[: len(entries)]), *others]
    return headline(summarize(cells, policy=policy, as_of=day(as_of)))


@pytest.mark.parametrize(
    ("entries", "as_of", "line"),
    [
        ([LISTED], "2026-12-01", "KEPT: 1 of 2 promised cells, 1 known failure until 2026-12-01."),
        ([FOREVER], "2026-12-01", "KEPT: 1 of 2 promised cells, 1 known failure."),
        (
            [LISTED, LATER_ENDING],
            "2026-12-01",
            "KEPT: 1 of 3 promised cells, 2 known failures, the first until 2026-12-01.",
        ),
        (
            [LISTED, structs.replace(LATER_ENDING, expires=day("2026-12-01"))],
            "2026-12-01",
            "KEPT: 1 of 3 promised cells, 2 known failures until 2026-12-01.",
        ),
        (
            [LISTED, LATER_ENDING],
            "2026-12-02",
            "STALE LIST: 1 known-failure entry expired on 2026-12-01, owner me; kept: 1 of 3 promised cells, 2 known "
            "failures, the first expired on 2026-12-01.",
        ),
    ],
    ids=["one day", "permanent", "two days", "the same day", "one has expired"],
)
def test_a_headline_says_until_when_failures_are_known(entries, as_of, line):
    assert listed(entries, as_of)[0] == line


@pytest.mark.parametrize(("as_of", "end"), [("2026-12-01", "until"), ("2026-12-02", "expired on")])
def test_the_entry_of_a_known_failure_says_if_it_has_expired(as_of, end):
    policy = rules(known=[LISTED])
    text = entry_text(judge_again(CRASH, policy), policy, day(as_of))
    assert text == f"r (owner me, #7, {end} 2026-12-01)"


@pytest.mark.parametrize(
    ("entries", "as_of", "line"),
    [
        (
            [LISTED],
            "2026-12-02",
            "STALE LIST: 1 known-failure entry expired on 2026-12-01, owner me; kept: 1 of 2 promised cells, 1 known",
        ),
        (
            [LISTED, LATER_ENDING],
            "2026-12-25",
            "STALE LIST: 2 known-failure entries have expired, the first on 2026-12-01, owners me, you; kept: 1 of 3",
        ),
        (
            [LEFTOVER, LISTED],
            "2026-12-01",
            "BROKEN: 1 of 3 promised cells, 1 cause, 1 known failure until 2026-12-01; 1 defect in the list of known",
        ),
    ],
    ids=["expired", "two have expired", "matches nothing"],
)
def test_a_headline_says_which_entries_have_expired(entries, as_of, line):
    assert listed(entries, as_of)[0].startswith(line)


def test_the_headline_of_a_broken_run_names_expired_failures():
    line, _ = listed([LISTED], "2026-12-02", ERROR)
    assert line.startswith(
        "BROKEN: 1 of 3 promised cells, 1 cause, 1 known failure; 1 known-failure entry expired on 2026-12"
    )
    assert "no longer true" not in line


@pytest.mark.parametrize(
    ("broken", "affected"),
    [
        (("0.12.0.1",), "only reader affected 0.12.0 (jax 0.12.0.1)."),
        (("0.12.0", "0.12.0.1"), "oldest reader affected 0.12.0 (jax 0.12.0), newest 0.12.0 (jax 0.12.0.1)."),
    ],
    ids=["one jax", "both"],
)
def test_a_jaxlib_that_ran_with_two_jax_is_named_with_its_jax(broken, affected):
    def read_with(jax):
        failed = structs.replace(CRASH, reader=structs.replace(release("0.12.0"), jax=jax))
        return failed if jax in broken else structs.replace(failed, verdict=Verdict.PASS, judgement=Judgement.KEPT)

    results = with_causes([read_with("0.12.0"), read_with("0.12.0.1"), result(reader="0.10.2")])
    assert document(results, summarize(results)).headline[0].endswith(affected)


def test_a_range_names_the_jax_of_a_jaxlib_used_with_two_jax():
    def crash_in(jaxlib, jax):
        return structs.replace(CRASH, reader=structs.replace(release(jaxlib), jax=jax))

    ours = [("0.10.0", "0.10.0"), ("0.10.1", "0.10.2"), ("0.10.2", "0.10.2"), ("0.11.0", "0.11.0")]
    other = structs.replace(crash_in("0.10.1", "0.10.1"), verdict=Verdict.PASS, judgement=Judgement.KEPT)
    results = [other, *(crash_in(*release) for release in ours)]
    among = sorted((one.reader for one in results), key=lambda reader: reader.date_order)
    named = named_among([crash_in(*release).reader for release in ours], among)
    assert named == "0.10.0, 0.10.1 (jax 0.10.2) to 0.11.0"

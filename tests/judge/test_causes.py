"""What failing cells have in common: signatures, causes with lasting ids, and known upstream issues."""

import itertools
from pathlib import Path

import msgspec
import pytest
from example_runs import broken_run
from making import golden, release, result, with_causes

from export_core.goldens import Golden
from export_core.judge import Judgement, Result, judge_again
from export_core.judge.causes import Cause, causes_in, cell_signature, failure_signature, message_class
from export_core.judge.gate import uncovered
from export_core.judge.known import upstream_of
from export_core.matrix import Cell, Verdict
from export_core.matrix.result import by_build_date, new_result
from export_core.policy import Policy, PolicyError
from export_core.policy.entries import Required
from export_core.policy.known_issues import KnownIssue, known_issues
from export_core.readers.worker.protocol import Stage

GOLDENS = Path(__file__).parents[2] / "golden"


def failed(
    verdict: Verdict = Verdict.CRASH, reader: str = "0.10.2", message: str = "died", **changes: object
) -> Result:
    stage = Stage.COMPARE if verdict is Verdict.NUMERICS else Stage.RUN
    return result(verdict, Judgement.BROKEN, **{"reader": reader, "message": message, "stage": stage, **changes})


def causes(*results: Result) -> list[Cause]:
    return causes_in(with_causes(results))


def test_67_broken_cells_have_three_causes_worst_first():
    _, summary = broken_run()
    broken = [cause for cause in summary.causes if cause.judgement is Judgement.BROKEN]
    assert [(cause.verdict, cause.cells, cause.promised) for cause in broken] == [
        ("crash", 64, 64), ("timeout", 1, 1), ("numerics", 2, 2),
    ]  # fmt: skip
    lapack = broken[0]
    assert (lapack.id, lapack.upstream) == ("lapack-cold-process", "lapack-cold-process")
    assert lapack.writers == ("0.6.2", "0.9.2")
    assert (lapack.first_reader.jaxlib, lapack.last_reader.jaxlib) == ("0.6.2", "0.9.2")
    assert lapack.change == "Works in jaxlib 0.10.0 (built 2026-04-16)"
    assert [(cause.since, cause.mended_in) for cause in broken] == [("", "0.10.0"), ("0.12.0.1", ""), ("0.12.0", "")]


def test_failures_that_differ_in_names_or_numbers_are_one_cause():
    alike = [
        failed(Verdict.ERROR, message=f"Function f{n} at 0x{n}ff: 'x{n}' has {n} axes", case=f"t.{n}") for n in range(3)
    ]
    assert [cause.cells for cause in causes(*alike)] == [3]
    assert len(causes(*alike, failed(Verdict.ERROR, message="Function f has another fault"))) == 2
    lost = [f"No registered implementation for custom call to lapack_{x}getrf_ffi for Host." for x in "sdcz"]
    assert len(causes(*(failed(Verdict.ERROR, message=text, case=text[49:52]) for text in lost))) == 1


def test_crashes_since_different_releases_are_two_causes():
    began = [result(case="t.a", reader="0.10.0"), result(case="t.b", reader="0.10.2")]
    for verdict, count in ((Verdict.ERROR, 1), (Verdict.CRASH, 2), (Verdict.NUMERICS, 2)):
        ends = [failed(verdict, case="t.a"), failed(verdict, "0.11.0", case="t.b")]
        assert len(causes(*began, *ends)) == count, verdict


def test_timeouts_are_one_cause_wherever_they_began():
    began = [result(case="t.a", reader="0.10.0"), result(case="t.b", reader="0.10.2")]
    hung = [failed(Verdict.TIMEOUT, case="t.a"), failed(Verdict.TIMEOUT, "0.11.0", case="t.b")]
    own = failed(Verdict.TIMEOUT, "0.9.2", case="t.c")  # which shows nothing about the golden
    (cause,) = causes(*began, *hung, own, result(case="t.b", reader="0.11.1"))
    assert (cause.cells, cause.change, cause.not_replayable) == (3, "", False)
    (alone,) = causes(began[0], hung[0])
    assert alone.id == cause.id
    assert alone.change.startswith("Fails since jaxlib 0.10.2 "), "one that all of its cells share is still said"


def test_failures_in_the_goldens_writer_are_a_separate_cause():
    readers = {"t.a": ("0.9.2", "0.10.2"), "t.b": ("0.9.1", "0.10.2")}  # of writer 0.9.2
    crashes = [failed(case=case, reader=reader) for case, names in readers.items() for reader in names]
    assert {cause.cases for cause in causes(*crashes)} == {("t.a",), ("t.b",)}


def test_each_golden_wrong_in_every_reader_is_a_separate_cause():
    moved = [failed(Verdict.NUMERICS, reader, case=case) for case in ("t.a", "t.b") for reader in ("0.9.1", "0.10.2")]
    assert [cause.cases for cause in causes(*moved)] == [("t.a",), ("t.b",)]


def test_the_id_of_a_cause_is_the_same_in_every_run():
    inside = failed(Verdict.ERROR)
    outside = msgspec.structs.replace(inside, case="t.b", golden="t.b/0.9.2-cpu", judgement=Judgement.OUTSIDE)
    both = causes(inside, outside)
    assert [(cause.judgement, cause.id) for cause in both] == [("broken", both[0].id), ("outside", both[0].id)]
    assert causes(inside)[0].id == both[0].id


def test_readers_and_writers_are_listed_by_build_date():
    order = ["0.9.0", "0.8.3", "0.10.0", "0.12.0.1"]
    read = [failed(reader=reader, writer="0.9.0") for reader in sorted(order)]
    written = [failed(reader="0.12.0.1", writer=writer) for writer in sorted(order[:3])]
    assert by_build_date(one.reader for one in read) == order
    (by_readers,), (by_writers,) = causes(*read), causes(*written)
    assert (list(by_readers.readers), list(by_writers.writers)) == (order, order[:3])
    (problem,) = uncovered(read, Required(readers=("0.99.*",)), ())
    assert problem.endswith(f"found {', '.join(order)}.")


def test_a_cell_that_works_has_no_cause():
    assert with_causes([result(), failed()])[0].cause == ""
    assert causes(result()) == []


# --- known upstream issues --------------------------------------------------------------------------------------------


SEGV = {"message": "died by signal 11 (SIGSEGV)"}
LAPACK = {**SEGV, "custom_calls": ("lapack_spotrf_ffi",)}
RANK_8 = "tests.compat.test_large_programs.test_rank_8/0.9.2-cpu"
OTHER = "tests.compat.test_models.test_convolution/0.9.2-cpu"
INT4 = "tests.compat.test_dtypes.test_tiny_dtype[int4]/0.9.2-cpu"


@pytest.mark.parametrize(
    ("cell", "folder", "issue"),
    [
        (failed(reader="0.9.2", **LAPACK), "", "lapack-cold-process"),
        (failed(reader="0.10.0", **LAPACK), "", ""),
        (failed(reader="0.9.2", **SEGV), "", ""),  # it calls no LAPACK
        (failed(Verdict.TIMEOUT, "0.9.2", **LAPACK), "", ""),
        (failed(**SEGV), RANK_8, "cpu-rank-8"),
        (failed(**SEGV), OTHER, ""),
        (failed(reader="0.11.1", **SEGV), RANK_8, ""),
        (failed(**SEGV), "no such golden", ""),  # what cannot be read shows nothing
        (failed(Verdict.NUMERICS, "0.8.1"), INT4, "cpu-4-bit-arrays"),
        (failed(Verdict.NUMERICS, "0.8.1", writer="0.7.1"), INT4, "cpu-4-bit-arrays"),
        (failed(Verdict.NUMERICS, "0.8.3", writer="0.7.1"), INT4, "cpu-4-bit-goldens"),
        (failed(Verdict.NUMERICS, "0.12.0.1"), INT4, ""),  # by 0.9.2: mended in both
        (failed(Verdict.ERROR, "0.8.1", "was exported for 0 devices", stage=Stage.LOWER), "", "no-fixed-devices"),
        (failed(Verdict.ERROR, "0.8.3", "was exported for 0 devices", stage=Stage.LOWER), "", ""),  # 0.9.0 is older
    ],
)
def test_a_cell_has_a_known_issue_only_if_all_its_facts_fit(cell, folder, issue):
    assert upstream_of(cell, Golden(golden().manifest, GOLDENS / folder), known_issues()) == issue


@pytest.mark.parametrize(
    ("changes", "cell", "fits"),
    [
        ({}, {}, True),
        ({"since": "0.10.2"}, {}, True),
        ({"since": "0.11.0"}, {}, False),
        ({"mended_in": "0.10.2"}, {}, False),
        ({"mended_in": "0.11.0"}, {}, True),
        ({"written_before": "0.9.2"}, {}, False),
        ({"written_before": "0.10.0"}, {}, True),
        ({"platforms": ("cpu",)}, {}, True),
        ({"platforms": ("tpu",)}, {}, False),
        ({"stage": "run"}, {"stage": Stage.COMPILE}, False),
        ({"stage": "run"}, {"stage": Stage.COMPARE}, True),
        ({"message": "", "certainty": "sometimes"}, {}, False),
        ({"message": ""}, {}, True),
    ],
)
def test_a_known_issue_fits_cells_of_its_releases_platforms_and_stages(changes, cell, fits):
    issue = KnownIssue(**{"id": "ours", "title": "t", "todo": "d", "outcome": "crash", "message": "signal", **changes})
    failing = failed(reader="0.10.2", writer="0.9.2", **SEGV, **cell)
    assert upstream_of(failing, golden(), [issue]) == ("ours" if fits else "")


def test_a_file_of_known_issues_adds_or_replaces_them_by_id(tmp_path):
    file = tmp_path / "newer.yaml"
    file.write_text(
        "- {id: cpu-rank-8, title: Another title, todo: Wait., outcome: crash, message: signal}\n"
        "- {id: ours, title: Ours, todo: Ask us., outcome: error, concerns: {calls: ['ours_*']}}\n"
    )
    issues = known_issues(str(file))
    assert [issue.id for issue in issues[:2]] == ["cpu-rank-8", "ours"]
    assert [issue.title for issue in issues if issue.id == "cpu-rank-8"] == ["Another title"]
    assert len(issues) == len(known_issues()) + 1
    assert upstream_of(failed(Verdict.ERROR, custom_calls=("ours_f",)), golden(), issues) == "ours"


ISSUE = "- {id: a, title: t, todo: d, outcome: error, message: m}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("known: issues", "expected a list of known issues"),
        (ISSUE.replace("todo: d, ", ""), "expected the key `[0].todo`"),
        (ISSUE.replace("error", "broken"), "found 'broken'"),
        (ISSUE.replace("message: m", "message: '('"), "[0] (a): message: expected a regular expression"),
        (ISSUE.replace(", message: m", ""), "expected `message` or `concerns`, found neither"),
        (ISSUE.replace(", outcome: error", ""), "expected `outcome`, found none"),
        (ISSUE.replace("message: m", "concerns: {call: [a]}"), "call"),
        (ISSUE.replace("message: m", "message: m, since: 0.9.99"), "since: expected a jaxlib version of the calendar"),
        (ISSUE.replace("message: m", "message: m, written_before: '9'"), "written_before: expected a jaxlib version"),
        (
            ISSUE.replace("todo: d", "todo: Upgrade the reader to jaxlib 0.8.2."),
            "todo: expected `mended_in` beside it, found",
        ),
        (
            ISSUE.replace("todo: d", "todo: Upgrade the reader to jaxlib 0.9.0 or later, mended_in: 0.8.3"),
            "todo: expected an upgrade to 0.8.3 or a younger release, found an upgrade to jaxlib 0.9.0",
        ),
        (ISSUE.replace("todo: d", "todo: Upgrade the reader to jaxlib 0.9"), "version of the calendar, found '0.9'"),
        (ISSUE.replace("message: m", "message: m, since: 0.9.0, mended_in: 0.8.2"), "expected a release built after"),
        (ISSUE.replace("message: m", "message: m, since: 0.9.0, any_reader: why"), "any_reader: cannot be combined"),
        (ISSUE * 2, "[1] (a): id: expected an id that no earlier entry has, found a again."),
        (ISSUE.replace("todo: d", "todo: d, issue: 'javascript:alert(1)'"), "issue"),
    ],
)
def test_a_mistake_in_a_table_of_issues_is_named_in_the_error(text, message, tmp_path):
    file = tmp_path / "newer.yaml"
    file.write_text(text)
    with pytest.raises(PolicyError) as error:
        known_issues(str(file))
    assert str(error.value).startswith(f"{file}: ")
    assert message in str(error.value)


def test_a_missing_table_of_issues_is_an_error(tmp_path):
    with pytest.raises(PolicyError, match="cannot read this table of known issues"):
        known_issues(str(tmp_path / "none.yaml"))


# --- failures that are alike ------------------------------------------------------------------------------------------


WRONG = "ValueError: no 'x' in Function f of 0x12"
FAILED = {
    "segv": (Verdict.CRASH, Stage.RUN, "died by signal 11 (SIGSEGV)", 11),
    "killed": (Verdict.CRASH, Stage.RUN, "killed", 9),
    "error": (Verdict.ERROR, Stage.LOWER, WRONG, None),
    "of another case": (Verdict.ERROR, Stage.LOWER, "ValueError: no 'abc' in Function g of 0x3f", None),
    "with more lines": (Verdict.ERROR, Stage.LOWER, f"{WRONG}\nand more", None),
    "other words": (Verdict.ERROR, Stage.LOWER, "TypeError: no 'x'", None),
    "another stage": (Verdict.ERROR, Stage.COMPILE, WRONG, None),
    "numbers": (Verdict.NUMERICS, Stage.COMPARE, "3 of 4 elements differ", None),
    "other numbers": (Verdict.NUMERICS, Stage.COMPARE, "outputs are NaN", None),
    "silent": (Verdict.REFUSED, Stage.LOWER, "", None),
}
SAME = [{"error", "of another case", "with more lines"}, {"numbers", "other numbers"}]


def result_of(name: str) -> Result:
    verdict, stage, message, signal = FAILED[name]
    return judge_again(result(verdict, stage=stage, message=message, signal=signal), Policy())


def outcome_of(name: str) -> Result:
    verdict, stage, message, signal = FAILED[name]
    cell = Cell(golden("t.f", "0.9.2"), release("0.10.2"), "cpu")
    return new_result(cell, verdict=verdict, stage=stage, message=message, signal=signal)


def test_signatures_of_outcomes_and_of_results_agree_on_equal_failures():
    outcomes, results = ({name: make(name) for name in FAILED} for make in (outcome_of, result_of))
    pairs = list(itertools.product(FAILED, repeat=2))
    alike = [(one, other) for one, other in pairs if one == other or any({one, other} <= names for names in SAME)]
    for ours, theirs, signature in ((results, results, cell_signature), (outcomes, results, failure_signature)):
        assert [(one, other) for one, other in pairs if signature(ours[one]) == signature(theirs[other])] == alike


def test_a_signal_is_in_the_signature_and_not_in_the_cause():
    killed, stopped = (msgspec.structs.replace(result_of("killed"), signal=number) for number in (9, 15))
    assert failure_signature(killed) != failure_signature(stopped)
    assert cell_signature(killed) == cell_signature(stopped)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("segv", "crash-run-d5b5e17a"),
        ("killed", "crash-run-77a63546"),
        ("error", "error-lower-a23e09e4"),
        ("numbers", "numerics-compare-173f618f"),
        ("silent", "refused-lower-9891928e"),
    ],
)
def test_each_failure_keeps_the_cause_id_of_earlier_versions(name, cause):
    """Ids are compared with those of stored runs: if an id were computed differently, its cause would seem new."""
    assert with_causes([result_of(name)])[0].cause == cause


def test_messages_are_compared_without_names_and_addresses():
    assert message_class("in function f: custom call to g at 0x1 of 'h', see https://x/1\nmore") == (
        "in function _ custom call to _ at _ of _, see _"
    )
    assert message_class(" \n") == ""
    sharded = ("output 0 (result['b']) is sharded differently", "output 1 (result.w) is sharded differently")
    assert {*map(message_class, sharded)} == {"output _ is sharded differently"}


def test_cells_of_the_same_upstream_issue_share_a_cause():
    one, other = (judge_again(result(verdict), Policy()) for verdict in (Verdict.CRASH, Verdict.ERROR))
    first, second = (msgspec.structs.replace(cell, upstream="jax-1") for cell in (one, other))
    assert cell_signature(first) == cell_signature(second)


@pytest.mark.parametrize(
    ("reader", "change"),
    [
        ("0.9.1", "Ran when it was exported by jaxlib 0.9.2"),
        ("0.10.0", "Fails since jaxlib 0.10.0 (built 2026-04-16); ran when it was exported by jaxlib 0.9.2"),
    ],
)
def test_a_cause_says_that_the_golden_ran_when_it_was_exported(reader, change):
    (cause,) = causes(failed(writer="0.9.2", reader=reader))
    assert cause.change.startswith(change)

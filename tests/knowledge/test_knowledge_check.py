"""The check that an entry is still true: what it runs for an entry, and what it then reports."""

from pathlib import Path

import pytest
from making import result

from export_core.goldens import GoldenStore
from export_core.matrix import Verdict
from export_core.policy.known_issues import shipped_issues
from tools import knowledge_check
from tools.knowledge_check import Trial, trials, untruths

STORE = GoldenStore(Path(__file__).parents[2] / "golden")
ENTRIES = {issue.id: issue for issue in shipped_issues()}
LAPACK, SORT = ENTRIES["lapack-cold-process"], ENTRIES["iree-sort-3.9"]


def fixtures_of(issue):
    names = (issue.fixture.concerned, issue.fixture.neighbour)
    return {name: STORE.find(name)[1] for name in names if name}


@pytest.mark.parametrize(
    ("entry", "inside", "outside"),
    [
        ("lapack-cold-process", ("0.8.2", "0.9.2"), ("0.10.0",)),  # the first is the first that loads it
        ("iree-sort-3.9", ("iree==3.9.0", "iree==3.10.0"), ("iree==3.8.0", "iree==3.11.0")),
        ("calling-convention-too-old", ("0.11.1", "0.12.0.1"), ("0.11.0",)),  # and the first that must refuse it
        ("tensorflow-dtypes", ("tensorflow==2.20.0", "tensorflow==2.21.0"), ()),  # which load it, by its bytes
    ],
)
def test_both_goldens_of_an_entry_run_at_the_ends_of_its_range(entry, inside, outside):
    concerned, neighbour = trials(ENTRIES[entry], fixtures_of(ENTRIES[entry]))
    assert (concerned.shown_in, concerned.not_in) == (inside, outside)
    assert (neighbour.shown_in, {*neighbour.not_in}) == ((), {*inside, *outside})


@pytest.mark.parametrize(
    ("entry", "inside"),
    [
        ("stablehlo-too-new", ("0.4.18", "0.9.2")),  # releases that its bytes exclude
        ("stablehlo-fft", ("stablehlo==0.5.0", "stablehlo==0.12.0.1")),  # older interpreters cannot be called
        ("needs-x64", ("0.8.2[JAX_ENABLE_X64=false]", "0.12.0.1[JAX_ENABLE_X64=false]")),
    ],
)
def test_an_entry_is_tried_only_in_readers_that_can_show_it(entry, inside):
    concerned, _ = trials(ENTRIES[entry], fixtures_of(ENTRIES[entry]))
    assert (concerned.shown_in, concerned.not_in) == (inside, ())


@pytest.mark.parametrize("entry", ["mosaic-gpu-environment", "iree-donated-arguments"])
def test_an_entry_that_no_available_cell_can_show_is_not_run(entry):
    assert [*trials(ENTRIES[entry], fixtures_of(ENTRIES[entry]))] == []


def cells(**shown):
    """Return a result for each reader, such as `_0_9_2` for 0.9.2: a crash by this known issue, or a pass for ""."""
    readers = [(name[1:].replace("_", "."), upstream) for name, upstream in shown.items()]
    return [
        result(Verdict.CRASH if upstream else Verdict.PASS, reader=reader, upstream=upstream)
        for reader, upstream in readers
    ]


TRIAL = Trial(STORE.find(LAPACK.fixture.concerned)[1], ("0.8.2", "0.9.2"), ("0.10.0",))
TRUE = {"_0_8_2": LAPACK.id, "_0_9_2": LAPACK.id, "_0_10_0": ""}


def test_an_entry_whose_issue_shows_only_inside_its_range_is_true():
    assert [*untruths(LAPACK, TRIAL, cells(**TRUE))] == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"_0_9_2": ""}, "was expected to show the issue in 0.9.2, found pass"),
        ({"_0_9_2": "another"}, "was expected to show the issue in 0.9.2, found crash"),
        ({"_0_10_0": LAPACK.id}, "shows the issue in 0.10.0: it is outside the range, or the neighbour"),
    ],
)
def test_an_entry_that_is_no_longer_true_is_reported(changed, expected):
    (line,) = untruths(LAPACK, TRIAL, cells(**{**TRUE, **changed}))
    assert expected in line


def test_a_not_run_cell_outside_the_range_of_an_entry_is_reported():
    not_run = result(Verdict.NOT_RUN, reader="0.10.0", message="uv failed")
    (line,) = untruths(LAPACK, TRIAL, [*cells(**TRUE)[:2], not_run])
    assert line.endswith("was not run in 0.10.0: uv failed")


def test_an_issue_that_shows_sometimes_must_show_in_at_least_one_cell():
    trial = TRIAL._replace(shown_in=("0.8.2", "0.9.2"), not_in=())
    once, never = cells(_0_8_2=SORT.id, _0_9_2=""), cells(_0_8_2="", _0_9_2="")
    assert SORT.certainty == "sometimes"
    assert [*untruths(SORT, trial, once)] == []
    assert len([*untruths(SORT, trial, never)]) == 2


@pytest.fixture(autouse=True)
def _few_goldens(monkeypatch):
    monkeypatch.setattr(knowledge_check, "fixtures", lambda: {TRIAL.golden.id: TRIAL.golden})


@pytest.mark.parametrize(("shown", "code"), [(TRUE, 0), ({**TRUE, "_0_9_2": ""}, 1)])
def test_the_exit_code_says_if_an_entry_is_no_longer_true(shown, code, monkeypatch, capsys):
    monkeypatch.setattr(knowledge_check, "run_trial", lambda trial: cells(**shown))
    assert knowledge_check.main([LAPACK.id]) == code
    assert ("no longer true" in capsys.readouterr().out.splitlines()[0]) is bool(code)


def test_checking_an_unknown_entry_exits_with_1():
    assert knowledge_check.main(["no-such-entry"]) == 1

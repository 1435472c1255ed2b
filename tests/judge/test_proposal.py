"""What known failures a run would need: written down but for what only a person can say, and only of whole runs."""

import re

import msgspec
import pytest
import yaml
from commands import assert_bad_input, finished
from hypothesis import given, settings
from hypothesis import strategies as st
from making import day, result, rules, summarize

from export_core.judge import Judgement, judge_again
from export_core.judge.known import stale_entries
from export_core.matrix import Verdict
from export_core.policy import KnownFailure, PolicyError, load_policy
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Stage
from export_core.report.policy_text import proposal

SEGV = "died by signal 11 (SIGSEGV)"
FILLED = {"reason": "r", "owner": "o", "issue": "i", "expires": "2026-12-01"}


def crash(case="t.a", reader="0.10.2", message=SEGV, **changes):
    died = {"stage": Stage.RUN, "message": message, **changes}
    return result(Verdict.CRASH, Judgement.BROKEN, case=case, reader=reader, **died)


def entries(*results) -> list[dict]:
    text = proposal(results, summarize(results))
    return yaml.safe_load(text)["known_failures"] if text else []


def test_cells_that_fail_alike_are_one_entry_with_open_fields():
    cells = [crash(case, reader) for case in ("t.a", "t.b") for reader in ("0.10.0", "0.10.2")]
    (entry,) = entries(*cells, result())
    assert entry == {
        "cases": ["t.a", "t.b"], "writers": ["0.9.2"], "readers": ["0.10.0", "0.10.2"], "platforms": ["cpu"],
        "verdict": "crash", "stage": "run", "message": SEGV, "reason": "TODO why it fails",
        "owner": "TODO who is responsible for it", "issue": "TODO the issue that tracks it", "added": day("2026-11-21"),
        "expires": "TODO a day, at most 90 days after added",
    }  # fmt: skip


def test_entries_cover_no_cell_that_is_kept():
    broken = [crash("t.a", "0.10.0"), crash("t.a", "0.10.2"), crash("t.b", "0.10.2")]
    cells = [*broken, result(case="t.b", reader="0.10.0")]
    assert [(entry["cases"], entry["readers"]) for entry in entries(*cells)] == [
        (["t.a"], ["0.10.0", "0.10.2"]),
        (["t.b"], ["0.10.2"]),
    ]


def test_wrong_numbers_are_told_without_how_wrong_they_are():
    def wrong(case, error):
        told = f"output 0 float32[2]: 1 of 2 elements differ (max abs error {error}, allowed 0)\n  worst at [0]"
        return result(Verdict.NUMERICS, Judgement.BROKEN, case=case, message=told)

    (entry,) = entries(wrong("t.a", 0.5), wrong("t.b", 0.7))
    assert entry["message"] == "output 0 float32[2]: 1 of 2 elements differ"


def test_nothing_broken_needs_no_entry():
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
        crash(case, reader, message, writer=writer) if message else result(case=case, writer=writer, reader=reader)
        for (case, writer, reader), message in cells.items()
    ]
    known = [msgspec.convert({**entry, **FILLED}, KnownFailure) for entry in entries(*results)]
    judged = [judge_again(each, rules(known=known)) for each in results]
    assert {each.judgement for each in judged} <= {Judgement.KNOWN, Judgement.KEPT}
    assert stale_entries(judged, rules(known=known), day("2026-11-21"), whole=True) == []


def test_what_is_proposed_is_refused_until_somebody_fills_it_in(tmp_path):
    path = tmp_path / "export_compat.yaml"
    text = proposal([crash()], summarize([crash()]))
    for name in ("reason", "owner", "issue"):
        path.write_text(text)
        with pytest.raises(PolicyError, match=r"expires: expected a date such as 2026-10-25, found 'TODO a day"):
            load_policy(path)
        path.write_text(text.replace("TODO a day, at most 90 days after added", "2026-12-01"))
        said = rf"known_failures\[0\]\.{name}: expected your own text in the place of 'TODO"
        with pytest.raises(PolicyError, match=said):
            load_policy(path)
        text = re.sub(rf"^    {name}: .*", f"    {name}: filled in", text, flags=re.M)
    path.write_text(text.replace("TODO a day, at most 90 days after added", "2026-12-01"))
    assert len(load_policy(path).known_failures) == 1


@pytest.mark.parametrize(
    ("results", "told", "said"),
    [
        ([crash()], {"whole": False}, "some of its cells: run the matrix without --cases"),
        ([crash()], {"shard": Shard(1, 3)}, "shard 1 of 3: merge the shards first"),
        ([crash(), result(Verdict.NOT_RUN, Judgement.INCOMPLETE)], {}, "1 cells that were not run"),
    ],
)
def test_a_part_of_a_run_proposes_nothing(results, told, said, jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    selection = {"whole": told.pop("whole", True)}
    finished(tmp_path / "out", *results, selection=selection, **told)
    expected = "--propose: expected a whole run whose cells all ran"
    assert_bad_input(jaxexport("judge", "out", "--propose"), expected, said)


def test_the_command_prints_yaml_and_reports_broken_promises(jaxexport, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "out", crash())
    ended = jaxexport("judge", "out", "--propose", code=1)
    assert len(yaml.safe_load(ended.out)["known_failures"]) == 1
    assert "BROKEN: 1 of 1 promised cells, 1 cause" in ended.err

"""Generations of a case with other inputs or outputs: gates note them, though each golden agrees with its own."""

import numpy as np
import pytest
from commands import finished
from making import files, manifest, result, write_golden

from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.arrays import leaf_of, to_npz
from export_core.goldens.store import INPUTS, OUTPUTS
from export_core.judge.generations import changes_between_goldens, first_changes, notes_on_changed_goldens
from export_core.matrix import Verdict
from export_core.matrix.comparisons import under_policy
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions, Selection
from export_core.run import session

CASE = "tests.test_a.test_f"
DIFF = f"jaxexport diff {CASE}/0.9.2-cpu {CASE}/0.12.0.1-cpu"


def values(value: float) -> bytes:
    return to_npz([leaf_of(np.full(2, value, np.float32))])


def generations(cwd, changed: dict[str, bytes], **of_both) -> list:
    """Write two goldens of a case, the later one with `changed` files, and return them as a run compares them."""
    store = GoldenStore(cwd / "golden")
    for jaxlib, content in (("0.9.2", {}), ("0.12.0.1", changed)):
        write_golden(store, manifest(CASE, jaxlib, **of_both), {**files(jaxlib=jaxlib), **content})
    return under_policy(store.goldens(), Policy())


@pytest.mark.parametrize(
    ("changed", "of_both", "what"),
    [
        ({}, {}, ""),
        ({OUTPUTS: values(2)}, {}, "other outputs for the same inputs"),
        ({OUTPUTS: values(1 + 2e-7)}, {}, ""),  # within the tolerance
        ({OUTPUTS: values(1.1)}, {"comparison": Comparison(rtol=0.2)}, ""),
        ({OUTPUTS: values(2)}, {"comparison": Comparison("shape")}, ""),
        ({OUTPUTS: values(2)}, {"comparison": Comparison("own.py:compare")}, ""),  # not run here
        ({INPUTS: values(2), OUTPUTS: values(2)}, {}, "other inputs"),
        ({INPUTS: values(1 + 2e-7), OUTPUTS: values(2)}, {}, ""),  # by another processor: outputs are not compared
        ({INPUTS: values(2), OUTPUTS: values(2)}, {"inputs_made": True}, ""),  # by another rule
    ],
)
def test_generations_are_noted_only_if_they_differ(changed, of_both, what, cwd):
    notes = [*notes_on_changed_goldens(generations(cwd, changed, **of_both), Policy())]
    expected = (
        f"note: {CASE}: the goldens by 0.9.2-cpu and 0.12.0.1-cpu have {what}, and each is compared with its own "
        f"outputs: `{DIFF}` shows what differs"
    )
    assert notes == ([expected] if what else [])


@pytest.mark.parametrize(("changed", "count"), [(INPUTS, 1), (OUTPUTS, 0)])
def test_without_outputs_only_inputs_are_compared(changed, count, cwd):
    assert len(changes_between_goldens(generations(cwd, {changed: values(2)}), Policy(), outputs=False)) == count


@pytest.mark.parametrize(
    "words",
    [
        ("judge",),
        ("can-i-deploy", "--to", "serving"),
        ("can-i-deploy", "--to", "serving", f"{CASE}/0.12.0.1-cpu"),  # the golden before it is not asked about
    ],
)
def test_generations_that_differ_change_no_answer_of_a_gate(words, cwd, jaxexport):
    (cwd / "export_compat.yaml").write_text("deployed: [{name: serving, jaxlib: 0.12.0.1}]\n")
    ended = []
    for value in (1.0, 2.0):
        generations(cwd, {OUTPUTS: values(value)})
        passed = [result(Verdict.PASS, writer=name, case=CASE) for name in ("0.9.2", "0.12.0.1")]
        finished(cwd / ".jaxexport", *passed, selection={"whole": False})
        ended.append(jaxexport(*words))
    same, other = ended
    assert (same.code, same.out) == (other.code, other.out)
    assert [f"`{DIFF}` shows what differs" in each.err for each in ended] == [False, True]


def test_a_single_selected_golden_is_compared_with_its_predecessor(cwd):
    goldens = generations(cwd, {OUTPUTS: values(2)})
    noted = [[*notes_on_changed_goldens(goldens, Policy(), asked=[golden.id])] for golden in goldens]
    assert {goldens[number].manifest.writer.jaxlib: len(notes) for number, notes in enumerate(noted)} == {
        "0.9.2": 0,
        "0.12.0.1": 1,
    }


def test_judge_reports_differing_generations_once(cwd, jaxexport):
    passed = [result(Verdict.PASS, writer=name, case=CASE) for name in ("0.9.2", "0.12.0.1")]
    sentences = changes_between_goldens(generations(cwd, {OUTPUTS: values(2)}), Policy())
    finished(cwd / "out", *passed, selection={"whole": False}, other_generations=sentences)
    judged = jaxexport("judge", "out")
    assert (judged.code, judged.out.count("GOLDENS DIFFER"), judged.err.count(DIFF)) == (0, 1, 0)
    assert f"`{DIFF}` shows what differs." in " ".join(judged.out.split())
    written = jaxexport("report", "out", "--markdown", "out.md", "--html", "out.html", "--junit", "out.xml")
    assert written.code == 0
    for name in ("out.md", "out.html"):
        assert "other outputs for the same inputs" in (cwd / name).read_text(), name


def test_five_differing_generations_are_named_and_others_counted():
    sentences = [f"t.{number}: the goldens differ" for number in range(8)]
    assert first_changes(sentences) == [
        *sentences[:5],
        "3 more with other inputs or outputs than the golden before",
    ]
    assert first_changes(sentences[:5]) == sentences[:5]


def test_a_matrix_records_generations_that_differ(cwd, monkeypatch):
    monkeypatch.setattr(session, "_replay_by", lambda *_: lambda *_, **__: (pair for pair in ()))  # no cell runs
    for value, count in ((1.0, 0), (2.0, 1)):
        generations(cwd, {OUTPUTS: values(value)})
        run = session.run_matrix(Policy(), Selection(readers="0.12.0.1"), RunOptions())
        assert len(run.summary.other_generations) == count

"""Each row of the decision table end to end: real goldens, a real reader, and the exit codes of the command."""

import re
import shutil
from pathlib import Path

import pytest
from rows import write_rows

from export_core.judge import Judgement
from export_core.matrix import Verdict
from tools.stored_results import read_results

READER = "0.12.0.1"  # 216 days after the writer
INSIDE, OUTSIDE = "windows: {backward: 216 days}\n", "windows: {backward: 215 days}\n"
UNBUILDABLE = (
    "releases: {jaxlib: {9.9.9: {built: 2026-10-20}}, jax: {9.9.9: {built: 2026-10-20, minimum_jaxlib: 9.9.9}}}\n"
)
ACCEPTED = "unpromised: only what is outside the window is looked at here\n"
AS_OF = ("--as-of", "2026-11-21")


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A golden for each verdict, and a policy for each question."""
    folder = tmp_path_factory.mktemp("rows")
    write_rows(folder / "golden")
    policies = {
        "inside": INSIDE,
        "outside": OUTSIDE,
        "target": f"{OUTSIDE}deployed: [{{name: serving, jaxlib: {READER}}}]\n",
        "missing_inside": INSIDE + UNBUILDABLE,
        "missing_outside": OUTSIDE + UNBUILDABLE,
        "not_required": OUTSIDE + UNBUILDABLE + ACCEPTED + "required: {outside: false}\n",
        "required": OUTSIDE + UNBUILDABLE + ACCEPTED + "required: {outside: false, readers: [9.9.9]}\n",
    }
    for name, text in policies.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture(autouse=True)
def _here(project, forked_workers, monkeypatch) -> None:
    """The folder in which the commands run, and workers that are forks."""
    monkeypatch.chdir(project)


def judged(folder: Path, reader: str) -> Judgement:
    """Return the judgement of the only cell of a reader in a finished run."""
    (result,) = [one for one in read_results(folder) if one.reader.jaxlib == reader]
    return result.judgement


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("verdict", "inside", "outside", "in_a_target"),
    [
        (Verdict.PASS, ("kept", 0), ("bonus", 3), ("bonus", 0)),
        (Verdict.NUMERICS, ("broken", 1), ("broken", 1), ("broken", 1)),
        (Verdict.REFUSED, ("broken", 1), ("outside", 3), ("owed", 1)),
        (Verdict.ERROR, ("broken", 1), ("outside", 3), ("owed", 1)),
        (Verdict.CRASH, ("broken", 1), ("outside", 3), ("owed", 1)),
        (Verdict.TIMEOUT, ("broken", 1), ("outside", 3), ("owed", 1)),
    ],
    ids=str,
)
def test_verdicts_are_judged_by_window_and_target(jaxexport, project, verdict, inside, outside, in_a_target):
    """Outside the window the exit code is 3, unless a cell is broken or a deployment target has to run it."""
    seconds = "3" if verdict is Verdict.TIMEOUT else "100"
    words = ("matrix", "--cases", str(verdict), "--readers", READER, "--timeout", seconds, *AS_OF)
    ran = jaxexport(*words, "--policy", "inside.yaml", "--results", f"{verdict}")
    (result,) = read_results(project / verdict)
    assert (result.verdict, result.promised) == (verdict, True), result.message
    assert (str(result.judgement), ran.code) == inside, ran.out
    again = jaxexport("judge", str(verdict), "--policy", "outside.yaml", "--full")
    assert (f"1 of 1 planned cells: 1 {outside[0]}." in again.out, again.code) == (True, outside[1]), again.out
    needed = jaxexport("judge", str(verdict), "--policy", "target.yaml", "--full")
    is_counted = f"1 of 1 planned cells: 1 {in_a_target[0]}." in needed.out
    assert (is_counted, needed.code) == (True, in_a_target[1]), needed.out
    if inside[0] == "broken":
        report = jaxexport("report", str(verdict), "--full")
        for word in ("BROKEN PROMISE", "built 2026-03-18", "built 2026-10-20", "216 days", "reproduce  jaxexport"):
            assert word in report.out


@pytest.mark.matrix
def test_a_missing_reader_exits_with_3_unless_optional(jaxexport, project):
    words = ("matrix", "--cases", "pass", "--readers", f"{READER},9.9.9", *AS_OF, "--results", "missing")
    ran = jaxexport(*words, "--policy", "missing_inside.yaml")
    assert (judged(project / "missing", "9.9.9"), ran.code) == (Judgement.INCOMPLETE, 3), ran.out
    judged_by = {
        name: jaxexport("judge", "missing", "--policy", f"{name}.yaml", "--full")
        for name in ("missing_outside", "not_required", "required")
    }
    exit_codes = {name: ended.code for name, ended in judged_by.items()}
    assert exit_codes == {"missing_outside": 3, "not_required": 0, "required": 3}
    assert "outside the window" in judged_by["not_required"].out, "and it is shown all the same"
    assert "was not run" in judged_by["not_required"].out
    assert "required.readers: expected a cell that ran for 9.9.9, found 0.12.0.1." in judged_by["required"].out


@pytest.mark.matrix
def test_a_compiled_cell_is_kept_inside_the_window_else_a_bonus(jaxexport, project):
    words = ("matrix", "--cases", "compiled", "--readers", READER, "--platforms", "tpu:compile", *AS_OF)
    ran = jaxexport(*words, "--policy", "inside.yaml", "--results", "out")
    (result,) = read_results(project / "out")
    assert (result.verdict, result.judgement, ran.code) == (Verdict.COMPILED, Judgement.KEPT, 0), ran.out
    for policy, word, code in (("inside", "kept", 0), ("outside", "bonus", 3)):
        ended = jaxexport("judge", "out", "--policy", f"{policy}.yaml")
        assert (f"1 of 1 planned cells: 1 {word}." in ended.out, ended.code) == (True, code)


@pytest.mark.matrix
def test_a_quirk_accepts_other_numbers_and_is_listed(jaxexport, project):
    (project / "quirk.yaml").write_text(
        f"{INSIDE}quirks:\n  - {{case: numerics, writer: 0.9.2-cpu, atol: {{float32: 1.5}}, reason: shown on purpose, "
        "owner: me,\n"
        "     issue: '#7', added: 2026-10-01, expires: 2026-12-01}\n"
    )
    words = ("matrix", "--cases", "numerics", "--readers", READER, *AS_OF, "--policy", "quirk.yaml")
    ended = jaxexport(*words, "--results", "quirk")
    assert (judged(project / "quirk", READER), ended.code) == (Judgement.KEPT, 0), ended.out
    assert re.search(r"accepted  quirk: atol float32 1\.5 \(.+\): numerics/0\.9\.2-cpu\.", ended.out), ended.out
    full = jaxexport("report", "quirk", "--full")
    assert "reason     shown on purpose; owner me, #7, until 2026-12-01" in full.out
    without = jaxexport("judge", "quirk", "--policy", "inside.yaml")
    assert (without.code, "quirks: expected the value that this run was made with" in without.err) == (2, True)


@pytest.mark.matrix
def test_a_numbers_rule_accepts_numbers_without_changing_goldens(jaxexport, project):
    stored = {path: path.read_bytes() for path in (project / "golden" / "numerics").rglob("*.*") if path.is_file()}
    (project / "rule.yaml").write_text(
        f"{INSIDE}numbers: [{{cases: [numerics], atol: {{float32: 1.5}}, reason: measured on purpose}}]\n"
    )
    words = ("matrix", "--cases", "numerics", "--readers", READER, *AS_OF, "--policy", "rule.yaml", "--results", "rule")
    ended = jaxexport(*words)
    assert (judged(project / "rule", READER), ended.code) == (Judgement.KEPT, 0), ended.out
    assert re.search(r"accepted  numbers: atol float32 1\.5 \(.+\): numerics/0\.9\.2-cpu\.", ended.out), ended.out
    assert "reason     measured on purpose" in jaxexport("report", "rule", "--full").out
    assert {path: path.read_bytes() for path in stored} == stored
    without = jaxexport("judge", "rule", "--policy", "inside.yaml")
    assert (without.code, "numbers: expected the value that this run was made with" in without.err) == (2, True)


@pytest.mark.matrix
def test_a_wide_tolerance_is_listed_as_accepted(jaxexport, project):
    """The policy gives a tolerance for a platform, or the golden has its own."""
    (project / "wide.yaml").write_text(f"{INSIDE}tolerances: {{cpu: {{float32: {{atol: 1.5}}}}}}\n")
    words = ("matrix", "--cases", "numerics", "--readers", READER, *AS_OF, "-q")
    ended = jaxexport(*words, "--policy", "wide.yaml", "--results", "wide")
    assert (judged(project / "wide", READER), ended.code) == (Judgement.KEPT, 0), ended.out
    assert re.search(r"accepted  tolerances: atol 1\.5 for float32 on cpu \(.+\): numerics\.", ended.out), ended.out
    shutil.copytree(project / "golden" / "numerics", project / "own" / "numerics")
    own = project / "own" / "numerics" / "0.9.2-cpu" / "golden.yaml"
    own.write_text(own.read_text().replace("  atol: null", "  atol: 1.5"))
    words = (*words, "--goldens", "own", "--policy", "inside.yaml", "--results", "own-tolerance")
    ended = jaxexport(*words)
    assert (judged(project / "own-tolerance", READER), ended.code) == (Judgement.KEPT, 0), ended.out
    assert re.search(r"accepted  comparison: atol 1\.5 \(.+\): numerics/0\.9\.2-cpu\.", ended.out), ended.out

"""How a cell is chosen: by words, by options or by a run's results, and the errors where that is not one cell."""

import datetime
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from commands import finished, stored
from making import artifact_by, files, manifest, result, write_golden

from export_core.artifact import read_bytes
from export_core.artifact.envelope.encode import encode
from export_core.base.errors import ExportCompatError
from export_core.features.why.choice import Asked, Choice, choose
from export_core.features.why.explain.explanation import explain, result_of
from export_core.goldens import Comparison, GoldenStore, Options
from export_core.goldens.store import ARTIFACT
from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.matrix.reproduce_command import reproduce_command
from export_core.policy import Policy, find_policy
from export_core.policy.run_options import GIB, RunOptions, Selection, reproduce_options
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.run.results import read_run
from export_core.run.session import plan_matrix

CASE, OTHER = "tests.test_a.test_f", "tests.test_b.test_g"
CELL = f"{CASE}/0.9.2-cpu in 0.10.2-jax0.10.2 on cpu"


@pytest.fixture
def project(tmp_path) -> Path:
    """Two goldens of a case and one of another."""
    for case, writer in ((CASE, "0.8.1"), (CASE, "0.9.2"), (OTHER, "0.9.2")):
        write_golden(GoldenStore(tmp_path / "golden"), manifest(case, writer), files(jaxlib=writer))
    return tmp_path


def chosen(**asked: Any) -> Choice:
    run = RunOptions(as_of=datetime.date(2026, 11, 21))
    return choose(Asked(**{"run": run, **asked}))


def failing(reader: str = "0.10.2", verdict: Verdict = Verdict.CRASH, **changes: Any) -> Result:
    return result(verdict, reader=reader, message="died by signal 11 (SIGSEGV)", **changes)


def refusal(**asked: Any) -> str:
    with pytest.raises(ExportCompatError) as refused:
        chosen(**asked)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_options_choose_a_cell_if_there_is_no_stored_run(project):
    choice = chosen(case="*test_f", writer="0.9.2", reader="0.10.2")
    assert (str(choice.cell.key), choice.cell.mode, choice.result) == (CELL, Mode.RUN, None)


def test_a_comparator_gets_the_variables_of_the_policy(tmp_path, monkeypatch):
    monkeypatch.setenv("OUR_SCALE", "2")
    Path("our_rule.py").write_text("import os\nSCALE = os.environ['OUR_SCALE']\ndef f(*_): return None\n")
    Path("export_compat.yaml").write_text("environment: [OUR_SCALE]\n")
    made = msgspec.structs.replace(manifest(CASE, "0.9.2"), comparison=Comparison("our_rule:f"))
    write_golden(GoldenStore(tmp_path / "golden"), made)
    assert chosen(case=CASE, reader="0.10.2").cell.golden.compared_as.comparison == made.comparison


@pytest.mark.parametrize(
    "words",
    [
        CELL,
        f"{CASE}/0.9.2-cpu in 0.10.2",
        f"{CASE}/0.9.2 in 0.10.2",
        f"{CASE}/0.9.2-cpu in jaxlib 0.10.2 on cpu",
    ],
)
def test_explain_accepts_a_cell_name_as_a_report_prints_it(words, project):
    assert str(chosen(cell=words).cell.key) == CELL


COMMAND = f"jaxexport matrix --cases {CASE} --writers 0.9.2 --readers 0.10.2 --platforms cpu"


def test_printed_commands_repeat_the_options_of_the_run(project):
    (project / "other.yaml").write_text("windows: {backward: 200, forward: 21}")
    run = RunOptions(policy_file="other.yaml", as_of=datetime.date(2026, 10, 25), timeout=9.0, memory=GIB // 2)
    choice = chosen(cell=CELL, run=run, selection=Selection(targets=("tpu=v6e",)))
    assert choice.options.policy.windows.backward == 200
    assert choice.plan.as_of == datetime.date(2026, 10, 25)
    assert (choice.options.limits.timeout, choice.options.limits.memory) == (9, GIB // 2)
    assert "--target tpu=v6e" in choice.command("explain")
    assert "--timeout 9 --memory 0.5" in choice.reproduce


@pytest.mark.parametrize(("folder", "is_named"), [("from-ci", True), (".jaxexport", False)])
def test_printed_commands_name_results_in_another_folder(folder, is_named, project):
    stored(failing(), folder=folder)
    choice = chosen(cell=CELL, results=Path(folder))
    steps = " ".join(explain(choice, result_of(choice, print)).steps)
    for command in (choice.command("bisect"), steps):
        assert ("--results from-ci" in command) is is_named
    assert "--results" not in choice.command("bisect").replace("--results from-ci", "")
    assert "jaxexport bisect" in steps


def test_printed_commands_pass_the_policys_variables(project, monkeypatch):
    (project / "export_compat.yaml").write_text("environment: [XLA_FLAGS, OUR_TOKEN]\n")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX")
    monkeypatch.setenv("OUR_TOKEN", "s3cret")
    choice = chosen(cell=CELL)
    for command in (choice.reproduce, choice.command("reduce")):
        assert command.startswith('OUR_TOKEN="${OUR_TOKEN?}" XLA_FLAGS=--xla_cpu_max_isa=AVX jaxexport ')


def test_the_reproduce_command_repeats_day_and_reader(project):
    stored(failing(reproduce=f"{COMMAND} --as-of 2026-10-25 --timeout 5"), failing("0.11.0", reproduce=COMMAND))
    choice = choose(Asked(case=CASE, reader="0.10.2-jax0.10.2"))
    assert choice.plan.as_of == datetime.date(2026, 10, 25)
    assert choice.reproduce == f"{COMMAND} --as-of 2026-10-25 --no-cache --results .jaxexport/reproduced"
    assert "--as-of 2026-10-25" in choice.command("bisect")
    asked = chosen(case=CASE, reader="0.10.2")
    assert "--as-of 2026-11-21" in asked.reproduce, "an option that was given counts"
    assert "--as-of" not in choose(Asked(case=CASE, reader="0.11.0")).reproduce
    other = chosen(case=CASE, writer="0.9.2", reader="0.11.2-jax0.11.2")
    assert "--readers 0.11.2-jax0.11.2" in other.reproduce, "the jaxlib alone means another jax"


@pytest.mark.parametrize(
    ("deployed", "targets"),
    [
        ("goldens: golden", ()),
        ("deployed: [{name: farm, jaxlib: 0.12.0.1}]", ("farm",)),
        ("deployed: [{name: farm, jaxlib: 0.12.0.1, until: 2026-10-31}]", ()),  # it has ended
    ],
)
def test_explain_and_matrix_reproduce_a_cell_by_one_command(deployed, targets, tmp_path):
    Path("export_compat.yaml").write_text(deployed)
    write_golden(GoldenStore(tmp_path / "golden"), manifest(CASE, "0.9.2"), files(jaxlib="0.9.2"))
    choice = chosen(case=CASE, writer="0.9.2", reader="0.12.0.1")
    options = RunOptions(as_of=choice.plan.as_of)
    plan = plan_matrix(find_policy("."), Selection(readers="0.12.0.1"), options)
    (cell,) = (cell for cell in plan.cells if cell.key == choice.cell.key)
    assert not cell.promised
    assert cell.deployed == choice.cell.deployed == targets
    command = reproduce_command(plan, cell, reproduce_options(Selection(), options))
    assert choice.reproduce == command
    assert ("--unpromised" in command) is not bool(targets)


def test_a_cell_named_by_golden_or_case_needs_a_reader(project):
    assert str(chosen(cell=f"{CASE}/0.9.2-cpu", reader="0.10.2-jax0.10.2").cell.key) == CELL
    assert str(chosen(cell=CASE, writer="0.9.2-cpu", reader="0.10.2").cell.key) == CELL
    assert "or a cell with its reader" in refusal(cell=CASE)


def test_the_only_failing_cell_of_a_run_is_chosen(project):
    stored(result(reader="0.9.2"), failing(), result(case=OTHER, writer="0.9.2"), folder="ci")
    choice = chosen(results=Path("ci"))
    assert str(choice.cell.key) == CELL
    assert choice.result
    assert choice.result.verdict is Verdict.CRASH
    assert str(chosen(case=CASE, results=Path("ci")).cell.key) == CELL


def test_naming_a_cause_by_id_chooses_its_example_cell(project):
    judged = stored(failing(), failing("0.11.0", Verdict.ERROR), failing("0.11.1", Verdict.ERROR))
    assert str(chosen(cell=judged[0].cause).cell.key) == CELL
    assert chosen(cell=judged[1].cause).cell.reader.jaxlib == "0.11.0"


def test_a_passing_cell_is_chosen_if_its_reader_is_named(project):
    stored(result(), failing("0.11.0"))
    choice = chosen(case=CASE, writer="0.9.2", reader="0.10.2")
    assert choice.result
    assert choice.result.verdict is Verdict.PASS
    refused = refusal(case=CASE, platform="cpu", results=passed())
    assert "None of these cells fails" in refused
    assert "To ask about a reader that the run lacks, name it with --reader." in refused


def passed() -> Path:
    stored(result(), folder="passed")
    return Path("passed")


def test_a_stored_result_of_another_golden_is_not_used(project):
    judged = stored(failing())
    assert chosen(cell=CELL).result
    finished(Path(".jaxexport"), *judged, plan={"goldens": {judged[0].golden: "another"}})
    assert (chosen(cell=CELL).result, chosen(cell=CELL).not_counted) == (None, "another golden of this name")


def test_a_chosen_cell_has_the_mode_of_its_stored_result(tmp_path):
    for_cuda = encode(read_bytes(artifact_by("0.9.2")).envelope._replace(platforms=("cuda",)))
    made = manifest(CASE, "0.9.2", options=Options(platforms=("cuda",)))
    write_golden(GoldenStore(tmp_path / "golden"), made, {**files(), ARTIFACT: for_cuda})
    stored(failing(platform="cuda", mode=Mode.COMPILE))
    assert (chosen().cell.platform, chosen().cell.mode) == ("cuda", Mode.COMPILE)
    other = chosen(platform="cuda:run")
    assert (other.cell.mode, other.result) == (Mode.RUN, None)
    assert chosen(reader="0.9.2").cell.platform == "cuda", "the golden runs nowhere else"


def test_an_ambiguous_choice_lists_the_cells(project):
    assert "Expected one cell, found 2: " in refusal(case=CASE, reader="0.10.2")
    stored(failing(), failing("0.11.0", stage=Stage.COMPILE), result(reader="0.11.1"))
    message = refusal()
    assert f"{CELL}: crash; {CASE}/0.9.2-cpu in 0.11.0-jax0.11.0 on cpu: crash. Name one" in message
    assert "0.11.1" not in message, "it works"


def test_the_example_cell_of_a_cause_says_how_many_fail_alike(project):
    refused = result(Verdict.REFUSED, reader="0.6.2", stage=Stage.DESERIALIZE, promised=False)
    stored(failing(), failing("0.11.0"), result(reader="0.11.1"), refused)
    choice = chosen()
    (cause, outside) = read_run(Path(".jaxexport")).summary.causes
    assert outside.judgement is Judgement.OUTSIDE
    assert (choice.cell.key, choice.alike) == (cause.example, {Judgement.BROKEN: 2})


def test_explain_without_arguments_shows_the_only_cause(project, jaxexport, monkeypatch):
    stored(failing(), failing("0.11.0"), result(reader="0.11.1"))
    whole = jaxexport("explain", "--as-of", "2026-11-21", code=0).out
    assert "It is the cause of 2 broken cells." in whole
    monkeypatch.setattr("export_core.features.why.why_commands.console", lambda: SimpleNamespace(width=80))
    narrow = jaxexport("explain", "--as-of", "2026-11-21", code=0).out
    assert narrow.split() == whole.split()
    too_long = [line for line in narrow.splitlines() if len(line) > 80 and " " in line.strip()]
    # A command is copied as it is, also one in a sentence.
    assert {line.split()[0] for line in too_long} == {"reproduce", "`jaxexport"}


def test_explain_leaves_out_readers_of_a_later_day(project, jaxexport):
    """On the asked day, jaxlib 0.10.2 was built and 0.11.0 was not; `report` leaves such readers out too."""
    stored(failing(), failing("0.11.0"))
    shown = jaxexport("explain", "--as-of", "2026-07-01", code=0).out
    assert "read by jax 0.10.2" in shown
    assert "0.11.0" not in shown
    too_early = jaxexport("explain", "--as-of", "2026-04-01", code=2).err
    assert "found only later ones. Choose a later --as-of." in too_early


def test_explain_counts_causes_as_the_report_does(project, jaxexport):
    """Cells that fail alike are one cause, whether they are broken, owed or outside the window."""
    broken = [failing(reader, judgement=Judgement.BROKEN) for reader in ("0.10.2", "0.11.0")]
    owed = failing("0.8.1", judgement=Judgement.OWED, promised=False, deployed=("edge",))
    outside = failing("0.6.2", judgement=Judgement.OUTSIDE, promised=False)
    error = failing("0.11.1", Verdict.ERROR, judgement=Judgement.BROKEN, case=OTHER, stage=Stage.COMPILE)
    finished(Path(".jaxexport"), *broken, owed, outside, error)
    words = ("--as-of", "2026-11-21")
    shown = jaxexport("report", code=0).out
    assert "BROKEN: 4 cells, 2 causes." in shown
    assert "3 of 3 promised cells, 2 causes" in shown
    counts = "It is the cause of 4 cells: 2 broken, 1 owed, 1 outside. The run also fails by 1 other cause, listed"
    assert counts in jaxexport("explain", *words, code=0).out
    of_one_case = jaxexport("explain", "--case", CASE, *words, code=0).out
    assert "It is the cause of 4 cells: 2 broken, 1 owed, 1 outside.\n" in of_one_case
    of_both = jaxexport("explain", "--case", "tests.*", *words, code=0).out
    assert "1 outside. The cells that are named have 1 other cause, listed at the end." in of_both


def test_explain_of_a_kept_run_leaves_out_expected_refusals(project, jaxexport):
    refused = result(Verdict.REFUSED, reader="0.6.2", stage=Stage.DESERIALIZE, promised=False)
    crash = failing("0.6.1", case=OTHER, judgement=Judgement.OUTSIDE, promised=False)
    error = failing("0.6.1", Verdict.ERROR, judgement=Judgement.OUTSIDE, promised=False, stage=Stage.COMPILE)
    stored(result(), refused, crash, error)
    assert "outside the window  2 causes, 2 of 3 cells: " in jaxexport("report", code=0).out
    shown = jaxexport("explain", "--as-of", "2026-11-21", code=0).out
    assert "The run has 1 other cause, listed at the end." in shown


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"case": "tests.test_a.test_ff", "reader": "0.9.2"}, "Did you mean 'tests.test_a.test_f'?"),
        ({"cell": "test_f in 0.9.2"}, "Did you mean 'tests.test_a.test_f'?"),
        ({"cell": "test_f/0.9.2-cpu in 0.9.2 on cpu"}, "Did you mean 'tests.test_a.test_f'?"),
        (
            {"case": CASE, "writer": "0.8.0", "reader": "0.9.2"},
            "no golden by this writer, only by 0.8.1-cpu, 0.9.2-cpu.",
        ),
        ({"cell": CELL, "reader": "0.11.0"}, "--reader: expected 0.10.2-jax0.10.2, as in the name of the cell"),
        ({"cell": f"{CASE}/0.9.2-cpu in 0.10.9"}, "jaxlib 0.10.9 is not in the release calendar"),
        ({"cell": f"{CASE}/0.9.2-cpu", "reader": "0.10.2", "platform": "cuda"}, "none for cuda"),
        ({"run": RunOptions(goldens=Path("other"))}, "other: expected goldens, found none in "),
        ({"results": Path("other")}, "expected the summary of a finished matrix run, found none"),
    ],
)
def test_an_unknown_part_of_a_cells_name_is_one_error(asked, text, project):
    assert text in refusal(**asked)


def test_results_in_a_folder_above_are_named(project, monkeypatch):
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    goldens = RunOptions(goldens=Path("../golden"))
    assert f"Expected a run in {project}/sub/.jaxexport, found none" in refusal(case=CASE, run=goldens)
    finished(project / ".jaxexport", result(case=CASE))
    assert f"There is a run in {project}/.jaxexport: run this command in {project}." in refusal(run=goldens)


def test_a_damaged_golden_is_refused(project):
    (project / "golden" / CASE / "0.9.2-cpu" / ARTIFACT).write_bytes(b"x")
    assert "damaged: expected SHA-256" in refusal(cell=CELL)


def test_explain_shows_the_worst_cause_and_lists_the_others(project, jaxexport):
    run = [
        failing(),
        failing("0.11.0"),
        failing("0.11.1", Verdict.ERROR, case=OTHER),
        failing("0.9.2", Verdict.TIMEOUT),
    ]
    stored(*run, folder="ci")
    words = ("--results", "ci", "--as-of", "2026-11-21")

    def explained(*words: str) -> dict[str, Any]:
        return json.loads(jaxexport("explain", *words, "--json", code=0).out)

    first, *others = read_run(Path("ci")).summary.causes
    explanation = explained(*words)
    assert (explanation["cell"], len(explanation["others"])) == (str(first.example), 2)
    for command, other in zip(explanation["others"], others, strict=True):
        again = explained(*shlex.split(command)[2:])
        assert (again["cell"], again["others"]) == (str(other.example), [])
    shown = jaxexport("explain", *words, code=0).out
    also = "The run also fails by 2 other causes, listed at the end."
    assert f"It is the cause of {first.cells} broken cells. {also}" in shown
    assert shown.endswith("\nOther causes\n" + "".join(f"  {command}\n" for command in explanation["others"]))
    refused = jaxexport("bisect", *words)
    assert (refused.code, "Expected one cell, found 4: " in refused.err) == (2, True), "only one cell can be bisected"


def test_explain_of_a_case_has_a_command_for_each_golden(project, jaxexport):
    crashes = [failing(writer=writer) for writer in ("0.8.1", "0.9.2")]
    stored(*crashes, failing("0.11.0", Verdict.ERROR, stage=Stage.COMPILE), failing(case=OTHER))
    words = ("--as-of", "2026-11-21")

    def explained(*words: str) -> dict[str, Any]:
        return json.loads(jaxexport("explain", *words, "--json", code=0).out)

    of_case = explained(CASE, *words)
    (cause,), (golden,) = of_case["others"], of_case["goldens"]
    named = [of_case["cell"], *(shlex.split(command)[2] for command in (cause, golden))]
    assert sorted(cell.partition(" in ")[0] for cell in named) == [f"{CASE}/0.8.1-cpu", *[f"{CASE}/0.9.2-cpu"] * 2]
    assert explained(*shlex.split(golden)[2:])["goldens"] == []
    shown = jaxexport("explain", CASE, *words, code=0).out
    assert shown.endswith(f"\nOther goldens of this case that fail\n  {golden}\n")
    assert explained(*words)["goldens"] == [], "several cases fail"


def test_explain_lists_causes_outside_the_window_last(project, jaxexport):
    refused = failing("0.6.2", Verdict.REFUSED, judgement=Judgement.OUTSIDE, promised=False, stage=Stage.DESERIALIZE)
    hang = failing("0.6.1", Verdict.TIMEOUT, case=OTHER, judgement=Judgement.OUTSIDE, promised=False)
    stored(failing(), hang, refused, failing("0.6.1", judgement=Judgement.OUTSIDE, promised=False))
    words = ("--as-of", "2026-11-21")
    explained = json.loads(jaxexport("explain", *words, "--json", code=0).out)
    assert explained["others"] == []
    (command,) = explained["outside"]
    assert shlex.split(command)[2] == f"{hang.golden} in {hang.reader.pair} on cpu"
    shown = jaxexport("explain", *words, code=0).out
    assert shown.endswith(f"\nOutside the window, where nothing is promised\n  {command}\n")
    assert "other cause" not in shown


def window_of(explained: str) -> str:
    return next(line for line in explained.splitlines() if line.strip().startswith("window"))


def test_explain_judges_a_stored_cell_by_the_policy_of_its_run(project, jaxexport):
    stored(failing(), result(reader="0.9.2"))
    cell = json.loads((project / ".jaxexport" / "results.jsonl").read_text().splitlines()[0])
    assert cell["promised"]
    (project / "short.yaml").write_text("windows: {backward: 9, forward: 9}")
    words = "explain", CELL, "--as-of", "2026-11-21"
    assert "(180 days)" in window_of(jaxexport(*words, code=0).out)
    shown = window_of(jaxexport(*words, "--policy", "short.yaml", code=0).out)
    assert "outside the window: " in shown
    assert "(9 days)" in shown


def test_a_stored_result_is_not_used_if_the_policy_has_changed(project):
    stored(failing())
    (project / "other.yaml").write_text("allow: {ours: tested}")
    day = datetime.date(2026, 11, 21)
    assert chosen(run=RunOptions(as_of=day)).result is not None
    other = chosen(run=RunOptions(as_of=day, policy_file="other.yaml"))
    assert (other.result, other.not_counted) == (None, "another value of `allow` in the policy")


KNOWN = {
    "known_failures": [
        {"cases": [CASE], "writers": ["*"], "readers": ["0.10.2"], "verdict": "error", "stage": "compare"}
        | {"message": "signal 11", "reason": "r", "owner": "o", "issue": "i", "added": "2026-10-01"}
        | {"expires": "2026-12-01"}
    ]
}


CELLS = ("0.6.2", "0.8.1"), ("0.10.2", "0.9.2")
"""The readers and the writers of two cells with one cause, of which the first is outside the window."""


def test_explain_without_arguments_takes_the_worst_judgement(project):
    outside, known = (failing(reader, Verdict.ERROR, writer=writer) for reader, writer in CELLS)
    judged = stored(outside, known, policy=msgspec.convert(KNOWN, Policy))
    assert [one.judgement for one in judged] == [Judgement.OUTSIDE, Judgement.KNOWN]
    assert judged[0].cause == judged[1].cause
    choice = chosen()
    assert (choice.cell.key, choice.others) == (known.key, ())
    assert choice.alike == {Judgement.KNOWN: 1, Judgement.OUTSIDE: 1}

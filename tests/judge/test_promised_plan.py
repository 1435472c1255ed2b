"""Promised cells of the day of the question that never ran: the run is incomplete, and they are named."""

import datetime
import json
import types
from pathlib import Path

import pytest
from commands import assert_bad_input, finished, stored
from making import ARTIFACTS, day, files, manifest, result, write_golden

from export_core.artifact import read
from export_core.artifact.envelope.encode import encode
from export_core.goldens import GoldenStore, Options
from export_core.goldens.store import ARTIFACT
from export_core.judge import Result, judge_again
from export_core.judge.promised_plan import missing_promised
from export_core.matrix import Plan, Verdict
from export_core.policy import Policy
from export_core.policy.run_options import RESULTS, RunOptions, Selection
from export_core.releases import calendar as calendars
from export_core.report.wording import command_of_plan
from export_core.run.session import plan_matrix

pytestmark = pytest.mark.usefixtures("cwd")

EARLY, LATE, LATEST = day("2026-05-30"), day("2026-07-20"), day("2026-11-20")


def promised_readers(selection: Selection, as_of: datetime.date, policy: Policy | None = None) -> list[str]:
    """Return the promised readers in the plan of a golden by 0.9.2."""
    plan = plan_matrix(policy or Policy(), selection, RunOptions(as_of=as_of))
    return [cell.reader.name for cell in plan.cells if cell.decides]


def passed_cells(plan: Plan, policy: Policy) -> list[Result]:
    """Return a result that passes for each cell of a plan that a jaxlib reads."""
    return [
        judge_again(result(Verdict.PASS, writer="0.9.2", reader=cell.reader.name, case="t.a"), policy, plan.as_of)
        for cell in plan.cells
        if not cell.reader.runtime
    ]


def run_of_plan(folder: str, selection: Selection, as_of: datetime.date, policy: Policy | None = None) -> None:
    """Write a finished run of all cells in the plan of a day, which pass."""
    policy = policy or Policy()
    plan = plan_matrix(policy, selection, RunOptions(as_of=as_of))
    passed = passed_cells(plan, policy)
    finished(
        Path(folder), *passed, selection=plan.recorded_selection, as_of=as_of, later=dict(plan.later), policy=policy
    )


@pytest.fixture
def golden(cwd):
    """A golden by 0.9.2 in the project."""
    write_golden(GoldenStore(cwd / "golden"), manifest("t.a", "0.9.2"))


@pytest.mark.parametrize("readers", ["window", "all", "newest,window", ">=0.9,<0.12", "deployed,window"])
def test_judged_on_a_later_day_a_run_lacks_newer_releases(readers, golden, jaxexport):
    selection = Selection(readers=readers)
    run_of_plan("out", selection, EARLY)
    jaxexport("judge", "out", code=0)
    ended = jaxexport("judge", "out", "--as-of", str(LATE), code=3)
    new = [name for name in promised_readers(selection, LATE) if name not in promised_readers(selection, EARLY)]
    assert len(new) > 1
    text = " ".join(ended.out.split())
    named = ", ".join(f"{name} (1 cell)" for name in new)
    assert f"{len(new)} cells of the promised plan of {LATE} never ran: {named}." in text
    assert f"INCOMPLETE: {len(new)} cells of the promised plan of {LATE} never ran" in text
    jaxexport("report", "out", "--as-of", str(LATE), "--badge", "badge.json", code=0)
    assert json.loads(Path("badge.json").read_bytes())["message"].endswith("never ran")


def test_a_run_of_named_readers_stays_complete_on_a_later_day(golden, jaxexport):
    run_of_plan("out", Selection(readers="0.9.2,0.10.0"), EARLY)
    jaxexport("judge", "out", "--as-of", str(LATE), code=0)


def test_wider_windows_promise_cells_that_never_ran(golden, jaxexport):
    run_of_plan("out", Selection(), LATE, policy=Policy())
    Path("export_compat.yaml").write_text("windows: {forward: 400}\n")
    assert "of the promised plan of 2026-07-20 never ran: " in " ".join(jaxexport("judge", "out", code=3).out.split())


def test_a_new_deployment_target_has_to_run_each_golden(golden, jaxexport):
    run_of_plan("out", Selection(), LATE)
    Path("export_compat.yaml").write_text("deployed: [{name: old, jaxlib: 0.6.2}]\n")
    assert "never ran: 0.6.2 (1 cell)" in " ".join(jaxexport("judge", "out", code=3).out.split())


DEPLOYED = "deployed: [{name: old, jaxlib: 0.6.2}]\n"
only_some = pytest.mark.parametrize("only", ["", "promised", "backward"])


@pytest.mark.parametrize("as_of", [EARLY, LATE, LATEST])
@pytest.mark.parametrize("readers", ["window", "all", "newest,0.9.2", "deployed,0.9.2", "window,tensorflow", "0.9.2"])
@only_some
def test_a_plan_judged_on_its_own_day_lacks_no_cell(readers, only, as_of, golden, load):
    policy, selection = load(DEPLOYED), Selection(readers=readers, only=only)
    ran = passed_cells(plan_matrix(policy, selection, RunOptions(as_of=as_of)), policy)
    assert missing_promised(ran, policy, selection.as_recorded(whole=False), as_of) == {}


@pytest.mark.parametrize(
    ("readers", "as_of"),
    [
        *((readers, as_of) for readers in ("window", "all", "window,tensorflow") for as_of in (EARLY, LATE, LATEST)),
        *(("newest,0.9.2", as_of) for as_of in (EARLY, LATE)),  # later the newest release is outside the window
    ],
)
@only_some
def test_a_lost_promised_cell_is_reported_missing(readers, only, as_of, golden, load):
    policy, selection = load(DEPLOYED), Selection(readers=readers, only=only)
    ran = passed_cells(plan_matrix(policy, selection, RunOptions(as_of=as_of)), policy)
    # A release that is named is not planned anew: only what words mean is.
    lost = [one for one in ran if one.promised and ("window" in readers or one.reader.name not in readers.split(","))][
        -1
    ]
    rest = [one for one in ran if one is not lost]
    assert missing_promised(rest, policy, selection.as_recorded(whole=False), as_of) == {lost.reader.name: 1}


def test_goldens_written_after_the_day_of_a_run_are_named(golden, cwd, jaxexport):
    write_golden(GoldenStore(cwd / "golden"), manifest("t.b", "0.12.0.1"))
    planned = jaxexport("matrix", "--dry-run", "--as-of", str(EARLY), code=0).out
    assert "1 golden was written by releases after 2026-05-30, and left out: t.b/0.12.0.1-cpu." in planned
    run_of_plan("out", Selection(), EARLY)
    assert "partial: without 1 golden written later" in " ".join(jaxexport("judge", "out", code=0).out.split())
    late = " ".join(jaxexport("judge", "out", "--as-of", "2026-11-20", code=3).out.split())
    assert "INCOMPLETE: 1 golden and 3 cells of the promised plan of 2026-11-20 never ran" in late
    assert "2026-11-20 never ran: t.b/0.12.0.1-cpu, " in late


def test_judging_as_of_an_earlier_day_leaves_later_goldens_out(golden, cwd, jaxexport):
    write_golden(GoldenStore(cwd / "golden"), manifest("t.b", "0.12.0.1"))
    old = result(Verdict.PASS, writer="0.9.2", reader="0.9.2", case="t.a")
    new = result(Verdict.PASS, writer="0.12.0.1", reader="0.12.0.1", case="t.b")
    finished(
        Path("out"), old, new, selection=Selection(readers="0.9.2,0.12.0.1").as_recorded(whole=False), as_of=LATEST
    )
    for words in (("judge", "out"), ("report", "out")):
        text = " ".join(jaxexport(*words, "--as-of", "2026-08-01", code=0).out.split())
        assert "1 of 1 planned cells: 1 kept." in text
        assert "without 1 golden written later" in text
    assert_bad_input(jaxexport("judge", "out", "--as-of", "2026-01-01"), "--as-of 2026-01-01", "later --as-of")


@pytest.mark.parametrize("readers", ["window", "all", "0.9.2,0.10.2"])
def test_judging_as_of_an_earlier_day_counts_only_cells_of_that_day(readers, golden, jaxexport):
    run_of_plan("later", Selection(readers=readers), LATE)
    run_of_plan("then", Selection(readers="0.9.2" if "," in readers else readers), EARLY)
    for command in ("judge", "report"):
        # The table of readers, then the last line, which counts cells.
        later, then = (
            (text.partition("  next ")[0], text.splitlines()[-1])
            for folder in ("later", "then")
            for text in [jaxexport(command, folder, "--as-of", str(EARLY), code=0).out]
        )
        assert later == then
        assert "0.10.2" not in later[0]
    # Of a baseline with later readers, none is gone.
    assert " 0 gone, " in jaxexport("judge", "then", "--baseline", "later", code=0).out


def test_a_clock_before_a_known_release_is_an_error(golden, jaxexport, monkeypatch):
    class SlowClock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 3, 1, tzinfo=tz)

    Path("export_compat.yaml").write_text("deployed: [{name: old, jaxlib: 0.9.2}]\n")
    monkeypatch.setattr(
        calendars, "datetime", types.SimpleNamespace(datetime=SlowClock, UTC=datetime.UTC, date=datetime.date)
    )
    commands = (
        *(("matrix", "--dry-run"), ("can-i-deploy", "--to", "all"), ("policy", "check"), ("releases", "list")),
        *(("releases", "list", "--runtime", "tensorflow"), ("forecast",), ("goldens", "prune", "--dry-run")),
    )
    for words in commands:
        assert_bad_input(jaxexport(*words), "The clock of this machine says 2026-03-01, and jaxlib ", "--as-of")


@pytest.mark.parametrize(("text", "is_old"), [("", True), ("calendar_days: 999", False)])
def test_each_headline_says_that_the_calendar_is_old(text, is_old, golden, jaxexport):
    as_of = "2027-04-20"
    Path("export_compat.yaml").write_text(f"deployed: [{{name: old, jaxlib: 0.9.2}}]\n{text}\n")
    stored(result(Verdict.PASS, writer="0.9.2", reader="0.9.2", case="t.a"), folder="out")
    message = "the calendar of releases ends on 2026-"
    for words in (("judge", "out"), ("report", "out"), ("can-i-deploy", "--to", "old", "--results", "out")):
        assert (message in " ".join(jaxexport(*words, "--as-of", as_of).out.split())) == is_old, words
    jaxexport("report", "out", "--as-of", as_of, "--policy", "export_compat.yaml", "--badge", "badge.json", code=0)
    assert (", releases until 2026-" in json.loads(Path("badge.json").read_bytes())["message"]) == is_old


def test_a_whole_run_lacks_a_golden_written_after_it(golden, cwd, jaxexport):
    run_of_plan("out", Selection(), LATE)
    jaxexport("judge", "out", code=0)
    write_golden(GoldenStore(cwd / "golden"), manifest("t.new", "0.9.2"))
    ended = " ".join(jaxexport("judge", "out", code=3).out.split())
    assert "INCOMPLETE 1 golden of the promised plan of 2026-07-20 never ran: t.new/0.9.2-cpu. Run the matrix" in ended
    assert "partial: without 1 golden that it did not run" in ended
    assert "next jaxexport matrix --results out --as-of 2026-07-20 jaxexport report out --html" in ended
    run_of_plan("part", Selection(cases=("t.a",)), LATE)
    jaxexport("judge", "part", code=0)


def test_a_run_does_not_lack_a_golden_for_other_platforms(golden, cwd, jaxexport):
    on_tpu = manifest("t.tpu", "0.9.2", options=Options(platforms=("tpu",)))
    exported = read(ARTIFACTS / "0.9.2" / "mlp.jaxexport").envelope._replace(vjp=None, platforms=("tpu",))
    run_of_plan("out", Selection(), LATE)
    write_golden(GoldenStore(cwd / "golden"), on_tpu, {**files(jaxlib="0.9.2"), ARTIFACT: encode(exported)})
    assert "never ran" not in jaxexport("judge", "out", code=0).out


def test_the_command_for_a_golden_missing_today_has_no_as_of(golden, cwd, jaxexport):
    today = datetime.datetime.now(tz=datetime.UTC).date()
    run_of_plan(str(RESULTS), Selection(), today)
    write_golden(GoldenStore(cwd / "golden"), manifest("t.new", "0.9.2"))
    ended = jaxexport("judge", code=3).out
    assert "jaxexport matrix\n" in ended
    assert "--as-of" not in ended


def test_the_advised_matrix_command_repeats_the_runs_options():
    options = ["--only", "promised", "--goldens", "of us", "--as-of", "2026-01-01", "t.*"]
    made = types.SimpleNamespace(options=options)
    judged = types.SimpleNamespace(
        plan=made, folder=RESULTS, options="--policy p.yaml", summary=types.SimpleNamespace(as_of=LATE)
    )
    assert command_of_plan(judged) == (
        "jaxexport matrix --only promised 't.*' --goldens 'of us' --policy p.yaml --as-of 2026-07-20"
    )


def test_judging_refuses_a_golden_replaced_under_the_same_name(golden, cwd, jaxexport):
    run_of_plan("out", Selection(), LATE)
    (cwd / "golden" / "t.a" / "0.9.2-cpu" / "golden.yaml").unlink()
    write_golden(GoldenStore(cwd / "golden"), manifest("t.a", "0.9.2", reproducible=False))
    assert_bad_input(jaxexport("judge", "out"), "found one of other goldens with the same names: t.a/0.9.2-cpu")
    jaxexport("report", "out", code=0)

"""The cells of deployment targets: planned beside those of the window, and only for the target's cases."""

import dataclasses

import msgspec
import pytest
from making import day, golden, manifest, write_golden, writer

from export_core.goldens import GoldenStore, Options
from export_core.matrix import MatrixError, Plan, Selection, make_plan
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget
from export_core.policy.run_options import RunOptions
from export_core.readers.environment import this_interpreter
from export_core.releases import Windows, load_calendar
from export_core.run.session import Interpreter, run_matrix

CALENDAR = load_calendar()
TODAY = day("2026-11-21")
SERVING = DeploymentTarget(name="serving", jaxlib="0.9.2", cases=("a",))
GOLDENS = [golden("a", "0.12.0.1"), golden("b", "0.12.0.1")]


def planned(goldens=GOLDENS, targets=(SERVING,), **selection) -> Plan:
    return make_plan(goldens, CALENDAR, Windows(), Selection(**selection), TODAY, targets=targets)


def in_release(plan: Plan, jaxlib: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(cell.golden.id, cell.deployed) for cell in plan.cells if cell.reader.jaxlib == jaxlib]


@pytest.mark.parametrize("readers", ["window", "deployed", "newest,deployed"])
def test_a_target_adds_its_release_only_for_its_cases(readers):
    assert in_release(planned(readers=readers), "0.9.2") == [("a/0.12.0.1-cpu", ("serving",))]


def test_a_target_inside_the_window_leaves_other_cases_planned():
    plan = planned([golden("a", "0.9.2"), golden("b", "0.9.2")])
    assert in_release(plan, "0.9.2") == [("a/0.9.2-cpu", ("serving",)), ("b/0.9.2-cpu", ())]


def test_targets_add_no_reader_if_readers_are_given_as_versions():
    assert [release.jaxlib for release in planned(readers="0.12.0.1").readers] == ["0.12.0.1"]


def test_option_only_promised_plans_cells_of_targets_too():
    plan = planned(only="promised")
    assert [cell.golden.id for cell in plan.cells if not cell.promised] == ["a/0.12.0.1-cpu"]


def test_a_targets_cells_are_planned_only_if_its_platform_is_selected():
    both = Options(platforms=("cpu", "cuda"))
    goldens = [golden("a", "0.12.0.1", options=both)]
    targets = (DeploymentTarget(name="gpu", jaxlib="0.9.2", platform="cuda"),)
    assert in_release(planned(goldens, targets), "0.9.2") == []
    assert in_release(planned(goldens, targets, platforms=("cpu", "cuda")), "0.9.2") == [("a/0.12.0.1-cpu", ("gpu",))]


def test_selecting_deployed_readers_without_targets_is_an_error():
    with pytest.raises(
        MatrixError, match=r"--readers deployed: no deployment target of the policy .* is in force on 2026-11-21"
    ):
        planned(targets=(), readers="deployed")
    with pytest.raises(MatrixError, match="no deployment target of the policy"):
        planned(readers="deployed", cases=("b",))


def test_a_dry_run_names_a_target_that_is_still_to_come(jaxexport, tmp_path):
    write_golden(GoldenStore(tmp_path / "golden"), manifest())
    (tmp_path / "export_compat.yaml").write_text("deployed: [{name: next, jaxlib: 0.9.2, since: 2026-11-22}]\n")
    sentence = "warning: Deployment target next is left out: its obligation begins on 2026-11-22."
    asked = "matrix", "--dry-run", "--readers", "newest", "--as-of"
    assert [sentence in jaxexport(*asked, f"2026-11-{date}").out for date in (21, 22)] == [True, False]


def test_targets_are_added_to_the_readers_of_the_policy(jaxexport, tmp_path):
    write_golden(GoldenStore(tmp_path / "golden"), manifest())
    (tmp_path / "export_compat.yaml").write_text(
        "readers: newest\ndeployed: [{name: serving, jaxlib: 0.9.2, since: 2026-11-01}]\n"
    )
    ended = jaxexport("matrix", "--dry-run", "--as-of", "2026-11-21")
    assert (
        "tests.test_a.test_f/0.12.0.1-cpu  in 0.9.2 with jax 0.9.2 on cpu  forward 216 days  outside  for serving"
        in (ended.out)
    )
    assert "by deployment target: 1 for serving" in ended.out
    earlier = jaxexport("matrix", "--dry-run", "--as-of", "2026-10-31")
    assert "for serving" not in earlier.out


def test_a_replay_in_pytest_names_targets_of_the_running_release(goldens, here, warm_workers):
    """Pytest replays a golden by an old release, outside the window."""
    by_it = msgspec.structs.replace(goldens["waves"].manifest, writer=writer("0.6.2"))
    old = dataclasses.replace(goldens["waves"], manifest=by_it)
    targets = (DeploymentTarget(name="here", jaxlib=here.jaxlib), DeploymentTarget(name="there", jaxlib="0.6.2"))
    ended = run_matrix(
        *(Policy(deployed=targets), Selection(), RunOptions(results=None, cache=False, as_of=TODAY)),
        goldens=[old],
        interpreter=Interpreter(this_interpreter(here), warm_workers.start),
    )
    (result,) = ended.results
    assert (result.deployed, result.promised, result.judgement) == (("here",), False, "bonus")

"""Keywords of the marker that would change nothing: each fails its test, with what to do instead."""

import pytest
from projects import Project, Projects, Run

PLAIN = "export_golden(jax.jit(jnp.cos), X)"
UNUSED = {  # the marker, what is exported, and the message
    "constraints": ('constraints=("b >= 2",)', PLAIN, "constraints=('b >= 2',) change nothing without symbolic_shapes"),
    "fixed_shapes": (
        'symbolic_shapes="3, ..."',
        PLAIN,
        "symbolic_shapes='3, ...' change nothing: no dimension in them is symbolic",
    ),
    "in_specs": ('in_specs=(P("a"),)', PLAIN, "change nothing without a mesh. Give its axes, such as mesh={'data': 4}"),
    "mesh": (
        *('mesh={"a": 2}', "export_golden(jax.jit(lambda: jnp.arange(4.0)))"),
        "mesh={'a': 2} changes nothing: no argument is placed on it",
    ),
    "spread_over": (
        "spread_over=2",
        PLAIN,
        "spread_over=2 changes nothing: expected 2 devices or more, and an argument",
    ),
    "allow": (
        *('allow={"nobody": "why"}, disabled_checks={"either": "why"}', PLAIN),
        "that are neither in what is exported nor in any golden of this test: either, nobody. Remove them.",
    ),
    "no_such_argument": (
        *('symbolic_shapes={"x": "b, 4"}', "export_golden(jax.jit(lambda x, *, y: x + y), X, y=X)"),
        "symbolic_shapes: expected as keys the arguments of the call, by number or name: 0, 'y'; found 'x'.",
    ),
    "no_spec": (
        *('mesh={"a": 2}, in_specs=({"w": "a"},)', 'export_golden(jax.jit(lambda tree: tree["w"]), {"w": X})'),
        "a PartitionSpec or None for each argument, or for each part of its tree: found 'a' of type",
    ),
}
TEST = """
@pytest.mark.export_compat({marked})
def test_{name}(export_golden):
    {call}
"""
TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest
from jax.sharding import PartitionSpec as P

X = np.arange(12, dtype="float32").reshape(3, 4)
ALLOW = {}
pytestmark = pytest.mark.export_compat(allow={"of_other_tests": "shared by the module"})

def test_allow_of_the_module(export_golden):
    export_golden(jax.jit(jnp.cos), X)
""" + "".join(
    TEST.format(name=name, marked=marked, call=call)
    for name, (marked, call, _) in {**UNUSED, "allow_for_another_writer": ("allow=ALLOW", PLAIN, "")}.items()
)


@pytest.fixture(scope="module")
def update(projects: Projects) -> tuple[Project, Run]:
    project = projects(test_a=TESTS)
    with (project.folder / "pytest.ini").open("a") as ini:
        ini.write("export_devices = 2\n")
    return project, project.pytest("--update-goldens")


@pytest.mark.parametrize("name", UNUSED)
def test_a_keyword_that_changes_nothing_fails_its_test(name, update):
    project, run = update
    assert run[f"test_{name}"].outcome == "failed"
    assert UNUSED[name][2] in run[f"test_{name}"].text
    assert not (project.goldens / f"test_a.test_{name}").exists()


def test_a_modules_marker_may_allow_targets_a_test_never_calls(update):
    _, run = update
    assert run["test_allow_of_the_module"].outcome == "passed"


def test_an_allowed_call_that_only_an_older_golden_makes_counts_as_used(update):
    project, _ = update
    case = "test_a.test_allow_for_another_writer"
    manifest = project.add_older_generation(case) / "golden.yaml"
    manifest.write_text(manifest.read_text().replace("custom_calls: []", "custom_calls: [its_target]"))
    project.write(test_a=TESTS.replace("ALLOW = {}", "ALLOW = {'its_target': 'why'}"))
    report = project.pytest("--update-goldens", "-k", "another_writer")["test_allow_for_another_writer"]
    assert report.outcome == "passed", report.text

"""Keywords of the marker that would change nothing: each fails its test, with what to do instead."""

import pytest
from projects import Project, Projects, Run

TESTS = """
    import jax
    import jax.numpy as jnp
    import numpy as np
    import pytest
    from jax.sharding import PartitionSpec as P

    X = np.arange(12, dtype="float32").reshape(3, 4)
    pytestmark = pytest.mark.export_compat(allow={"of_other_tests": "shared by the module"})


    @pytest.mark.export_compat(constraints=("b >= 2",))
    def test_constraints(export_golden):
        export_golden(jax.jit(jnp.cos), X)


    @pytest.mark.export_compat(symbolic_shapes="3, ...")
    def test_fixed_shapes(export_golden):
        export_golden(jax.jit(jnp.cos), X)


    @pytest.mark.export_compat(in_specs=(P("a"),))
    def test_in_specs(export_golden):
        export_golden(jax.jit(jnp.cos), X)


    @pytest.mark.export_compat(mesh={"a": 2})
    def test_mesh(export_golden):
        export_golden(jax.jit(lambda: jnp.arange(4.0)))


    @pytest.mark.export_compat(spread_over=2)
    def test_spread_over(export_golden):
        export_golden(jax.jit(jnp.cos), X)


    @pytest.mark.export_compat(allow={"nobody": "why"}, disabled_checks={"either": "why"})
    def test_allow(export_golden):
        export_golden(jax.jit(jnp.cos), X)


    @pytest.mark.export_compat(symbolic_shapes={"x": "b, 4"})
    def test_no_such_argument(export_golden):
        export_golden(jax.jit(lambda x, *, y: x + y), X, y=X)


    @pytest.mark.export_compat(mesh={"a": 2}, in_specs=({"w": "a"},))
    def test_no_spec(export_golden):
        export_golden(jax.jit(lambda tree: tree["w"]), {"w": X})


    def test_allow_of_the_module(export_golden):
        export_golden(jax.jit(jnp.cos), X)


    ALLOW = {}


    @pytest.mark.export_compat(allow=ALLOW)
    def test_allow_for_another_writer(export_golden):
        export_golden(jax.jit(jnp.cos), X)
"""

MESSAGES = {
    "test_constraints": "constraints=('b >= 2',) change nothing without symbolic_shapes",
    "test_fixed_shapes": "symbolic_shapes='3, ...' change nothing: no dimension in them is symbolic",
    "test_in_specs": "change nothing without a mesh. Give its axes, such as mesh={'data': 4}",
    "test_mesh": "mesh={'a': 2} changes nothing: there is no argument to be on it",
    "test_spread_over": "spread_over=2 changes nothing: expected 2 devices or more, and an argument",
    "test_allow": "that are neither in what is exported nor in any golden of this test: either, nobody. Remove them.",
    "test_no_such_argument": "symbolic_shapes: expected arguments as the call passes them, such as 0, 'y'; found 'x'.",
    "test_no_spec": "a PartitionSpec or None for each argument, or for each part of its tree: found 'a' of type",
}


@pytest.fixture(scope="module")
def update(projects: Projects) -> tuple[Project, Run]:
    project = projects(test_a=TESTS)
    with (project.folder / "pytest.ini").open("a") as ini:
        ini.write("export_devices = 2\n")
    return project, project.pytest("--update-goldens")


@pytest.mark.parametrize("test", MESSAGES)
def test_a_keyword_that_changes_nothing_fails_its_test(test, update):
    project, run = update
    assert run[test].outcome == "failed"
    assert MESSAGES[test] in run[test].text
    assert not (project.goldens / f"test_a.{test}").exists()


def test_what_a_module_allows_need_not_be_called_by_each_test(update):
    _, run = update
    assert run["test_allow_of_the_module"].outcome == "passed"


def test_what_only_another_writer_calls_is_used(update):
    project, _ = update
    case = "test_a.test_allow_for_another_writer"
    manifest = project.add_older_generation(case) / "golden.yaml"
    manifest.write_text(manifest.read_text().replace("custom_calls: []", "custom_calls: [its_target]"))
    project.write(test_a=TESTS.replace("ALLOW = {}", "ALLOW = {'its_target': 'why'}"))
    assert (
        project.pytest("--update-goldens", "-k", "another_writer")["test_allow_for_another_writer"].outcome == "passed"
    )

"""Calls over several devices: arguments are placed as the test gives them, and result shardings are compared."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from projects import Project, Projects, Run

from export_core.goldens import GoldenStore
from export_core.matrix import Cell
from export_core.matrix.outcome import _sharding_problem

TESTS = """
    import jax, jax.numpy as jnp, numpy as np, pytest
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    X = np.arange(32, dtype="float32").reshape(8, 4)
    SIN = jax.jit(jnp.sin)

    def on(axes, spec):
        shape, names = tuple(axes.values()), tuple(axes)
        return NamedSharding(Mesh(np.array(jax.devices()[:4]).reshape(shape), names), spec)

    @pytest.mark.export_compat(mesh={"a": 4}, in_specs=(P("a"),))
    def test_another_mesh(export_golden):
        export_golden(SIN, X).also(jax.device_put(X + 1, on({"b": 2, "c": 2}, P("b"))))

    @pytest.mark.export_compat(mesh={"a": 2, "b": 2}, in_specs=(P("a"),))
    def test_the_same_mesh(export_golden):
        exported = export_golden(SIN, X)
        exported.also(jax.device_put(X + 1, on({"a": 2, "b": 2}, P("b"))))
        exported.also(jax.device_put(X + 2, on({"a": 2, "b": 2}, P("a"))))
        exported.also(X + 3)

    @pytest.mark.export_compat
    def test_in_shardings(export_golden):
        asked = on({"a": 4}, P("a"))
        function = jax.jit(jnp.sin, in_shardings=asked, out_shardings=asked)
        export_golden(function, X).also(jax.device_put(X + 1, on({"a": 4}, P(None, "a"))))

    @pytest.mark.export_compat(mesh={"a": 4}, in_specs=(P("a"),), vjp_order=2)
    def test_derivatives(export_golden):
        export_golden(SIN, X)
"""
GIVEN = {  # the specs of each further call, by test
    "test_another_mesh": [["P('b')"]],
    "test_the_same_mesh": [["P('b')"], [], []],
    "test_in_shardings": [["P(None, 'a')"]],
}
CALLS = {
    "test_another_mesh": ["call1", "other-mesh"],
    "test_the_same_mesh": ["call1", "call2", "call3", "other-mesh"],
    "test_in_shardings": ["call1", "other-mesh"],
    "test_derivatives": ["vjp1", "vjp2", "other-mesh"],
}


@pytest.fixture(scope="module")
def written(projects: Projects) -> tuple[Project, Run, Run]:
    project = projects(test_a=TESTS)
    with (project.folder / "pytest.ini").open("a") as ini:
        ini.write("export_devices = 4\n")
    return project, project.pytest("--update-goldens"), project.pytest()


@pytest.mark.parametrize("test", CALLS)
def test_functions_on_a_mesh_are_written_and_replayed(test, written):
    _, update, again = written
    assert update[test].outcome == again[test].outcome == "passed", update[test].text + again[test].text


@pytest.mark.parametrize("test", GIVEN)
def test_the_sharding_of_arguments_of_further_calls_is_recorded(test, written):
    checks = written[0].manifest(f"test_a.{test}")["checks"]
    calls = [check for check in checks if check["name"].startswith("call")]
    assert [check.get("in_specs", []) for check in calls] == GIVEN[test]


OTHERWISE = "0:[0:8,0:1] 1:[0:8,0:1] 2:[0:8,0:1] 3:[0:8,0:1]"


@pytest.mark.parametrize("place", [0, -1], ids=["first call", "last call"])
def test_a_result_with_another_sharding_fails(place, written, tmp_path):
    """A failure names only the first call whose sharding differs, so each run changes one call of each golden."""
    project = written[0].copy(tmp_path / "project")
    for test, calls in CALLS.items():
        (path,) = (project.goldens / f"test_a.{test}").glob("*/golden.yaml")
        manifest = yaml.safe_load(path.read_bytes())
        (check,) = (check for check in manifest["checks"] if check["name"] == calls[place])
        check["out_shardings"][0] = OTHERWISE
        Path(path).write_text(yaml.safe_dump(manifest, sort_keys=False))
    run = project.pytest()
    for test, calls in CALLS.items():
        assert run[test].outcome == "failed"
        expected = rf"{calls[place]}: output 0( \(.*\))? is sharded differently: expected 0:\[0:8,0:1\]"
        assert re.search(expected, run[test].text), run[test].text


@pytest.mark.parametrize(("test", "call"), [(test, call) for test, calls in CALLS.items() for call in calls])
def test_the_sharding_of_each_call_is_compared(test, call, written):
    (golden,) = GoldenStore(written[0].goldens).generations(f"test_a.{test}")
    manifest = golden.manifest
    recorded = {check.name: check.out_shardings for check in manifest.checks}
    assert recorded[call]
    reply = SimpleNamespace(shardings=manifest.out_shardings, shardings_of=recorded)
    cell = Cell(golden, manifest.writer.release, "cpu")
    assert _sharding_problem(cell, reply) == ""
    recorded[call] = (OTHERWISE,)
    assert re.match(
        rf"{call}: output 0( \(derivative by .*\))? is sharded differently: ", _sharding_problem(cell, reply)
    )

"""Functions over several devices whose mesh is in no argument of the marker: written, and replayed by their writer."""

import re

import pytest
from projects import Project, Projects, Run

TESTS = """
    import jax, jax.numpy as jnp, numpy as np, pytest
    from jax.sharding import AxisType, Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    X = np.arange(64, dtype="float32").reshape(8, 8)

    @pytest.fixture
    def grid():
        return Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))

    @pytest.fixture
    def line():
        return Mesh(np.array(jax.devices()[:4]), ("data",))

    @pytest.mark.export_compat
    def test_in_shardings(export_golden, grid):
        export_golden(jax.jit(jnp.cos, in_shardings=NamedSharding(grid, P("y", "x"))), X)

    @pytest.mark.export_compat
    def test_two_meshes(export_golden, grid, line):
        shardings = (NamedSharding(grid, P("x", "y")), NamedSharding(line, P("data")))
        export_golden(jax.jit(jnp.matmul, in_shardings=shardings), X, X)

    @pytest.mark.export_compat
    def test_sharded_inside(export_golden, grid):
        inside = NamedSharding(grid, P("y", "x"))
        export_golden(jax.jit(lambda x: jax.lax.with_sharding_constraint(jnp.sin(x), inside)), X)

    @pytest.mark.export_compat
    def test_explicit_axes(export_golden, grid):
        explicit = Mesh(grid.devices, grid.axis_names, axis_types=(AxisType.Explicit,) * 2)
        export_golden(jax.jit(jnp.cos), jax.device_put(X, NamedSharding(explicit, P("x", "y"))))

    @pytest.mark.export_compat(vjp_order=1)
    def test_further_calls_are_made_under_the_same_mesh(export_golden):
        with jax.set_mesh(jax.make_mesh((2, 2), ("x", "y"))):
            x = jax.device_put(X, P("x", "y"))
            exported = export_golden(jax.jit(lambda x: jax.sharding.reshard(jnp.sin(x), P("y"))), x)
        exported.also(jax.device_put(X + 1, x.sharding))

    @pytest.mark.export_compat
    def test_two_meshes_the_smaller_first(export_golden, grid, line):
        x, y = jax.device_put(X, NamedSharding(line, P("data"))), jax.device_put(X, NamedSharding(grid, P("x", "y")))
        export_golden(jax.jit(lambda x, y: (x + 1, y * 2)), x, y)

    @pytest.mark.export_compat
    def test_no_arguments(export_golden, grid):
        export_golden(jax.jit(lambda: jnp.arange(4.0), out_shardings=NamedSharding(grid, P("x"))))

    @pytest.mark.export_compat(symbolic_shapes="2*b, 8")
    def test_symbolic_on_a_mesh(export_golden, grid):
        export_golden(jax.jit(jnp.cos), jax.device_put(X, NamedSharding(grid, P("x", "y")))).also(X[:2])

    @pytest.mark.export_compat(symbolic_shapes="4*b, 8")
    def test_what_jax_exports_and_cannot_call(export_golden):
        with jax.set_mesh(jax.make_mesh((4,), ("a",))):
            export_golden(jax.jit(jnp.sin), jax.device_put(X, P("a")))
"""

*RECORDED, NOT_CALLED = re.findall(r"def (test_\w+)", TESTS)


@pytest.fixture(scope="module")
def runs(projects: Projects) -> tuple[Project, Run, Run]:
    project = projects(test_a=TESTS)
    with (project.folder / "pytest.ini").open("a") as ini:
        ini.write("export_devices = 4\n")
    return project, project.pytest("--update-goldens"), project.pytest()


@pytest.mark.parametrize("test", RECORDED)
def test_the_mesh_of_the_function_is_recorded(test, runs):
    project, update, again = runs
    assert update[test].outcome == again[test].outcome == "passed", update[test].text + again[test].text
    assert project.manifest(f"test_a.{test}")["options"]["mesh"] == {"x": 2, "y": 2}


def test_an_artifact_jax_cannot_call_is_not_stored(runs):
    project, update, _ = runs
    assert "exports this function and cannot call what it exported" in update[NOT_CALLED].text
    assert not (project.goldens / f"test_a.{NOT_CALLED}").exists()

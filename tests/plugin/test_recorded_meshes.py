"""Functions over several devices whose mesh is in no argument of the marker: written, and replayed by their writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project, Projects, Run

TESTS = """
    import jax
    import jax.numpy as jnp
    import numpy as np
    import pytest
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
"""


@pytest.fixture(scope="module")
def runs(projects: Projects) -> tuple[Project, Run, Run]:
    project = projects(test_a=TESTS)
    (project.folder / "pytest.ini").write_text("[pytest]\nexport_devices = 4\n")
    return project, project.pytest("--update-goldens"), project.pytest()


@pytest.mark.parametrize("test", ["test_in_shardings", "test_two_meshes", "test_sharded_inside", "test_explicit_axes"])
def test_a_function_over_a_mesh_of_its_own_is_recorded(test, runs):
    project, update, again = runs
    assert update[test].outcome == again[test].outcome == "passed", update[test].text + again[test].text
    assert project.manifest(f"test_a.{test}")["options"]["mesh"] == {"x": 2, "y": 2}

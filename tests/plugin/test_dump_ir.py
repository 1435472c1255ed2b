"""pytest --dump-ir: replayed modules as text."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from projects import Projects

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

@pytest.mark.export_compat(vjp_order=1)
def test_wave(export_golden):
    export_golden(jax.jit(jnp.sin), np.arange(8.0))
"""


def test_modules_that_are_replayed_are_put_where_dump_ir_says(projects: Projects) -> None:
    project = projects(test_a=TESTS)
    assert project.pytest("--update-goldens").code == 0
    assert project.pytest("--dump-ir", "ir").code == 0
    (golden,) = (project.folder / "ir" / "test_a.test_wave").iterdir()
    stored = project.goldens / "test_a.test_wave" / golden.name
    assert (golden / "exported.mlir").read_bytes() == (stored / "module.mlir").read_bytes()
    reader = golden / f"{version('jaxlib')}-cpu"
    assert {path.name for path in reader.iterdir()} > {"exported.mlir", "compiled.hlo"}
    derivative = (reader / "vjp1" / "exported.mlir").read_text()
    assert derivative != (reader / "exported.mlir").read_text()
    assert "stablehlo.cosine" in derivative
    refused = project.pytest("--dump-ir", "pytest.ini")
    assert refused.code == 4
    assert "--dump-ir: cannot make the folder" in refused.text

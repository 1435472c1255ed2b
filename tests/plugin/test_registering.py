"""A module that readers could not import is refused when its golden is written, with the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from projects import Projects

NODES = """
    import collections, jax.export
    import msgspec  # stands for any package that no reader has

    Point = collections.namedtuple("Point", "x y")
    if hasattr(jax.export, "register_namedtuple_serialization"):
        jax.export.register_namedtuple_serialization(Point, serialized_name="t.Point")
"""
TESTS = """
    import jax, jax.numpy as jnp, nodes, pytest

    @pytest.mark.export_compat(register=["nodes"])
    def test_point(export_golden):
        export_golden(jax.jit(lambda x: nodes.Point(x, x)), jnp.arange(3.0))
"""


def test_an_import_that_no_reader_has_is_found_at_writing(projects: Projects) -> None:
    project = projects(test_a=TESTS, nodes=NODES)
    run = project.pytest("--update-goldens")
    assert run.code == 1
    assert "register='nodes' imports msgspec, and readers have jax, numpy" in run["test_point"].text
    assert "reader_packages: [msgspec]" in run["test_point"].text
    assert not project.goldens.exists()
    (project.folder / "export_compat.yaml").write_text("reader_packages: [msgspec]\n")
    assert project.pytest("--update-goldens").code == 0
    (project.folder / "export_compat.yaml").unlink()
    assert project.pytest().code == 0, "what is stored already is judged by its replay"

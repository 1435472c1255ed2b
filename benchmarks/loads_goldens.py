"""The test that a project may have instead of this tool: it loads and calls each artifact, and compares the outputs."""

from pathlib import Path

import jax
import jax.export
import numpy as np
import pytest

ARTIFACTS = sorted(Path(__file__).parent.glob("golden/*/*/artifact.jaxexport"))


def arrays(path: Path) -> list[np.ndarray]:
    with np.load(path) as file:
        return [file[name] for name in file.files]


@pytest.mark.parametrize("path", ARTIFACTS, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_artifact(path: Path) -> None:
    exported = jax.export.deserialize(bytearray(path.read_bytes()))
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, arrays(path.with_name("inputs.npz")))
    outputs = jax.tree_util.tree_leaves(exported.call(*args, **kwargs))
    for output, expected in zip(outputs, arrays(path.with_name("outputs.npz")), strict=True):
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)

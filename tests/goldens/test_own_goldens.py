"""The goldens of this project: every one that runs on a CPU has the noise of all its outputs."""

from pathlib import Path

import numpy as np

from export_core.base.tolerances import FLOATS
from export_core.goldens import Golden, GoldenStore
from export_core.goldens.arrays import from_npz

OWN = GoldenStore(Path(__file__).parents[2] / "golden")


def runs(golden: Golden) -> bool:
    manifest = golden.manifest
    return "cpu" in manifest.replayed_on and "cpu" not in manifest.options.refused_on


def test_derivatives_further_calls_and_sharded_outputs_have_noise_too():
    sharded = derivatives = 0
    for golden in filter(runs, OWN.goldens()):
        noise = golden.noise()
        for file in {check.outputs for check in golden.manifest.checks if check.outputs} | {"outputs.npz"}:
            leaves = from_npz(golden.folder / file)
            assert [own is not None for own in noise[file]] == [leaf.dtype in FLOATS for leaf in leaves], golden.id
            assert all(own is None or np.isfinite(own).all() for own in noise[file]), golden.id
        sharded += bool(golden.manifest.options.mesh)
        derivatives += any(check.vjp for check in golden.manifest.checks)
    assert sharded > 10
    assert derivatives > 10

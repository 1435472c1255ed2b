"""JAX's own harnesses as marked tests: one for each small function that the jax that runs this lists.

`nox -s harnesses` runs it; pytest collects it only by name. HARNESSES_SAMPLE=N takes N of them, of all primitives.
"""

from __future__ import annotations

import os
import zlib

import jax
import numpy as np
import pytest
from corpus.harnesses.sampling import compared_by, safe_name, sample
from jax._src.internal_test_util.test_harnesses import Harness, all_harnesses

CHOSEN = sample(all_harnesses, int(os.environ.get("HARNESSES_SAMPLE", "0")) or None)
PARAMS = [
    pytest.param(
        harness, id=safe_name(harness), marks=pytest.mark.export_compat(compare=compared_by(harness) or "allclose")
    )
    for harness in CHOSEN
]


@pytest.mark.parametrize("harness", PARAMS)
def test_harness(export_golden, harness: Harness) -> None:
    if not harness.filter("cpu"):
        reasons = {limit.description for limit in harness.jax_unimplemented if limit.filter("cpu", harness.dtype)}
        pytest.skip(f"JAX excludes it on CPU: {', '.join(sorted(reasons))}")
    arguments = harness.dyn_args_maker(np.random.RandomState(zlib.crc32(harness.fullname.encode())))
    export_golden(jax.jit(harness.dyn_fun), *arguments)

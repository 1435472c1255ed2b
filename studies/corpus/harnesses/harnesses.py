"""JAX's own harnesses as marked tests: one for each small function that the jax which runs this lists.

`nox -s harnesses` runs it; pytest collects it only by name. `HARNESSES_SAMPLE=N` takes N of them, of all primitives.
Their arguments are what their own generators draw from a seed that is made of the name.
"""

from __future__ import annotations

import os
import zlib

import jax
import numpy as np
import pytest
from jax._src.internal_test_util.test_harnesses import Harness, all_harnesses

from studies.corpus.harness_sampling import compared_by, id_of, sample

PARAMS = [
    pytest.param(
        harness,
        id=id_of(harness),
        marks=pytest.mark.export_compat(
            compare=compared_by(harness),
            nothing_to_compare="JAX's own arguments: they make some outputs empty, or nothing but NaN",
        ),
    )
    for harness in sample(all_harnesses, int(os.environ.get("HARNESSES_SAMPLE") or 0))
]


@pytest.mark.parametrize("harness", PARAMS)
def test_harness(export_golden, harness: Harness) -> None:
    if limits := [limit for limit in harness.jax_unimplemented if limit.filter("cpu", harness.dtype)]:
        pytest.skip(f"excluded by JAX on CPU: {limits[0].description}")
    arguments = harness.dyn_args_maker(np.random.RandomState(zlib.crc32(harness.fullname.encode())))

    def function(*arguments):
        outputs = harness.dyn_fun(*arguments)
        if compared_by(harness) == "svd":  # the primitive gives (s, U, V^H), and the comparator takes (U, s, V^H)
            outputs = outputs[1], outputs[0], outputs[2]
        return outputs

    export_golden(jax.jit(function), *arguments)

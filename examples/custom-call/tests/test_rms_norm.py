"""A golden of what is exported, and which targets are called: `allow` by exports, RUN by `jax.jit`."""

import jax
import numpy as np
import pytest
import registers  # noqa: F401
from rms_norm import rms_norm

RUN = "rms_norm_v1"


@pytest.mark.export_compat(register=["registers"], allow={"rms_norm_v1": "our own"})
def test_rms_norm(export_golden):
    rows = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
    function = jax.jit(rms_norm)
    assert RUN in function.lower(rows).as_text()
    export_golden(function, rows)

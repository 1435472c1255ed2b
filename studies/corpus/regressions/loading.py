"""Artifacts of other releases that a release could not load or run."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.export_compat
def test_number_of_devices(right_golden):
    """Artifacts of serialization version 5 have no number of devices for releases that do not know the new field.

    https://github.com/jax-ml/jax/pull/33685 (merged): bad between 2025-11-25 and 2025-12-03.
    """
    right_golden(jnp.sin, np.arange(3, dtype=np.float32), right=np.sin(np.arange(3, dtype=np.float32)))

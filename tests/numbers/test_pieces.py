"""Large arrays are compared in pieces, with the same result as whole ones."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from export_core.goldens import Comparison
from export_core.goldens.arrays import leaf_of
from export_core.numbers import compare, noise
from export_core.numbers.compare import compare_leaves
from export_core.numbers.rules import NO_NOISE, CallNoise

RANDOM = np.random.default_rng(0)
VALUES = RANDOM.normal(size=(40, 25)).astype(np.float32)
VALUES[3, :4] = np.nan, np.inf, -np.inf, 0
CLOSE = np.where(np.isfinite(VALUES), np.nextafter(VALUES, np.float32(2)), VALUES)
NOISE = CallNoise((np.abs(RANDOM.normal(size=VALUES.shape)) * 1e-6,))
NARROW = replace(NOISE, narrowest_float="bfloat16")
OFF = VALUES.copy()
OFF[17, 3] += 1

CASES = {
    "equal": (VALUES, VALUES, {"noise": NOISE}),
    "noise": (VALUES, CLOSE, {"noise": NOISE}),
    "no noise at all": (VALUES, CLOSE, {"noise": CallNoise((np.zeros(VALUES.shape),))}),
    "narrow floats inside": (VALUES, CLOSE, {"noise": NARROW}),
    "another platform": (VALUES, CLOSE, {"noise": NOISE, "platforms": ("cpu", "tpu")}),
    "default tolerance": (VALUES, CLOSE, {}),
    "ulp": (VALUES, CLOSE, {"comparison": Comparison(ulp=2)}),
    "exact": (VALUES, VALUES, {"comparison": Comparison(compare="exact")}),
    "bfloat16": (VALUES.astype(jnp.bfloat16), CLOSE.astype(jnp.bfloat16), {}),
    "integers": (np.arange(1000), np.arange(1000), {}),
    "one is off": (VALUES, OFF, {"noise": NOISE}),
}


def difference(expected, actual, *, comparison=Comparison(), platforms=("cpu", "cpu"), noise=NO_NOISE):  # noqa: B008
    return compare_leaves([leaf_of(expected)], [leaf_of(actual)], comparison, noise=noise, platforms=platforms)


@pytest.mark.parametrize("name", CASES)
def test_pieces_have_the_difference_of_the_whole(name, monkeypatch):
    expected, actual, how = CASES[name]
    whole = difference(expected, actual, **how)
    monkeypatch.setattr(compare, "PIECE", 7)
    monkeypatch.setattr(noise, "PIECE", 7)
    pieces = difference(expected, actual, **how)
    assert replace(pieces, max_noise_error=None) == replace(whole, max_noise_error=None)
    assert pieces.max_noise_error == (whole.max_noise_error and pytest.approx(whole.max_noise_error))
    assert pieces.ok == (name != "one is off")


def test_large_arrays_take_little_more_than_their_memory():
    values = RANDOM.random(1 << 22, np.float32)
    how = {"noise": CallNoise((np.full(values.shape, 1e-9),))}
    tracemalloc.start()
    assert difference(values, values.copy(), **how).ok
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * values.nbytes  # of which the copy is one, and the order of the noise two

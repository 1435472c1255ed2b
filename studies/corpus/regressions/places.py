"""Slices, updates, gathers and scatters: which element is read or written."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

TENS = np.arange(10, dtype=np.int32) * 10
BYTE = np.arange(300, dtype=np.int32)


@pytest.mark.export_compat
def test_scatter_without_an_index(right_golden):
    """A scatter with an empty index vector makes only the last of several updates of an element.

    https://github.com/openxla/xla/issues/48716 (closed): bad in September 2026.
    """
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(), scatter_dims_to_operand_dims=()
    )
    right_golden(
        lambda operand, places, updates: lax.scatter_add(operand, places, updates, numbers),
        np.array([10], np.int32),
        np.zeros((3, 0), np.int32),
        np.array([[1], [2], [4]], np.int32),
        right=np.array([17], np.int32),
    )


@pytest.mark.export_compat
def test_crop_before_a_window(right_golden):
    """A slice before a window reduction is taken for padding of the window.

    https://github.com/openxla/xla/issues/48715 (open): bad in September 2026.
    """

    def windows(x):
        cropped = lax.pad(x, np.int32(0), [(0, 0, 1), (-1, 0, 0)])
        return lax.reduce_window(cropped, np.int32(0), lax.add, (1, 2), (1, 1), ((0, 0), (1, 0)))

    right_golden(windows, np.array([[669, -763]], np.int32), right=np.array([[-763]], np.int32))


@pytest.mark.export_compat
def test_unsigned_constant_start(right_golden):
    """An unsigned constant start of a slice with its highest bit set is taken for 0.

    https://github.com/openxla/xla/issues/48717 (open): bad in September 2026.
    """
    right_golden(lambda x: lax.dynamic_slice(x, (jnp.uint8(200),), (1,)), BYTE, right=np.array([200], np.int32))


@pytest.mark.export_compat
def test_unsigned_start(right_golden):
    """An unsigned start of a slice above 127 is taken for the last possible start.

    https://github.com/openxla/xla/issues/4491 (closed): bad in 2023.
    """
    right_golden(
        lambda x, start: lax.dynamic_slice(x, (start,), (1,)), BYTE, np.uint8(128), right=np.array([128], np.int32)
    )


@pytest.mark.export_compat
def test_slice_of_a_slice(right_golden):
    """A slice of a slice, with a start behind the end, reads a wrong element.

    https://github.com/jax-ml/jax/issues/40849 (open): bad in September 2026.
    """
    right_golden(
        lambda x, i, j: lax.dynamic_slice(lax.dynamic_slice(x, (i,), (4,)), (j,), (1,)),
        TENS,
        np.int32(9),
        np.int32(0),
        right=np.array([60], np.int32),
    )


@pytest.mark.export_compat
def test_slice_of_a_roll(right_golden):
    """A slice of a rolled array, with a start behind the end, reads a wrong window.

    https://github.com/openxla/xla/issues/49121 (open): bad in September 2026.
    """
    right_golden(
        lambda x, shift, start: lax.dynamic_slice(jnp.roll(x, shift), (start,), (4,)),
        TENS[:9],
        np.int32(4),
        np.int32(12),
        right=np.roll(TENS[:9], 4)[5:],
    )


@pytest.mark.export_compat
def test_shift_by_one_and_reshape(right_golden):
    """An update in place reads what it has just written.

    https://github.com/openxla/xla/issues/49176 (open): bad in September 2026.
    """

    def shifted(x):
        base = x + 1
        return base.at[1:].set(base[:-1]).reshape(1, 8, 16)

    x = np.arange(128, dtype=np.int32).reshape(8, 16)
    right_golden(shifted, x, right=np.concatenate([x[:1] + 1, x[:-1] + 1])[None])


@pytest.mark.export_compat
def test_row_rolled_in_place(right_golden):
    """A row that is replaced by its rolled copy is read while it is written.

    https://github.com/jax-ml/jax/issues/10129 (closed): bad in April 2022.
    """
    x = np.arange(200, dtype=np.int32).reshape(2, 100)
    right_golden(lambda x: x.at[0].set(jnp.roll(x[0], 5)), x, right=np.stack([np.roll(x[0], 5), x[1]]))


@pytest.mark.export_compat
def test_sum_with_the_element_before(right_golden):
    """Adding the preceding element in place adds up all elements.

    https://github.com/jax-ml/jax/issues/7461 (open): bad in 2021.
    """
    x = np.zeros(8, np.int32)
    right_golden(lambda x: x.at[1:].set(1 + x[:-1]), x, right=np.array([0] + [1] * 7, np.int32))


@pytest.mark.export_compat
def test_random_numbers_below_a_gathered_bound(right_golden):
    """Random integers exceed an upper bound that is gathered from an array.

    https://github.com/jax-ml/jax/issues/11979 (closed): bad in 0.3.15.
    """

    def numbers(x, key):
        bound = x[jnp.full((20,), 1)] - 1
        return jax.random.randint(key, (20,), jnp.full((20,), 0), bound), bound

    right_golden(
        numbers,
        np.array([0, 2], np.int32),
        np.array([0, 1], np.uint32),
        right=(np.zeros(20, np.int32), np.ones(20, np.int32)),
    )


@pytest.mark.export_compat
def test_gather_from_a_constant(right_golden):
    """A gather of all elements of a constant gives every second element, each twice.

    https://github.com/jax-ml/jax/issues/33479 (open): bad in 0.8.1.
    """
    tokens = np.tile(np.arange(6, dtype=np.int32), (2, 1))

    def gathered(one):
        every = jnp.arange(6)
        return jax.vmap(lambda row: row[every])(jnp.asarray(tokens)) + one

    right_golden(gathered, np.int32(1), right=tokens + 1)


@pytest.mark.export_compat(compare="exact")
def test_binary_search(right_golden):
    """A binary search in 10 steps of gathers and selects finds wrong places.

    https://github.com/jax-ml/jax/issues/39887 (open): bad in 0.10.2, with 10,001 numbers.
    """

    def search(sorted_numbers, wanted):
        low = jnp.full(wanted.shape, 0)
        high = jnp.broadcast_to(jnp.count_nonzero(~jnp.isnan(sorted_numbers), keepdims=True), wanted.shape)
        for _ in range(int(math.log2(len(sorted_numbers))) + 1):
            middle = (low + high) // 2
            below = wanted <= jnp.take_along_axis(sorted_numbers, middle, axis=-1)
            low, high = jnp.where(below, low, middle), jnp.where(below, middle, high)
        return jnp.where(wanted <= jnp.min(sorted_numbers, keepdims=True), 0, high)

    x = np.sort(np.random.RandomState(39887).uniform(size=1_001).astype(np.float32))
    wanted = np.nextafter(x, np.float32(2))
    right_golden(search, x, wanted, right=np.searchsorted(x, wanted).astype(np.int32))

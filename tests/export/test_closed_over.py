"""The search for integers that a function closes over and that jax cuts to 32 bits."""

import functools

import jax
import numpy as np
import pytest

from export_core.export.closed_over import lost_integers

BIG, SMALL, WIDE = np.array([1, 2**40]), np.array([1, 2]), np.uint64(2**63)


def in_a_helper(x):
    return x + BIG


def in_a_closure():
    table = {"kept": SMALL, "lost": [BIG]}
    return lambda x: x + table["lost"][0]


def without_a_value(x):
    def inner():
        return later + WIDE

    if x is None:
        later = x
    return inner


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda x: x + BIG + SMALL, ["BIG"]),
        (lambda x: [x + WIDE for _ in x], ["WIDE"]),
        (lambda x: in_a_helper(x), ["BIG"]),
        (in_a_closure(), ["table"]),
        (without_a_value(1), ["WIDE"]),
        (functools.partial(lambda y, x: x + y + BIG, 1), ["BIG"]),
        (lambda x: x + SMALL + 1.5, []),
        (jax.numpy.sin, []),
    ],
    ids=["global", "inner", "helper", "closure", "empty cell", "partial", "small", "of jax"],
)
def test_integers_that_lose_bits_are_named_by_their_variable(function, names):
    assert [text.partition(",")[0] for text in lost_integers(jax.jit(function))] == names


def test_no_integer_loses_bits_with_x64_enabled():
    with jax.enable_x64(True):
        assert lost_integers(in_a_helper) == ()


class Unwilling:
    """An object that can be called, and raises `RuntimeError` for each attribute that it does not have."""

    def __call__(self, x):
        return x

    def __getattr__(self, name):
        raise RuntimeError(name)


def test_an_object_whose_attributes_raise_errors_is_skipped():
    unwilling, large = Unwilling(), np.int64(2**40)
    assert len(lost_integers(lambda x: unwilling(x) + large)) == 1

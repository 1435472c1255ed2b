"""Marked programs whose goldens show nothing, only seem to, or are meant to, as in a user's project.

The tests pass whatever pytest remarks: a person compares the remarks with `expected` of each program. This project's
own tests do not run them.
"""

from __future__ import annotations

import jax
import pytest

from studies.numbers.programs.shows_nothing import FINE, MEANT, NOTHING


def _case(looked):
    """Return a marked program; the marker names the outputs that are meant to be constant."""
    keywords = {"constant": looked.meant} if looked.meant else {}
    return pytest.param(looked, id=looked.name, marks=pytest.mark.export_compat(**keywords))


@pytest.mark.parametrize("looked", [_case(looked) for looked in NOTHING])
def test_outputs_that_show_nothing(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)


@pytest.mark.parametrize("looked", [_case(looked) for looked in FINE])
def test_outputs_that_only_seem_to_show_nothing(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)


@pytest.mark.parametrize("looked", [_case(looked) for looked in MEANT])
def test_outputs_that_are_meant_to_be_constant(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)

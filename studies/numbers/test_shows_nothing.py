"""Programs whose goldens show nothing, only look so, or mean it, as a project of a user: each under the marker.

Nothing fails here, whatever is remarked: who measures the remarks reads them and `expected` of each program. The
project's own tests leave it out.
"""

from __future__ import annotations

import jax
import pytest

from studies.numbers.programs.shows_nothing import FINE, MEANT, NOTHING


def _case(looked):
    """A program under the marker, which names what is meant to be constant."""
    keywords = {"constant": looked.meant} if looked.meant else {}
    return pytest.param(looked, id=looked.name, marks=pytest.mark.export_compat(**keywords))


@pytest.mark.parametrize("looked", [_case(looked) for looked in NOTHING])
def test_nothing(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)


@pytest.mark.parametrize("looked", [_case(looked) for looked in FINE])
def test_fine(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)


@pytest.mark.parametrize("looked", [_case(looked) for looked in MEANT])
def test_meant(export_golden, looked):
    export_golden(jax.jit(looked.function), *looked.arguments)

"""The records of `planted` under the marker, as tests of a user, which `python -m studies.numbers` runs."""

from __future__ import annotations

import jax
import pytest

from studies.corpus.programs.planted import PROGRAMS
from studies.numbers import warm


@pytest.fixture
def precision():
    """A function that sets the precision of a program, which is restored after the test."""
    before = jax.config.jax_enable_x64
    yield lambda program: jax.config.update("jax_enable_x64", program.x64)
    jax.config.update("jax_enable_x64", before)


def _first(program):
    """Return the marker's keyword for the module that a reader must import first."""
    return {"register": (warm.__name__,)} if program.lapack else {}


CASES = [
    pytest.param(program, id=name, marks=pytest.mark.export_compat(compare=program.compare, **_first(program)))
    for name, program in PROGRAMS.items()
]


@pytest.mark.parametrize("program", CASES)
def test_program(export_golden, precision, program):
    precision(program)
    export_golden(jax.jit(program.function), *program.arguments)

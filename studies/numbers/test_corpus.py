"""The corpus as the tests of a user's project: each program is marked.

`python -m studies.numbers` runs it in the environments of the writers; this project's own tests do not.
"""

from __future__ import annotations

import jax
import pytest

from studies.numbers import warm
from studies.numbers.programs import PROGRAMS


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

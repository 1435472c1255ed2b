"""The module editor of these tests, whose process they share."""

from collections.abc import Iterator

import pytest

from export_core.features.why.reduce.reduced_program import ModuleEditor
from export_core.readers.environment import this_interpreter


@pytest.fixture(scope="session")
def editor(here) -> Iterator[ModuleEditor]:
    with ModuleEditor(this_interpreter(here)) as made:
        yield made

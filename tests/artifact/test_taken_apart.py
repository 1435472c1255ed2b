from __future__ import annotations

import pytest
from kept import FILES, NAMES
from taken_apart import take_apart

from export_core.artifact import read


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_module_is_put_together_as_it_was(path):
    for module in read(path).modules:
        data = module.serialized()
        assert take_apart(data).encode() == data

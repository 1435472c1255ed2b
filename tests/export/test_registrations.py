"""The golden keeps a copy of the modules that a reader must import first."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from export_core.export import ExportError

NODES = """
import jax
from jax import export

class Box:
    def __init__(self, value):
        self.value = value

jax.tree_util.register_pytree_node(Box, lambda box: ((box.value,), None), lambda _, children: Box(*children))
export.register_pytree_node_serialization(
    Box, serialized_name="tests.Box", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None
)
"""


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "boxes_to_register.py").write_text(NODES)
    sys.path.insert(0, str(folder))
    import boxes_to_register

    yield boxes_to_register
    sys.path.remove(str(folder))


def test_a_copy_of_the_module_is_one_of_the_goldens_files(exported, boxes):
    x = np.ones(2, np.float32)
    produced = exported(lambda box: boxes.Box(box.value + 1), boxes.Box(x), register=("boxes_to_register",))
    assert produced.files["boxes_to_register.register.py"] == Path(boxes.__file__).read_bytes()
    assert "boxes_to_register.register.py" in produced.manifest.files
    assert produced.manifest.options.register == ("boxes_to_register",)


@pytest.mark.parametrize(("name", "found"), [("nobody_imported_this", "found none"), ("builtins", "found None")])
def test_what_was_not_imported_from_a_file_is_told(exported, name, found):
    with pytest.raises(ExportError, match=rf"register='{name}': expected the name of a module .* {found}"):
        exported(lambda x: x, np.ones(2, np.float32), register=(name,))

"""Registration modules that are known by their content, since they import nothing else."""

from pathlib import Path

import pytest
from making import REGISTERING

from export_core.matrix.cache_keys import is_self_contained


@pytest.mark.parametrize(
    "reaching",
    [
        "import os",
        "import os.path as path",
        "from os import environ",
        "from . import targets",
        "import numpy as np\ntable = np.load('table.npy')",
        "from numpy import fromfile as read",
        "from jax._src.xla_bridge import os",
        "jax._src.xla_bridge.os.getenv('X')",
        "open('table')",
        "import numpy as np\nnp.ctypeslib.load_library('libtargets', '.')",
        "import numpy as np\nnow = np.datetime64('now')",
        "__loader__.get_data('table')",
        "here = __file__",
        "__import__('mypackage')",
        "def late():\n    import ctypes",
        "exec('import mypackage')",
        "import mypackage.targets",
        "this is no Python",
        "\0",
    ],
)
def test_a_module_using_outside_code_is_not_self_contained(reaching):
    assert is_self_contained(REGISTERING.encode())
    assert not is_self_contained(f"{REGISTERING}\n{reaching}\n".encode())


def test_only_the_module_compat_kernels_is_not_self_contained():
    modules = sorted((Path(__file__).parents[2] / "golden").glob("*/*/*.register.py"))
    names = {path.name for path in modules}
    assert names == {f"{name}.register.py" for name in ("compat_effects", "compat_kernels", "compat_nodes")}
    others = {path.name for path in modules if not is_self_contained(path.read_bytes())}
    assert others == {"compat_kernels.register.py"}, "it looks for a file of the plugin, and at variables"

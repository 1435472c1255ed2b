"""JAX's own back-compat runner on its CPU goldens, in one process: `python -m benchmarks.jax_runner write|run FOLDER`.

`write` writes every golden that passes in this process as an artifact with its arrays. `run` replays the goldens that
`write` has written, and fails at the first that does not pass. Goldens that JAX compares by code of its tests are left
out, since those tests are not in its wheel. Source: jax._src.internal_test_util.export_back_compat_test_util, which is
in the wheel, as the goldens are.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax._src.export import _export
from jax._src.internal_test_util import export_back_compat_test_data as data
from jax._src.internal_test_util import export_back_compat_test_util as util

RTOL = 1e-4
made: list[Any] = []


class Recorded(_export.Exported):
    """An exported function that adds itself to `made`, so that its bytes can be written for our matrix."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        made.append(self)


class Runner(util.CompatTestBase):
    """The test class that JAX's runner needs, since the runner is a method of a test class."""

    def runTest(self) -> None:  # noqa: N802
        """Do nothing, since `replay` calls the methods of the runner itself."""


def goldens() -> Iterator[tuple[str, util.CompatTestData]]:
    """Yield each golden of the jax wheel that is for one CPU device, with a name for its files."""
    runner = Runner()
    for info in sorted(pkgutil.iter_modules(data.__path__), key=lambda info: info.name):
        if not info.ispkg:
            module = importlib.import_module(f"{data.__name__}.{info.name}")
            for name, value in vars(module).items():
                if name.startswith("data_"):
                    for number, one in enumerate(runner.load_testdata_nested(value)):
                        if one.platform == "cpu" and one.nr_devices == 1:
                            yield f"{info.name}.{name[5:]}.{number}", one


def replay(runner: Runner, golden: util.CompatTestData) -> None:
    """Run a golden and compare its outputs, as `CompatTestBase.run_one_test` of JAX does, but without lowering it.

    Raises:
        Exception: the golden does not run, or its outputs differ.
    """
    results = runner.run_serialized(golden)
    runner.assertAllClose(tuple(np.array(result) for result in results), golden.expected_outputs, rtol=RTOL, atol=RTOL)


def main() -> None:
    """Write or replay all goldens, as the command line says. With `write`, goldens that do not pass are left out."""
    jax.config.update("jax_enable_x64", True)
    what, folder = sys.argv[1], Path(sys.argv[2])
    runner = Runner()
    if what == "run":
        for name, golden in goldens():
            if (folder / f"{name}.jaxexport").exists():
                replay(runner, golden)
        return
    _export.Exported = Recorded
    for name, golden in goldens():
        try:
            replay(runner, golden)
        except Exception as error:
            print(f"left out: {name}: {type(error).__name__}", file=sys.stderr)
            continue
        (folder / f"{name}.jaxexport").write_bytes(bytes(made[-1].serialize()))
        np.savez(folder / f"{name}.inputs.npz", *jax.tree.leaves(golden.inputs))
        np.savez(folder / f"{name}.outputs.npz", *jax.tree.leaves(golden.expected_outputs))


if __name__ == "__main__":
    main()

"""The runtimes that ship with this package: a YAML file, its releases and a worker half for each."""

from functools import partial
from pathlib import Path

from export_core.releases.runtimes import load_runtime

_HERE = Path(__file__).parent

tensorflow, savedmodel, iree, litert, pjrt, stablehlo = (
    partial(load_runtime, _HERE / f"{name}.yaml")
    for name in ("tensorflow", "savedmodel", "iree", "litert", "pjrt", "stablehlo")
)

"""The stored artifacts of real writers of five releases, and what jax and jaxlib recorded about them."""

import functools
import importlib.util
import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("data")
WRITERS = ("0.4.30", "0.6.2", "0.8.1", "0.9.2", "0.12.0.1")
FILES = sorted(DATA.glob("*/*.jaxexport"))
SAVED_MODELS = sorted(DATA.glob("savedmodels/*/saved_model.pb"))
"""The SavedModels that studies/artifact/saved_models.py made with jax2tf, Orbax and Keras."""
NAMES = [f"{path.parent.name}-{path.stem}" for path in FILES]


def truth(path: Path) -> dict[str, Any]:
    """Return what jax and jaxlib recorded about this artifact."""
    recorded: dict[str, Any] = json.loads(path.with_name("truth.json").read_bytes())[path.stem]
    return recorded


def stablehlo_name(name: str) -> str:
    """Return the name of a VHLO operation as jaxlib shows it after reading."""
    if not name.startswith("vhlo."):
        return name
    word = name[5:].rpartition("_v")[0]
    return {"func": "func.func", "call": "func.call", "return": "return"}.get(word, f"stablehlo.{word}")


def counts(op_counts: dict[str, int]) -> dict[str, int]:
    """Return the counts of operations that jaxlib found, by the names that our reader gives the operations."""
    numbers: Counter[str] = Counter()
    for name, count in op_counts.items():
        if name != "builtin.unrealized_conversion_cast":  # jaxlib folds it away when it reads
            numbers[stablehlo_name(name)] += count
    return dict(numbers)


@functools.cache
def jax_goldens() -> dict[str, dict[str, Any]]:
    """Find the modules that ship in the jax wheel for jax's own tests, without an import of jax."""
    spec = importlib.util.find_spec("jax")
    modules: dict[str, dict[str, Any]] = {}
    if spec is None or not spec.submodule_search_locations:
        return modules
    root = Path(spec.submodule_search_locations[0]) / "_src/internal_test_util/export_back_compat_test_data"
    for path in sorted(root.rglob("*.py")):
        if path.name != "__init__.py":
            _collect(runpy.run_path(str(path)), path.stem, modules)
    return modules


def _collect(value: Any, name: str, modules: dict[str, dict[str, Any]]) -> None:
    """Add the goldens in this value, at any depth, to `modules`, each as `name#NUMBER`."""
    if isinstance(value, dict) and "mlir_module_serialized" in value:
        if not any(known is value for known in modules.values()):
            modules[f"{name}#{len(modules)}"] = value
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            _collect(item, name, modules)

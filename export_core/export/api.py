"""How is a function exported by whichever jax is installed? The one place that knows the old names.

`jax.export` exists since 0.4.30. From 0.4.24 to 0.4.29 it was `jax.experimental.export`, with other names for the same things.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from export_core.export.errors import ExportError

MIGRATION = (
    ("module", "jax.experimental.export", "jax.export"),
    ("platforms to export for", "export(lowering_platforms=)", "export(platforms=)"),
    ("platforms of the artifact", "Exported.lowering_platforms", "Exported.platforms"),
    (
        "calling convention",
        "Exported.mlir_module_serialization_version",
        "Exported.calling_convention_version",
    ),
    ("global constants", "Exported.uses_shape_polymorphism", "Exported.uses_global_constants"),
    ("device count", "Exported.nr_devices", "Exported.nr_devices"),
    ("module as text", "Exported.mlir_module", "Exported.mlir_module()"),
    ("serialize", "serialize(exported, vjp_order=)", "Exported.serialize(vjp_order=)"),
    ("deserialize", "deserialize(data)", "deserialize(data)"),
    ("call", "call(exported)", "Exported.call"),
    ("symbolic arguments", "symbolic_args_specs(args, specs)", "symbolic_args_specs(args, specs)"),
)
"""What was called how: the thing, its name from 0.4.24 to 0.4.29, its name since 0.4.30."""


def export_module() -> Any:
    """`jax.export`, or `jax.experimental.export` before 0.4.30."""
    found = importlib.util.find_spec("jax.export")
    return importlib.import_module("jax.export" if found else "jax.experimental.export")


def exported(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    platforms: Sequence[str],
    disabled_checks: Sequence[str] = (),
) -> Any:
    """The `Exported` of a jitted function.

    Args:
        function: the result of `jax.jit`.
        args: positional arguments, or `jax.ShapeDtypeStruct` in their place.
        kwargs: keyword arguments, likewise.
        platforms: some of cpu, cuda, rocm, tpu.
        disabled_checks: custom-call targets (or ``ALL``), and ``platform``.
    """
    module = export_module()
    checks = [
        module.DisabledSafetyCheck.platform() if name == "platform" else module.DisabledSafetyCheck.custom_call(name)
        for name in disabled_checks
    ]
    known = inspect.signature(module.export).parameters
    named = "platforms" if "platforms" in known else "lowering_platforms"
    return module.export(function, **{named: tuple(platforms)}, disabled_checks=checks)(*args, **kwargs)


def serialized(exported: Any, vjp_order: int = 0) -> bytes:
    """The artifact."""
    if hasattr(exported, "serialize"):
        return bytes(exported.serialize(vjp_order=vjp_order))
    return bytes(export_module().serialize(exported, vjp_order=vjp_order))


def derivative(data: bytes, order: int) -> Any:
    """The derivative of that order of an artifact, as an `Exported`. Raises `ValueError` where the artifact has none."""
    found = export_module().deserialize(bytearray(data))
    for _ in range(order):
        found = found.vjp()
    return found


def module_text(exported: Any) -> str:
    """The StableHLO module as text."""
    module = exported.mlir_module
    return str(module() if callable(module) else module)


def call_of(exported: Any) -> Any:
    """The function that calls an `Exported`."""
    return exported.call if hasattr(exported, "call") else export_module().call(exported)


def symbolic_args_specs(args: Any, shapes: Any, constraints: Sequence[str]) -> Any:
    """`jax.ShapeDtypeStruct` with symbolic dimensions in place of arguments."""
    module = export_module()
    return module.symbolic_args_specs(args, shapes, **({"constraints": tuple(constraints)} if constraints else {}))


def dynamic_tree(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tree of what a jitted function takes as arrays: arguments without the static ones. Traces the function."""
    stage = function.trace if hasattr(function, "trace") else function.lower
    return stage(*args, **kwargs).in_tree


@contextmanager
def configured(test: str, values: Mapping[str, Any]) -> Iterator[None]:
    """Settings of jax for a while. Raises `ExportError` for one that this jax lacks."""
    known: dict[str, Any] = jax.config.values
    for name in values:
        if name not in known:
            raise ExportError(f"{test}: jax {jax.__version__} has no setting {name}: expected a release that has it.")
    before = {name: known[name] for name in values}
    try:
        for name, value in values.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)

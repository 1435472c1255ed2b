"""The functions of jax.export under the names of the installed jax: no other file of the writer knows old names.

`jax.export` exists since 0.4.30. From 0.4.24 to 0.4.29 it was `jax.experimental.export`, with other names for the same
functions and options.
"""

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import jax

from export_core.artifact.bytecode.module import Module
from export_core.artifact.constant_hashes import LONG, long_constants, with_hashes
from export_core.base.callables import name_of
from export_core.export.errors import ExportError

# Old names by the new ones; studies/every_release has those of functions too, and looks them up in the releases.
_OLD_SETTINGS = {"jax_export_calling_convention_version": "jax_serialization_version"}

SHAPE_ASSERTIONS = "shape_assertions"
FIRST_WITHOUT_THE_CHECK = (0, 4, 29)
"""The first release in which the check `SHAPE_ASSERTIONS` cannot be disabled.

Before, disabling it gave an export without the assertions, and a call that ignores constraints. In this release it
became a no-op with a warning, and later releases do not have it. Source: the sources of those releases.
"""


def export_module() -> Any:
    """Return the module `jax.export`, or `jax.experimental.export` before 0.4.30."""
    is_new = importlib.util.find_spec("jax.export") is not None
    return importlib.import_module("jax.export" if is_new else "jax.experimental.export")


def export_function(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    platforms: Sequence[str],
    disabled_checks: Sequence[str] = (),
) -> Any:
    """Export a jitted function. Returns jax's `Exported`; raises whatever jax.export raises.

    A `jax.ShapeDtypeStruct` may take the place of any argument. `disabled_checks` are custom-call targets (or ``ALL``),
    ``platform``, and, before 0.4.29, ``shape_assertions``.
    """
    module = export_module()
    kinds = module.DisabledSafetyCheck
    checks = [
        getattr(kinds, name)() if name in ("platform", SHAPE_ASSERTIONS) else kinds.custom_call(name)
        for name in disabled_checks
    ]
    platforms_keyword = _keyword_of(module.export, "platforms", "lowering_platforms")
    options: dict[str, Any] = {platforms_keyword: tuple(platforms), "disabled_checks": checks}
    if jax.__version_info__ >= (0, 4, 27):
        return module.export(function, **options)(*args, **kwargs)
    # Before, export() asked every argument for its shape, and Python numbers have none. So it sees no arguments: it
    # lowers the function without any, and differentiates the function itself.
    bound: Any = functools.partial(function)
    bound.lower = functools.partial(function.lower, *args, **kwargs)
    bound.__name__ = name_of(function, "unknown")
    return module.export(bound, **options)()


def _keyword_of(function: Any, new: str, old: str) -> str:
    """Return the name of a keyword argument that a function has in this release: `new` if it has that, else `old`."""
    return new if new in inspect.signature(function).parameters else old


def serialize(exported: Any, vjp_order: int = 0) -> bytes:
    """Return the bytes of an `Exported`, the artifact, with its derivatives up to the order `vjp_order`."""
    if hasattr(exported, "serialize"):
        return bytes(exported.serialize(vjp_order=vjp_order))
    return bytes(export_module().serialize(exported, vjp_order=vjp_order))


def derivative(data: bytes, order: int) -> Any:
    """Return the derivative of an artifact of the order `order`, as an `Exported`.

    Raises `ValueError` if the artifact has no derivative of this order.
    """
    exported = export_module().deserialize(bytearray(data))
    for _ in range(order):
        exported = exported.vjp()
    return exported


def module_text(exported: Any, module: Module) -> str:
    """Return the StableHLO module of an `Exported` as jax prints it, with hashes in place of long constants.

    `module` is the same module, as our own reader reads it from the artifact.
    """
    # Spelled, a constant takes several times its memory. Before 0.4.33, the function of jaxlib's StableHLO that reads a
    # module ends the process (tried in 0.4.24, 0.4.30, 0.4.31).
    if jax.__version_info__ < (0, 4, 33) or not long_constants(module):
        return with_hashes(str(exported.mlir_module()), module)
    # Here: both are private, and where a release has moved them, only golden texts with long constants are missing.
    from jax._src.interpreters import mlir
    from jaxlib.mlir.dialects import stablehlo

    with mlir.make_ir_context() as context:
        parsed = stablehlo.deserialize_portable_artifact(context, exported.mlir_module_serialized)
        text = parsed.operation.get_asm(large_elements_limit=LONG, enable_debug_info=True)
    return with_hashes(text, module)


def serializable_nodes() -> Mapping[type, Any]:
    """Return the types of tree nodes that this process has registered with jax.export; none before 0.4.35."""
    module = importlib.import_module(export_module().export.__module__)
    registered: Mapping[type, Any] = getattr(module, "serialization_registry", {})
    return registered


def platform_name() -> str:
    """Return the platform on which this process runs functions, as jax.export calls it."""
    # The backend of both cuda and rocm is called "gpu"; jax.export tells them apart.
    backend = jax.default_backend()
    if backend != "gpu":
        return str(backend)
    version = str(jax.devices()[0].client.platform_version).lower()
    return "rocm" if "rocm" in version else "cuda"


def free_memory() -> None:
    """Free the memory that jax holds for functions: their modules and compiled programs, and the constants in both."""
    jax.clear_caches()
    # Since 0.12 a thread makes up to ten modules in one MLIR context, which keeps the constants of all of them.
    with suppress(AttributeError):  # a release may have another name for it: then the cache stays
        importlib.import_module("jax._src.interpreters.mlir")._thread_local_context.set_local(None)


def call_of(exported: Any) -> Any:
    """Return the function that calls an `Exported`."""
    return exported.call if hasattr(exported, "call") else export_module().call(exported)


def symbolic_args_specs(args: Any, shapes: Any, constraints: Sequence[str]) -> Any:
    """Return the arguments as `jax.ShapeDtypeStruct`, with the symbolic dimensions of `shapes` under constraints."""
    specs = export_module().symbolic_args_specs
    keyword = _keyword_of(specs, "constraints", "symbolic_constraints")
    return specs(args, shapes, **{keyword: tuple(constraints)})


def dynamic_tree(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the tree of the arguments of a jitted function that are not static. This traces the function."""
    __tracebackhide__ = True  # an error is reported at the user's call
    stage = function.trace if hasattr(function, "trace") else function.lower  # trace() exists since 0.4.30
    return stage(*args, **kwargs).in_tree


def context_mesh() -> Any:
    """Return the mesh of `jax.set_mesh` around this call; None if there is none, and before 0.9, which cannot tell."""
    mesh = jax.sharding.get_mesh() if hasattr(jax.sharding, "get_mesh") else None
    return None if mesh is None or mesh.empty else mesh


def in_mesh(mesh: Any) -> AbstractContextManager[Any]:
    """Return the context manager `jax.set_mesh(mesh)`.

    If the mesh is None, or before 0.7, the returned context manager has no effect.
    """
    if mesh is None or not hasattr(jax, "set_mesh"):
        return nullcontext()
    context: AbstractContextManager[Any] = jax.set_mesh(mesh)
    return context


@contextmanager
def temporary_settings(test: str, values: Mapping[str, Any]) -> Iterator[None]:
    """Change settings of jax inside a `with` block. Raises `ExportError` for a setting that this jax lacks."""
    known: dict[str, Any] = jax.config.values
    renamed = {name if name in known else _OLD_SETTINGS.get(name, name): value for name, value in values.items()}
    for name in renamed:
        if name not in known:
            raise ExportError(
                f"{test}: expected a setting of jax {jax.__version__}, found {name}. Remove it, or run this test with "
                "a jax that has it."
            )
    # All names were checked first: an unknown one in the middle would leave the others changed.
    before = {name: known[name] for name in renamed}
    try:
        for name, value in renamed.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)

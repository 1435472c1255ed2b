"""Calls artifacts through a bare PJRT client, as callers from C, Go or Rust do: jaxlib's for the CPU, without jax.

Such a caller gives `main` the arguments of the calling convention and nothing else. It registers no custom calls and
refines no shapes, so artifacts that rely on jax for this do not run.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import types
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MODULES = (
    *("ml_dtypes", "numpy", "jaxlib.xla_client", "jaxlib.version", "jaxlib.mlir.ir"),
    *(f"jaxlib.mlir.dialects.{name}" for name in ("builtin", "func", "sdy", "stablehlo")),
)
LAYOUT = "mhlo.layout_mode"  # The attribute by which an argument or a result of `main` asks for a layout of its own.


def warm() -> None:
    """Import the modules that every cell needs."""
    for name in MODULES:
        with contextlib.suppress(ImportError):  # missing in a release that is too old, as its cell reports
            importlib.import_module(name)


def run(call: dict[str, Any], leaves: list[Any], stage: Callable[[str], None]) -> list[Any]:
    """Put the arguments on the only device, compile the module for it, execute it, and return the outputs.

    Raises `ValueError` if this jaxlib is too old.
    """
    import jaxlib.version
    import numpy as np
    from jaxlib import xla_client

    if jaxlib.version.__version_info__ < (0, 5, 1):
        raise ValueError("the client of this jaxlib cannot make and read arrays without jax: use jaxlib 0.5.1 or later")
    client = xla_client.make_cpu_client()
    stage("deserialize")  # What follows fails for what the client lacks, such as a dtype.
    # A buffer without elements passes for a token.
    values = [np.zeros(0, np.bool_)] * call["tokens"] + [leaves[place] for place in call["kept"]]
    if len(call["platforms"]) > 1:
        number = call["platforms"].index("cpu")  # of the type that jax has for sizes
        values.insert(0, np.asarray(number, np.int64 if call["x64"] else np.int32))
    arguments = [put(client, value) for value in values]
    code, layouts = read_module(call["module"])
    stage("compile")
    program = compile_module(client, code, call["shardy"])
    stage("run")
    arguments = [
        execute(compile_module(client, relayout(*layout).encode(), False), [argument])[0] if layout else argument
        for argument, layout in zip(arguments, layouts, strict=True)
    ]
    results = execute(program, arguments)[call["tokens"] :]
    return [result._single_device_array_to_np_array_did_copy()[0] for result in results]


def put(client: Any, value: Any) -> Any:
    """Return a buffer on the client's device that holds the values of this array."""
    device = client.local_devices()[0]
    if hasattr(client, "buffer_from_pyval"):  # until 0.9.2
        return client.buffer_from_pyval(value, device, True)
    from jaxlib import _jax, xla_client

    # Until 0.11.1 the binding calls this method, which jax adds.
    _jax.SingleDeviceSharding._to_xla_hlo_sharding = lambda self, dimensions: xla_client.HloSharding.replicate()
    aval = types.SimpleNamespace(shape=value.shape, dtype=value.dtype, weak_type=False)
    sharding = _jax.SingleDeviceSharding(device)
    return _jax.batched_device_put(aval, sharding, [value], [device], True, enable_x64=True)


def read_module(path: str) -> tuple[bytes, list[tuple[str, str] | None]]:
    """Return the module of a portable artifact as MLIR bytecode of this release, and the layouts of its arguments.

    The layout of an argument is (type, layout), or None if it asks for none.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy, stablehlo

    with ir.Context() as context:
        sdy.register_dialect(context)
        module = stablehlo.deserialize_portable_artifact(context, Path(path).read_bytes())
        (main,) = (op for op in module.body.operations if op.operation.attributes["sym_name"].value == "main")
        layouts: list[tuple[str, str] | None] = [None] * len(main.type.inputs)
        for number, attributes in enumerate(main.arg_attrs if "arg_attrs" in main.attributes else ()):
            if LAYOUT in attributes and attributes[LAYOUT].value not in ("default", "auto"):
                layouts[number] = str(main.type.inputs[number]), attributes[LAYOUT].value
        output = io.BytesIO()
        module.operation.write_bytecode(output)
        return output.getvalue(), layouts


def relayout(kind: str, layout: str) -> str:
    """Return a StableHLO program that returns its argument, of the MLIR type `kind`, in this layout.

    It is needed since PJRT's own function for this is not in the Python binding.
    """
    return f'func.func @main(%x: {kind}) -> ({kind} {{{LAYOUT} = "{layout}"}}) {{ return %x : {kind} }}'


def compile_module(client: Any, code: bytes, shardy: bool) -> Any:
    """Return the compiled program of a StableHLO module, for the client's only device."""
    from jaxlib import xla_client

    options = xla_client.CompileOptions()
    if hasattr(options.executable_build_options, "use_shardy_partitioner"):  # since 0.4.36
        options.executable_build_options.use_shardy_partitioner = shardy
    if not hasattr(client, "compile_and_load"):  # until 0.6.0
        return client.compile(code, options)
    from jaxlib import _jax

    return client.compile_and_load(code, _jax.DeviceList((client.local_devices()[0],)), options)


def execute(program: Any, arguments: list[Any]) -> list[Any]:
    """Run a program on the only device, and return its results as buffers."""
    results = program.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [shards[0] for shards in results]

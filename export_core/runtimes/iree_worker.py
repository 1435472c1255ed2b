"""Compiles artifacts with IREE for the processor at hand, in this process, and runs them in IREE's runtime."""

from __future__ import annotations

import math
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FLAGS = (
    "--iree-hal-target-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-type=auto",
)
PACKED = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}  # The bits of integers that are denser than in NumPy's arrays.


def warm() -> None:
    """Import the modules that every cell needs."""
    import iree.compiler.api
    import iree.runtime  # noqa: F401
    import ml_dtypes  # noqa: F401
    import numpy  # noqa: F401


def run(call: dict[str, Any], leaves: list[Any], stage: Callable[[str], None]) -> list[Any]:
    """Compile the module of a call for one device that computes in this thread, call `main`, and return its outputs."""
    import numpy as np
    from iree import runtime

    stage("deserialize")  # What follows fails for what IREE lacks, such as a dtype.
    values = [leaves[place] for place in call["kept"]]
    if len(call["platforms"]) > 1:
        number = call["platforms"].index("cpu")  # of the type that jax has for sizes
        values.insert(0, np.asarray(number, np.int64 if call["x64"] else np.int32))
    wires = [wire for wire, _, _ in call["outputs"]]
    for wire in wires:
        element_type(wire)
    config = runtime.Config("local-sync")
    arguments = runtime.VmVariantList(len(values))
    for value in values:
        arguments.push_ref(to_view(config.device, value))
    code = compile_module(call["module"], stage)
    stage("run")
    module = runtime.VmModule.copy_buffer(config.vm_instance, code)
    context = runtime.VmContext(config.vm_instance, [*config.default_vm_modules, module])
    results = runtime.VmVariantList(len(wires))
    context.invoke(module.lookup_function("main"), arguments, results)
    return [from_view(results.get_as_object(n, runtime.HalBufferView), wire) for n, wire in enumerate(wires)]


def compile_module(path: str, stage: Callable[[str], None]) -> bytes:
    """Return a StableHLO portable artifact as bytecode for IREE's virtual machine."""
    from iree.compiler.api import Invocation, Output, Session, Source

    session = Session()
    # Flags that the name of the reader has, such as --iree-input-demote-f64-to-f32=false: by default it computes
    # float64 in float32.
    session.set_flags(*FLAGS, *filter(None, os.environ.get("JAXEXPORT_READER_SETTINGS", "").split(";")))
    invocation = Invocation(session)
    invocation.enable_console_diagnostics()
    if not invocation.parse_source(Source.open_file(session, path)):
        raise ValueError("IREE cannot read the module")
    stage("compile")
    if not invocation.execute():
        raise ValueError("IREE cannot compile the module")
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    memory = output.map_memory()
    return bytes(memory)


def element_type(name: str) -> int:
    """Return the number of IREE's element type for a dtype of NumPy or ml_dtypes.

    Raises `ValueError` if this IREE has no such type.
    """
    from iree.runtime import HalElementType

    words = re.fullmatch(r"([a-z]+)(\d*)_?(\w*\d)?([a-z]*)", name)  # float8_e4m3fn is FLOAT_8_E4M3_FN there
    assert words
    family, bits, form, suffix = words.groups("")
    spelled = ("SINT" if family == "int" else family, bits or "8", form, suffix)
    kind = getattr(HalElementType, "_".join(filter(None, spelled)).upper(), None)
    if kind is None:
        raise ValueError(f"the runtime of this IREE has no dtype {name}")
    return int(kind)


def to_view(device: Any, value: Any) -> Any:
    """Return an array as an argument of IREE: its bits in the device's memory, with their shape and type."""
    import numpy as np
    from iree import runtime

    data = np.frombuffer(value.tobytes(), np.uint8)
    if bits := PACKED.get(value.dtype.name):  # the first number in the lowest bits of a byte
        data = np.packbits(np.unpackbits(data[:, None], axis=1, bitorder="little")[:, :bits], bitorder="little")
    buffer = device.allocator.allocate_buffer_copy(
        memory_type=runtime.MemoryType.DEVICE_LOCAL,
        allowed_usage=runtime.BufferUsage.DEFAULT,
        device=device,
        buffer=data,
    )
    return runtime.HalBufferView(buffer, value.shape, element_type(value.dtype.name))


def from_view(view: Any, wire: str) -> Any:
    """Return the array that a result of IREE holds. `wire` is its dtype in NumPy or ml_dtypes."""
    import ml_dtypes
    import numpy as np

    dtype = np.dtype(getattr(ml_dtypes, wire, wire))
    data = view.map().asarray((view.byte_length,), np.dtype("uint8")).copy()
    if bits := PACKED.get(wire):
        numbers = np.unpackbits(data, bitorder="little")[: math.prod(view.shape) * bits].reshape(-1, bits)
        data = np.packbits(numbers, axis=1, bitorder="little").reshape(-1)
    return data.view(dtype).reshape(view.shape)

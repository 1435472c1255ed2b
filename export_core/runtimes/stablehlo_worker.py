"""Runs artifacts in the reference interpreter of StableHLO, which jaxlib contains: it shares no code with XLA.

Arguments and results cross as their bits. jaxlib's Python binding reads back only integers of whole bytes and some
floats. So the results of other types are converted to these inside the module, by operations that change no bit.
"""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MODULES = (
    *("ml_dtypes", "numpy", "jaxlib.version", "jaxlib.mlir.ir"),
    *(f"jaxlib.mlir.dialects.{name}" for name in ("builtin", "func", "sdy", "stablehlo")),
)
READ_BACK = ("bool", "float16", "float32", "float64", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)))
OLDEST = (0, 5)  # The oldest jaxlib whose interpreter can be called.
MASKS = {"int4": 15, "uint4": 15, "int2": 3, "uint2": 3}  # The bits of integers that take a byte in NumPy's arrays.


def warm() -> None:
    """Import the modules that every cell needs."""
    for name in MODULES:
        with contextlib.suppress(ImportError):  # missing in a release that is too old, as its cell reports
            importlib.import_module(name)


def start_ahead(client: bool) -> None:
    """Evaluate a program that returns its argument, so that MLIR loads its dialects before the cell arrives.

    This is done only if `client` is true, that is, in a spare process that will run one cell.
    """
    import jaxlib.version
    import numpy as np

    if not client or jaxlib.version.__version_info__ < OLDEST:
        return
    from jaxlib.mlir.dialects import stablehlo

    program = "func.func @main(%value: tensor<f32>) -> tensor<f32> { return %value : tensor<f32> }"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "module"
        file.write_bytes(stablehlo.serialize_portable_artifact_str(program, stablehlo.get_minimum_version()))
        evaluate(file, [np.zeros((), np.float32)], ["float32"], lambda stage: None)


def run(call: dict[str, Any], leaves: list[Any], stage: Callable[[str], None]) -> list[Any]:
    """Evaluate `main` with these arguments, and return its outputs, as the `run` of a worker half.

    For an operation that it cannot evaluate, the interpreter prints a message on stderr and aborts the process. Raises
    `ValueError` for tokens, and if this jaxlib is too old.
    """
    import jaxlib.version
    import numpy as np

    if jaxlib.version.__version_info__ < OLDEST:
        raise ValueError(
            "the StableHLO interpreter of this jaxlib cannot be called, or takes no booleans: use jaxlib 0.5.0 or later"
        )
    stage("deserialize")  # What follows fails for what the interpreter lacks, such as tokens, or a dtype.
    if call["tokens"]:
        raise ValueError(
            "the artifact takes tokens for its ordered effects, which the interpreter's Python binding cannot make"
        )
    values = [leaves[place] for place in call["kept"]]
    if len(call["platforms"]) > 1:
        number = call["platforms"].index("cpu")  # of the type that jax has for sizes
        values.insert(0, np.asarray(number, np.int64 if call["x64"] else np.int32))
    return evaluate(Path(call["module"]), values, [wire for wire, _, _ in call["outputs"]], stage)


def evaluate(file: Path, values: list[Any], kinds: list[str], stage: Callable[[str], None]) -> list[Any]:
    """Return what `main` of the portable artifact in `file` returns for these arrays: arrays of the dtypes `kinds`."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy, stablehlo

    with ir.Context() as context, ir.Location.unknown():
        if hasattr(stablehlo, "register_interpreter_dialect"):
            stablehlo.register_interpreter_dialect(context)
        sdy.register_dialect(context)
        arguments = [to_attribute(value) for value in values]
        module = stablehlo.deserialize_portable_artifact(context, file.read_bytes())
        stage("module")
        return_bits(module, kinds)
        stage("run")
        results = stablehlo.eval_module(module, arguments)
        return from_attributes(results, kinds)


def mlir_type(name: str) -> str:
    """Return the name in MLIR of a dtype of NumPy or ml_dtypes.

    For example, it is ui8 for uint8, complex<f32> for complex64, and f8E4M3FN for float8_e4m3fn.
    """
    if name == "bool":
        return "i1"
    if name.startswith("complex"):
        return f"complex<f{int(name[7:]) // 2}>"
    letters = name.replace("bfloat", "bf").replace("float", "f").replace("uint", "ui").replace("int", "i")
    width, _, form = letters.partition("_")
    return width + form.upper()


def to_attribute(value: Any) -> Any:
    """Return an MLIR attribute that holds the bits of an array."""
    import numpy as np
    from jaxlib.mlir import ir

    if value.dtype == np.bool_:
        return ir.DenseElementsAttr.get(np.ascontiguousarray(value).reshape(value.shape))
    kind = ir.RankedTensorType.get(value.shape, ir.Type.parse(mlir_type(value.dtype.name)))
    data = np.frombuffer(value.tobytes(), np.uint8)
    if value.dtype.name in MASKS:  # MLIR requires that the unused bits of a byte are zero
        data = data & np.uint8(MASKS[value.dtype.name])
    return ir.DenseElementsAttr.get(data, type=kind)


def return_bits(module: Any, kinds: list[str]) -> None:
    """Change `main` so that MLIR's Python binding can read its results; `from_attributes` makes arrays of them again.

    `kinds` are the dtypes of the results before the change.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func

    if all(kind in READ_BACK for kind in kinds):
        return
    (main,) = (op for op in module.body.operations if op.operation.attributes["sym_name"].value == "main")
    (block,) = main.body
    (*_, end) = block.operations
    with ir.InsertionPoint(end):
        results = [part for value, kind in zip(end.operands, kinds, strict=True) for part in bits_of(value, kind)]
        func.ReturnOp(results)
    end.operation.erase()
    kind = ir.FunctionType.get(main.type.inputs, [result.type for result in results])
    main.attributes["function_type"] = ir.TypeAttr.get(kind)
    if "res_attrs" in main.attributes:  # one for each result: there may be more now
        del main.attributes["res_attrs"]


def bits_of(value: Any, kind: str) -> list[Any]:
    """Return a result of the dtype `kind` as values that the binding can read.

    They are the parts of complex numbers, the bits of small floats, and small integers in a whole byte.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    def cast(operation: Any, operand: Any, name: str) -> Any:
        shape = ir.RankedTensorType(operand.type).shape
        return operation(ir.RankedTensorType.get(shape, ir.Type.parse(name)), operand).result

    if kind in READ_BACK:
        return [value]
    if kind.startswith("complex"):
        return [stablehlo.RealOp(value).result, stablehlo.ImagOp(value).result]
    if kind.startswith("bfloat"):
        return [cast(stablehlo.BitcastConvertOp, value, "ui16")]
    if kind.startswith("float8"):
        return [cast(stablehlo.BitcastConvertOp, value, "ui8")]
    if kind.startswith("float"):
        value = cast(stablehlo.BitcastConvertOp, value, "ui4")
    return [cast(stablehlo.ConvertOp, value, "i8" if kind.startswith("int") else "ui8")]


def from_attributes(results: list[Any], kinds: list[str]) -> list[Any]:
    """Return arrays of the dtypes `kinds` from what `main` returned after `return_bits`."""
    import numpy as np

    left = iter(results)
    return [array_of(kind, np.array(next(left)), left) for kind in kinds]


def array_of(kind: str, first: Any, left: Iterator[Any]) -> Any:
    """Return an array of this dtype from its first part. A complex array takes its second part from `left`."""
    import ml_dtypes
    import numpy as np

    if kind in READ_BACK:
        return first
    if kind.startswith("complex"):
        whole = np.empty(first.shape, kind)
        whole.real, whole.imag = first, np.array(next(left))
        return whole
    dtype = np.dtype(getattr(ml_dtypes, kind))
    return first.view(dtype) if "float" in kind else first.astype(dtype)

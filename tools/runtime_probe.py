"""A probe of what a release of a runtime reads: `ITS_PYTHON runtime_probe.py NAME FOLDER` prints a line of JSON.

`tools.runtime_releases` runs it inside an environment of the runtime, so it needs the standard library and the runtime
alone. FOLDER has a portable artifact `VERSION.mlirbc` for each version of StableHLO that brought something new, and a
portable artifact `DIALECT.mlirbc` for each other dialect that an artifact may contain.

In the JSON, `says` is the StableHLO version that the release states (null if it states none). `read` lists the
artifacts that it reads. `convention` is the highest calling convention of XlaCallModule (null if it has no such op).
"""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def tensorflow(folder: Path) -> dict[str, Any]:
    """Return what TensorFlow reads. The message by which it refuses too high a calling convention names the highest."""
    tf = import_module("tensorflow")
    op = import_module("tensorflow.compiler.tf2xla.ops.gen_xla_ops").xla_call_module

    def refusal(path: Path, convention: int) -> str:
        # The op gets no arguments, so it never runs: it reads the module before it counts them.
        try:
            op(
                args=[],
                version=convention,
                module=path.read_bytes(),
                Sout=[tf.TensorShape([2])],
                Tout=[tf.float32],
                platforms=["CPU"],
                disabled_checks=[],
                has_token_input_output=False,
            )
        except Exception as error:  # the op raises many types
            return str(error)
        return ""

    files = sorted(folder.glob("*.mlirbc"))
    highest = re.search(r"Must be <= (\d+)", refusal(folder / "0.9.mlirbc", 1000))
    convention = int(highest[1]) if highest else None
    says = import_module("tensorflow.compiler.mlir.stablehlo.stablehlo").get_current_version()
    read = [path.stem for path in files if "Cannot deserialize" not in refusal(path, convention or 9)]
    return {"says": says, "read": read, "convention": convention}


def litert(folder: Path) -> dict[str, Any]:
    """Return what LiteRT's converter reads, by the Python bindings of StableHLO that it contains."""
    ir = import_module("litert_converter.mlir.ir")
    converter = import_module("litert_converter.mlir._mlir_libs.converter_api_ext")
    stablehlo = import_module("litert_converter.mlir.dialects.stablehlo")
    read = []
    for path in folder.glob("*.mlirbc"):
        context = ir.Context()
        converter.prepare_mlir_context(context)
        try:
            with context:
                stablehlo.deserialize_portable_artifact(context, path.read_bytes())
        except Exception:  # MLIRError, or ValueError in older releases
            continue
        read.append(path.stem)
    return {"says": stablehlo.get_current_version(), "read": read, "convention": None}


def iree(folder: Path) -> dict[str, Any]:
    """Return what IREE reads: iree-opt tries the artifacts of StableHLO versions, iree-compile those of other dialects.

    IREE does not state its version of StableHLO.
    """
    tools = Path(sys.executable).parent
    read = []
    for path in folder.glob("*.mlirbc"):
        if path.stem[0].isdigit():
            command = [tools / "iree-opt", path]
        else:
            command = [tools / "iree-compile", "--iree-hal-target-backends=llvm-cpu", path, "-o", "/dev/null"]
        if not subprocess.run(command, capture_output=True, check=False).returncode:
            read.append(path.stem)
    return {"says": None, "read": read, "convention": None}


if __name__ == "__main__":
    print(json.dumps({"tensorflow": tensorflow, "litert": litert, "iree": iree}[sys.argv[1]](Path(sys.argv[2]))))

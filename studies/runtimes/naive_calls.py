"""The calls of a golden in a runtime, as a user of that runtime would write them: `python naive_calls.py JOB.json`.

It runs in the runtime's environment, in a new interpreter for each golden, and shares no code with the package's
workers. It prints a line of JSON for each call: the error that the call raised, or null. Outputs are pickled into the
files that the job names.
"""

import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def read_inputs(path):
    """Return the arrays of an inputs.npz in order. Its members are named NUMBER.DTYPE.

    Random keys are returned as arrays of integers, and arrays of float0 as booleans.
    """
    import ml_dtypes
    import numpy as np

    arrays = {}
    with np.load(path) as file:
        for name, array in file.items():
            number, dtype = name.split(".", 1)
            stored = getattr(ml_dtypes, dtype, None) if not hasattr(np, dtype) else None
            arrays[int(number)] = array.view(stored) if stored else array
    return [arrays[number] for number in sorted(arrays)]


def platform_index(call):
    """Return a list with the index of the CPU, the first argument of a module for several platforms, or else []."""
    import numpy as np

    if len(call["platforms"]) == 1:
        return []
    return [np.array(call["platforms"].index("cpu"), np.int64 if call["x64"] else np.int32)]


def settings():
    """Return the settings in the name of the reader, which are in brackets there."""
    return os.environ.get("JAXEXPORT_READER_SETTINGS", "").replace(";", " ").split()


# --- TensorFlow -------------------------------------------------------------------------------------------------------


def xla_call_module(call, arguments):
    """Call the operation XlaCallModule with a module and its arguments, as jax2tf does; return its tensors."""
    import inspect

    import tensorflow as tf
    from tensorflow.compiler.tf2xla.python import xla

    shardy = "use_shardy_partitioner" in inspect.signature(xla.call_module).parameters
    return xla.call_module(
        arguments,
        version=call["version"],
        module=Path(call["module"]).read_bytes(),
        Sout=[tf.TensorShape(shape) for _, shape in call["outputs"]],
        Tout=[tf.dtypes.as_dtype(dtype) for dtype, _ in call["outputs"]],
        platforms=[name.upper() for name in call["platforms"]],
        disabled_checks=call["disabled_checks"],
        has_token_input_output=bool(call["tokens"]),
        **({"use_shardy_partitioner": call["shardy"]} if shardy else {}),
    )


def tensorflow(call, arguments):
    """Call a module in TensorFlow eagerly, and return its outputs."""
    import tensorflow as tf

    return [tensor.numpy() for tensor in xla_call_module(call, [tf.constant(value) for value in arguments])]


def savedmodel(call, arguments):
    """Write a module as a SavedModel, let a second new interpreter load and call it, and return its outputs."""
    import tensorflow as tf

    tensors = [tf.constant(value) for value in arguments]
    shapes = [call["inputs"][index][1] for index in call["kept"]]
    specs = [
        tf.TensorSpec(shape, value.dtype, f"x{n}") for n, (shape, value) in enumerate(zip(shapes, tensors, strict=True))
    ]
    model = tf.Module()
    model.f = tf.function(
        lambda *values: {f"y{n}": y for n, y in enumerate(xla_call_module(call, list(values)))},
        input_signature=specs,
        autograph=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(model, f"{folder}/model", signatures=model.f)
        Path(folder, "arguments").write_bytes(pickle.dumps([packed(value) for value in arguments]))
        served = subprocess.run([sys.executable, __file__, "serve", folder], capture_output=True, text=True)
        if served.returncode < 0:
            os.kill(os.getpid(), -served.returncode)
        if served.returncode:
            raise RuntimeError(served.stderr[-2000:])
        return [unpacked(one) for one in pickle.loads(Path(folder, "results").read_bytes())]


def serve(folder):
    import tensorflow as tf

    arguments = [unpacked(one) for one in pickle.loads(Path(folder, "arguments").read_bytes())]
    model = tf.saved_model.load(f"{folder}/model")
    signature = model.signatures["serving_default"]
    found = signature(**{f"x{n}": tf.constant(value) for n, value in enumerate(arguments)})
    results = [packed(found[f"y{n}"].numpy()) for n in range(len(found))]
    Path(folder, "results").write_bytes(pickle.dumps(results))


# --- IREE -------------------------------------------------------------------------------------------------------------

NAMES_OF_IREE = {"bool": "i8", "complex64": "cf64", "complex128": "cf128", "bfloat16": "bf16"}


def iree(call, arguments):
    """Compile and call a module by IREE's commands, which read and write arrays as bytes; return its outputs."""
    import ml_dtypes
    import numpy as np

    commands = Path(sys.executable).parent
    arguments = [*platform_index(call), *arguments]
    with tempfile.TemporaryDirectory() as folder:
        words = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"]
        words += [*settings(), "-o", f"{folder}/module.vmfb"]
        run_command(commands / "iree-compile", call["module"], *words)
        words = ["--device=local-sync", f"--module={folder}/module.vmfb", "--function=main"]
        for number, value in enumerate(arguments):
            Path(folder, f"x{number}").write_bytes(nibbles(value))
            shape = "".join(f"{size}x" for size in value.shape)
            words.append(f"--input={shape}{name_in_iree(value.dtype.name)}=@{folder}/x{number}")
        words += [f"--output=@{folder}/y{number}" for number in range(len(call["outputs"]))]
        run_command(commands / "iree-run-module", *words)
        results = []
        for number, (dtype, shape) in enumerate(call["outputs"]):
            data = Path(folder, f"y{number}").read_bytes()
            if dtype in ("int4", "uint4"):
                data = bytes(half for byte in data for half in (byte & 15, byte >> 4))[: int(np.prod(shape))]
            array = np.frombuffer(data, np.dtype(getattr(ml_dtypes, dtype, dtype)))
            # The file has no shape. Where the artifact's is symbolic, that of the expected output decides.
            results.append(array if None in shape else array.reshape(shape))
        return results


def name_in_iree(dtype):
    if dtype in NAMES_OF_IREE:
        return NAMES_OF_IREE[dtype]
    if dtype.startswith("float8"):
        return f"f8{dtype[7:].upper()}"
    return dtype.replace("uint", "ui").replace("int", "i").replace("uii", "ui").replace("float", "f")


def nibbles(value):
    """Return the bytes of an array; if its numbers have 4 bits, two of them are packed into each byte."""
    if value.dtype.name not in ("int4", "uint4"):
        return value.tobytes()
    halves = [byte & 15 for byte in value.tobytes()] + [0]
    return bytes(low | high << 4 for low, high in zip(halves[::2], halves[1::2], strict=False))


def run_command(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode < 0:
        os.kill(os.getpid(), -done.returncode)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])


# --- LiteRT -----------------------------------------------------------------------------------------------------------


def litert(call, arguments):
    """Convert a module to a LiteRT file, run that by the indices of its tensors, and return its outputs."""
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter
    from litert_converter.mlir import ir, passmanager
    from litert_converter.mlir._mlir_libs import converter_api_ext as converter
    from litert_converter.mlir.dialects import stablehlo

    if call["tokens"]:
        raise NotImplementedError("LiteRT has no tokens")
    arguments = [*platform_index(call), *arguments]
    context = ir.Context()
    converter.prepare_mlir_context(context)
    with context, tempfile.TemporaryDirectory() as folder:
        module = stablehlo.deserialize_portable_artifact(context, Path(call["module"]).read_bytes())
        for function in module.body.operations:
            if function.attributes["sym_name"].value == "main":
                taken, given = ([f"{letter}{n}" for n in range(len(types))] for letter, types in signature_of(function))
                converter.set_signature(
                    function.operation, signature_name="main", input_names=taken, output_names=given
                )
        config = converter.ConvertToTFLConfig()
        config.enable_x64 = True
        for name, value in (setting.split("=") for setting in settings()):
            setattr(config, name, {"true": True, "false": False}[value])
        converter.run_convert_to_tfl_passes(module, passmanager.PassManager(), config)
        try:
            data = converter.export_flatbuffer_to_bytes(module.operation)
        except TypeError:
            data = converter.export_flatbuffer_to_bytes(module)
        path = Path(folder, "model.tflite")
        path.write_bytes(data)
        model = Interpreter(str(path), num_threads=1)
    signature = model._get_full_signature_list()["main"]
    taken = {n: signature["inputs"][f"x{n}"] for n in range(len(arguments)) if f"x{n}" in signature["inputs"]}
    for number, index in taken.items():
        model.resize_tensor_input(index, arguments[number].shape)
    model.allocate_tensors()
    types = {detail["index"]: detail["dtype"] for detail in model.get_input_details()}
    for number, index in taken.items():
        value = arguments[number]
        is_platform = number == 0 and len(call["platforms"]) > 1
        model.set_tensor(index, value.astype(types[index]) if is_platform or value.dtype.name == "int4" else value)
    model.invoke()
    results = []
    for number, (dtype, _) in enumerate(call["outputs"]):
        value = np.array(model.get_tensor(signature["outputs"][f"y{number}"]))
        if dtype == "int4":
            import ml_dtypes

            value = value.astype(ml_dtypes.int4)
        results.append(value)
    return results


def signature_of(function):
    return ("x", function.type.inputs), ("y", function.type.results)


# --- jaxlib alone -----------------------------------------------------------------------------------------------------


def pjrt(call, arguments):
    """Call a module by jaxlib's PJRT client for the CPU, and return its outputs.

    The layouts that the module asks for are removed, since the arguments have none.
    """
    import types

    import numpy as np
    from jaxlib import _jax, xla_client
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy, stablehlo

    client = xla_client.make_cpu_client()
    with ir.Context() as context:
        sdy.register_dialect(context)
        module = stablehlo.deserialize_portable_artifact(context, Path(call["module"]).read_bytes())
        text = str(module)
        text = re.sub(r'mhlo\.layout_mode = "[^"]*"(, )?', "", text)
        code = ir.Module.parse(text).operation.get_asm(binary=False).encode()
    options = xla_client.CompileOptions()
    options.executable_build_options.use_shardy_partitioner = call["shardy"]
    device = client.local_devices()[0]
    program = client.compile_and_load(code, _jax.DeviceList((device,)), options)
    values = [*platform_index(call), *[np.zeros(0, np.bool_)] * call["tokens"], *arguments]
    if hasattr(client, "buffer_from_pyval"):
        buffers = [client.buffer_from_pyval(value, device) for value in values]
    else:
        _jax.SingleDeviceSharding._to_xla_hlo_sharding = lambda self, rank: xla_client.HloSharding.replicate()
        sharding = _jax.SingleDeviceSharding(device)
        buffers = []
        for value in values:
            aval = types.SimpleNamespace(shape=value.shape, dtype=value.dtype, weak_type=False)
            buffers.append(_jax.batched_device_put(aval, sharding, [value], [device], True, enable_x64=True))
    found = program.execute_sharded(buffers).disassemble_into_single_device_arrays()
    found = found[call["tokens"] :]
    return [np.asarray(shards[0]._single_device_array_to_np_array_did_copy()[0]) for shards in found]


def interpreter(call, arguments):
    """Call a module by StableHLO's reference interpreter, which takes and returns arrays as text of MLIR."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy, stablehlo

    if call["tokens"]:
        raise NotImplementedError("the interpreter's binding has no tokens")
    with ir.Context() as context, ir.Location.unknown():
        if hasattr(stablehlo, "register_interpreter_dialect"):
            stablehlo.register_interpreter_dialect(context)
        sdy.register_dialect(context)
        values = [attribute_of(value) for value in [*platform_index(call), *arguments]]
        module = stablehlo.deserialize_portable_artifact(context, Path(call["module"]).read_bytes())
        kinds = [dtype for dtype, _ in call["outputs"]]
        found = iter(stablehlo.eval_module(with_plain_results(module), values))
        results = []
        for kind in kinds:
            if kind.startswith("complex"):
                part = f"float{int(kind[7:]) // 2}"
                real, imaginary = (from_text(str(next(found)), part) for _ in range(2))
                results.append((real + 1j * imaginary).astype(kind))
            else:
                results.append(from_text(str(next(found)), kind))
        return results


def attribute_of(value):
    """Return an array as an MLIR attribute. A complex array is not parsed from text, which the binding cannot do."""
    import numpy as np
    from jaxlib.mlir import ir

    text = as_text(value)
    if not value.dtype.name.startswith("complex"):
        return ir.Attribute.parse(text)
    kind = ir.Type.parse(text.rpartition(" : ")[2])
    return ir.DenseElementsAttr.get(np.frombuffer(value.tobytes(), np.uint8), type=kind)


def with_plain_results(module):
    """Return the module with two results, real and imaginary part, in place of each complex result.

    The binding cannot return complex arrays.
    """
    from jaxlib.mlir import ir

    (main,) = (op for op in module.body.operations if op.operation.attributes["sym_name"].value == "main")
    takes, gives = ([str(kind) for kind in kinds] for kinds in (main.type.inputs, main.type.results))
    if not any("complex" in kind for kind in gives):
        return module
    arguments = ", ".join(f"%a{number}" for number in range(len(takes)))
    lines, names, kinds = [], [], []
    for number, kind in enumerate(gives):
        parts = ["real", "imag"] if "complex" in kind else [""]
        plain = re.sub(r"complex<(\w+)>", r"\1", kind)
        for part in parts:
            names.append(f"%{part}{number}" if part else f"%r#{number}")
            kinds.append(plain)
            if part:
                lines.append(f"{names[-1]} = stablehlo.{part} %r#{number} : ({kind}) -> {plain}")
    typed = ", ".join(f"%a{number}: {kind}" for number, kind in enumerate(takes))
    called = f"%r:{len(gives)} = func.call @inner({arguments}) : ({', '.join(takes)}) -> ({', '.join(gives)})"
    ending = f"return {', '.join(names)} : {', '.join(kinds)}"
    added = "\n".join([f"func.func public @main({typed}) -> ({', '.join(kinds)}) {{", called, *lines, ending, "}"])
    body, _, rest = str(module).replace("func.func public @main(", "func.func private @inner(").rpartition("}")
    return ir.Module.parse(f"{body}{added}\n}}{rest}")


def as_text(value):
    """Return an array as text of MLIR: its bits in hexadecimal, or booleans as words."""
    name = value.dtype.name
    family = f"complex<f{value.dtype.itemsize * 4}>" if name.startswith("complex") else ""
    short = name.replace("bfloat", "bf").replace("float", "f").replace("uint", "UI").replace("int", "i")
    element = "i1" if name == "bool" else family or re.sub("_(.*)", lambda m: m[1].upper(), short.replace("UI", "ui"))
    sizes = "".join(f"{size}x" for size in value.shape)
    kind = f"tensor<{sizes}{element}>"
    if not value.size:
        return f"dense<> : {kind}"
    if name == "bool":
        return f"dense<{str(value.tolist()).lower()}> : {kind}"
    data = value.tobytes()
    if name in ("int4", "uint4"):
        data = bytes(byte & 15 for byte in data)
    return f'dense<"0x{data.hex()}"> : {kind}'


def from_text(text, dtype):
    """Return the array that a text of MLIR stands for, with this dtype."""
    import ml_dtypes
    import numpy as np

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    body, form = re.fullmatch(r"dense<(.*)> : tensor<(.*)>", text, re.DOTALL).groups()
    shape = tuple(int(size) for size in re.findall(r"(\d+)x", form))
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), kind).reshape(shape)
    numbers = np.array([number_of(word, kind) for word in re.findall(r"[^\s,\[\]]+", body)]).astype(kind)
    return np.array(np.broadcast_to(numbers[0], shape)) if numbers.size == 1 else numbers.reshape(shape)


def number_of(word, kind):
    """Return the number that a word of MLIR's text stands for. NaN and infinities are written as hexadecimal bits."""
    import numpy as np

    word = word.strip()
    if word.startswith("0x") and kind.kind not in "iub":
        return np.array(int(word, 16), f"u{kind.itemsize}").view(kind)[()]
    if kind.kind == "b":
        return word == "true"
    return kind.type(float(word) if kind.kind not in "iu" else int(word, 0))


# --- one golden -------------------------------------------------------------------------------------------------------


def packed(value):
    import numpy as np

    return value.dtype.name, value.shape, np.ascontiguousarray(value).tobytes()


def unpacked(one):
    import ml_dtypes
    import numpy as np

    dtype, shape, data = one
    return np.frombuffer(data, np.dtype(getattr(ml_dtypes, dtype, dtype))).reshape(shape)


CALLS = {
    "tensorflow": tensorflow,
    "savedmodel": savedmodel,
    "iree": iree,
    "litert": litert,
    "pjrt": pjrt,
    "stablehlo": interpreter,
}


def main():
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
        return
    job = json.loads(Path(sys.argv[1]).read_text())
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for call in job["calls"]:
        try:
            leaves = read_inputs(call["leaves"])
            found = CALLS[job["runtime"]](call, [leaves[index] for index in call["kept"]])
            Path(call["results"]).write_bytes(pickle.dumps([packed(value) for value in found]))
            message = None
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        results.write(json.dumps(message) + "\n")
        results.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

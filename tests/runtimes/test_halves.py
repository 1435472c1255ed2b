"""The worker halves of runtimes: any interpreter of an environment can load them, without this project."""

import ast
import re
import sys
from pathlib import Path

import pytest

import export_core
from export_core.releases.runtimes import load_runtime

FOLDER = Path(export_core.__file__).parent / "runtimes"
HALVES = sorted(FOLDER.glob("*_worker.py"))
FILES = [path for path in sorted(FOLDER.glob("*.yaml")) if not path.stem.endswith("_releases")]
by_half = pytest.mark.parametrize("half", HALVES, ids=lambda path: path.stem)


def parsed(half: Path) -> ast.Module:
    """Read the file as CPython 3.10 does, the oldest one that an environment may have."""
    return ast.parse(half.read_text(encoding="utf-8"), feature_version=(3, 10))


@by_half
def test_a_runtimes_worker_file_loads_without_other_packages(half):
    imports = [node for node in parsed(half).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


@by_half
def test_a_runtimes_worker_file_imports_nothing_of_this_project(half):
    text = half.read_text(encoding="utf-8")
    assert "import export_core" not in text
    assert "from export_core" not in text


@by_half
def test_a_runtimes_worker_file_has_the_functions_warm_and_run(half):
    functions = {node.name: node for node in parsed(half).body if isinstance(node, ast.FunctionDef)}
    assert not functions["warm"].args.args
    assert [argument.arg for argument in functions["run"].args.args] == ["call", "leaves", "stage"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_runtime_file_is_complete_and_valid(path):
    runtime = load_runtime(path)
    assert runtime.name == path.stem
    assert runtime.half in HALVES
    assert all("{version}" in requirement for requirement in runtime.requirements)
    compile(runtime.check, str(path), "exec")
    for refusal in runtime.refusals:
        re.compile(refusal.message)


MESSAGES = [
    ("iree", "m.mlirbc:1:1: error: dialect 'sdy' does not implement the bytecode interface", "Shardy"),
    (
        "iree",
        "error: failed to legalize operation 'stablehlo.custom_call' that was explicitly marked illegal",
        "LAPACK",
    ),
    ("iree", "error: failed to legalize operation 'stablehlo.dynamic_iota' that was explicitly marked", "fixed shapes"),
    (
        "iree",
        "error: failed to legalize operation 'linalg.generic' that was explicitly marked illegal",
        "does not lower",
    ),
    ("iree", "error: unknown vhlo op code: 124", "newer than"),
    (
        "iree",
        "error: 'stream.tensor.sizeof' op failed to calculate total byte count: 'tensor<3xi4>' does not have integral "
        "number of total bytes",
        "an even size",
    ),
    ("iree", "iree-lld: error: undefined symbol: sin\nerror: failed to link executable and generate target", "float32"),
    ("pjrt", "NOT_FOUND: No FFI handler registered for lapack_spotrf_ffi on a platform Host", "a LAPACK call"),
    (
        "pjrt",
        "NOT_FOUND: No FFI handler registered for pytest_jaxexport.scale on a platform Host",
        "register its handler",
    ),
    ("pjrt", "INVALID_ARGUMENT: during context [hlo verifier]: Unbounded dynamism is disabled", "fixed shapes"),
    ("pjrt", "error: 'stablehlo.dynamic_iota' op can't be translated to XLA HLO", "fixed shapes"),
    ("pjrt", "UNIMPLEMENTED: HLO opcode `ragged-dot` is not supported by XLA:CPU ThunkEmitter", "for the CPU alone"),
    ("pjrt", "error: unregistered operation 'vhlo.custom_call_v2' found in dialect ('vhlo')", "newer than"),
    ("tensorflow", "XlaCallModuleOp with version 10 is not supported by this build. Must be <= 9", "convention"),
    ("tensorflow", "Cannot deserialize computation: loc(\"-\"): error: dialect 'sdy' does not implement", "Shardy"),
    ("tensorflow", "Cannot deserialize computation: unregistered operation 'vhlo.custom_call_v2'", "newer than"),
    ("tensorflow", "No FFI handler registered for lapack_spotrf_ffi on a platform Host", "LAPACK"),
    ("tensorflow", "XlaCallModule (No registered 'XlaCallModule' OpKernel for XLA_CPU_JIT devices", "a dtype"),
    ("litert", "failed to deserialize module loc(...): error: dialect 'sdy' does not implement the", "Shardy"),
    ("litert", "error: unregistered operation 'vhlo.custom_call_v2' found in dialect ('vhlo')", "newer than"),
    ("litert", "Failed to export flatbuffer: failed to legalize operation 'vhlo.custom_call_v1'", "LAPACK"),
    ("litert", "failed to legalize operation 'tfl.reverse_v2' that was explicitly marked illegal", "float32"),
    ("litert", "Failed to export flatbuffer: ", "a loop"),
    ("litert", "Didn't find op for builtin opcode 'STABLEHLO_SORT' version '1'", "no kernel"),
    ("litert", "num_inputs != subgraph->inputs().size()Node number 0 (STABLEHLO_CASE) failed to prepare.", "branches"),
    (
        "litert",
        "transpose_conv.cc:315 computed_input_height != SizeOfDimension(input, 1) (7 != 8)Node number 2 "
        "(TRANSPOSE_CONV) failed to prepare.",
        "padding VALID",
    ),
    ("litert", "Type INT4 is unsupported by op Cast.Node number 0 (CAST) failed to invoke.", "a dtype"),
    ("litert", "failed to delegate SUM node #0Node number 1 (TfLiteXNNPackDelegate) failed to prepare.", "fewer axes"),
    ("litert", "gather_nd index out of boundsNode number 4 (GATHER_ND) failed to invoke.", "jnp.clip"),
    (
        "litert",
        "error: 'arith.index_cast' op operand type 'tensor<2xi32>' and result type 'tensor<2xi64>' are cast "
        "incompatible",
        "fixed shapes",
    ),
    (
        "litert",
        "tflite/kernels/rfft2d.cc:121 IsPowerOfTwo(fft_length_data[1]) was not true.Node number 1 (RFFT2D) failed to "
        "prepare.",
        "powers of two",
    ),
    ("litert", "stablehlo_reduce_window.cc:877 unsupported reduction body.", "cumlogsumexp"),
    ("stablehlo", "LLVM ERROR: Unsupported op: %0 = sdy.sharding_constraint %arg0 <@empty_mesh, [{}]>", "Shardy"),
    ("stablehlo", "LLVM ERROR: Unsupported op: %2:2 = stablehlo.custom_call @lapack_spotrf_ffi(%1)", "a custom call"),
    ("stablehlo", "LLVM ERROR: Unsupported op: stablehlo.custom_call @shape_assertion(%c_0, %c)", "symbolic shapes"),
    ("stablehlo", "LLVM ERROR: Operation stablehlo.rng is unsupported at the moment.", "another reader"),
]


@pytest.mark.parametrize(("name", "message", "meaning"), MESSAGES)
def test_a_runtimes_message_is_recognized_as_a_refusal(name, message, meaning):
    refusal = load_runtime(FOLDER / f"{name}.yaml").refusal(message)
    assert refusal is not None
    assert meaning in refusal.meaning

"""The program that lists the custom calls jaxlib finds in mutants. A release's Python runs it, without this project.

`python audit_program.py` reads batches from stdin: the number of mutants, then for each a kind, a length and the bytes.
It prints a line for each mutant: the custom-call targets of the module that jaxlib parsed, null if jaxlib refused the
mutant, or the exit code if jaxlib died.
`python audit_program.py seeds FOLDER FILE...` writes modules again, in other versions and dialects.
"""

from __future__ import annotations

import json
import mmap
import os
import pathlib
import signal
import struct
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_EXPORT_DESERIALIZE_EXPIRED_VERSIONS"] = "1"

from jax import export
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

try:
    from jax._src.lib import _jax as extension
except ImportError:
    from jax._src.lib import xla_client

    extension = xla_client._xla

MODULE, ARTIFACT = b"m", b"a"
KNOWN = ("stablehlo", "func", "builtin", "sdy", "chlo", "shape")  # dialects in which only a custom call calls by name
SECONDS = 1.0  # of the processor, for one mutant
WALL_SECONDS = 60
CONTEXT_EVERY = 64  # mutants for which one context is used: making one takes longer than reading a small module


def deserialized(data):
    """Return a module, deserialized as jax.export does it. Before 0.10, jaxlib returned text, which is parsed here."""
    module = extension.mlir.deserialize_portable_artifact(data)
    return module if hasattr(module, "operation") else ir.Module.parse(module)


def targets_of(module):
    """Return the custom-call targets in a module, and the operations of dialects that are not in `KNOWN`."""
    targets = set()
    waiting = [module.operation]
    while waiting:
        op = waiting.pop()
        name = op.name
        if "custom_call" in name:
            targets.add(text_of(op.attributes["call_target_name"]) if "call_target_name" in op.attributes else name)
        elif name.partition(".")[0] not in KNOWN:
            targets.add(name)
        waiting += [child.operation for region in op.regions for block in region for child in block]
    return sorted(targets)


def text_of(attribute):
    try:
        return ir.StringAttr(attribute).value
    except UnicodeDecodeError:
        return "no UTF-8 text"  # which the audit never names, so it counts as missed


def found_in(kind, data):
    if kind == MODULE:
        return targets_of(deserialized(data))
    exported = export.deserialize(bytearray(data))
    targets = set()
    while True:
        targets.update(targets_of(deserialized(exported.mlir_module_serialized)))
        if not exported.has_vjp():
            return sorted(targets)
        exported = exported.vjp()


def answer(kind, data):
    try:
        return found_in(kind, data)
    except Exception:  # whatever jax raises for bytes that it does not accept
        return None


def answer_all(batch, start, done):
    """Print the answers to the mutants of a batch, from index `start` on.

    After each answer, the number of answers is written to `done`, shared memory that outlives this process.
    """
    context = None
    for index in range(start, len(batch)):
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        signal.alarm(WALL_SECONDS)
        if context is None or index % CONTEXT_EVERY == 0:
            context = mlir.make_ir_context()
            context.enable_multithreading(False)  # the fork has none of the parent's threads
        with context, ir.Location.unknown(context):
            line = json.dumps(answer(*batch[index]))
        os.write(1, line.encode() + b"\n")
        done[0:4] = struct.pack("<I", index + 1)


def serve():
    """Answer batches from stdin, each in a forked process, since jaxlib aborts on some mutants and hangs on others."""
    data = sys.stdin.buffer
    done = mmap.mmap(-1, 4)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while head := data.read(4):
        batch = []
        for _ in range(struct.unpack("<I", head)[0]):
            kind, length = struct.unpack("<cI", data.read(5))
            batch.append((kind, data.read(length)))
        done[0:4] = struct.pack("<I", 0)
        while (index := struct.unpack("<I", done[0:4])[0]) < len(batch):
            child = os.fork()
            if not child:
                try:
                    answer_all(batch, index, done)
                finally:
                    os._exit(0)
            status = os.waitpid(child, 0)[1]
            index = struct.unpack("<I", done[0:4])[0]
            if index < len(batch):
                os.write(1, b'{"died": %d}\n' % os.waitstatus_to_exitcode(status))
                done[0:4] = struct.pack("<I", index + 1)


def write_seeds(folder, names):
    """Write each module as a portable artifact of older StableHLO versions, and as StableHLO in each bytecode version.

    Args:
        folder: the folder to write into.
        names: the files of the modules.
    """
    for path in map(pathlib.Path, names):
        data = path.read_bytes()
        for version in ("0.9.0", "0.10.0", "0.12.0", "0.14.0", "0.17.0", "1.0.0", "1.9.0", "1.13.0", "1.18.0"):
            with mlir.make_ir_context():
                module = deserialized(data)
                try:
                    again = extension.mlir.serialize_portable_artifact(module, version, True)
                except Exception as error:  # an operation that the older version lacks
                    print(path.name, version, error, file=sys.stderr)
                else:
                    pathlib.Path(folder, f"{path.name}-vhlo{version}").write_bytes(again)
        for version in range(7):
            name = f"{path.name}-stablehlo{version}"
            with mlir.make_ir_context(), pathlib.Path(folder, name).open("wb") as file:
                deserialized(data).operation.write_bytecode(file, desired_version=version)


if __name__ == "__main__":
    if sys.argv[1:2] == ["seeds"]:
        write_seeds(sys.argv[2], sys.argv[3:])
    else:
        serve()

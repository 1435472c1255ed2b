"""The program that changes modules: serves one reduction, in the environment of the newest release.

``program.py`` reads one JSON object a line from stdin and answers each with one line on what stdout was at the start:

    {"module": PATH, "leading": 1, "tokens": 0}
    {"names": [NAME, …], "arguments": [SOURCE, …], "results": [SOURCE, …], "edits": {KIND: [EDIT, …]}}

    {"module": PATH, "leading": 1, "tokens": 0, "apply": [EDIT, …], "stablehlo": "1.13.3", "out": PATH, "text": PATH}
    {"names": [NAME, …], "arguments": [SOURCE, …], "results": [SOURCE, …]}   or   {"refused": "why"}

`leading` is how many arguments of main come before those of the envelope, `tokens` how many results do: they are never
touched. `names` are those of all operations. What an EDIT is, says edits.py. A SOURCE says what an argument or result
of the changed main is:

    {"was": 3}   the one with that number   or   {"operation": 7, "result": 0, "type": [[4, 8], "float32"]}   a value

Operations are numbered in the order in which they are written, those in regions too. Nothing is compiled and nothing is
run. The module is not believed: whatever MLIR says of it ends the request, and where MLIR dies, its user starts anew.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import edits  # type: ignore[import-not-found]  # beside this file, as the last one
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
from program_parts import Program, RefusedError  # type: ignore[import-not-found]

LONGEST_REASON = 400
LARGEST_TEXT = 64  # Elements of a constant that the text of a module shows.


def main() -> None:
    """Answer requests until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to stderr
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except RefusedError as refused:
            reply = {"refused": str(refused)[:LONGEST_REASON]}
        except Exception as error:  # whatever MLIR raises: this candidate is none
            reply = {"refused": f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]}
        print(json.dumps(reply), file=replies, flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what one request asks for."""
    with ir.Context() as context, ir.Location.unknown():
        for dialect in (stablehlo, chlo, sdy):
            dialect.register_dialect(context)
        module = stablehlo.deserialize_portable_artifact(context, Path(request["module"]).read_bytes())
        program = Program(module, request["leading"], request["tokens"])
        if "apply" not in request:
            description: dict[str, Any] = edits.described(program)
            return description
        program = edits.applied(program, request["apply"])
        program.clean()
        program.module.operation.verify()
        text = program.module.operation.get_asm(binary=True, large_elements_limit=LARGEST_TEXT)
        Path(request["text"]).write_bytes(text)
        described: dict[str, Any] = program.signature()
        # Last, since it changes the module. Mixed: what is not StableHLO stays as it is, for readers that parse it.
        mixed = any(operation.name.startswith("sdy.") for operation in program.operations())
        code = _jax.mlir.serialize_portable_artifact(program.module, request["stablehlo"], mixed)
        Path(request["out"]).write_bytes(code)
        return described


if __name__ == "__main__":
    main()

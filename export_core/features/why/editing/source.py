"""A reduced module as a program of JAX, with one line for each operation of main."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from literals import array_text, dtype_text, numpy_dtype  # type: ignore[import-not-found]  # beside this file, as these
from program_parts import Program, RefusedError, attributes  # type: ignore[import-not-found]
from source_lines import Line, kind_of  # type: ignore[import-not-found]

MOST_OPERATIONS = 100
"""A program with more of them is no easier to read than its module."""


def source_of(program: Program, inputs: Path) -> str:
    """The text of a program that jax traces to the types of a module.

    Args:
        program: the module.
        inputs: the arguments of main, an .npz. The text shows small ones, and loads others from a file of this name
            beside it.

    Raises:
        RefusedError: an operation has no line, or something is not in the operations.
    """
    _check_is_plain(program)
    arguments = list(program.body.arguments)[program.leading :]
    names = {value: f"x{number}" for number, value in enumerate(arguments)}
    body = [f"def function({', '.join(names.values())}):"]
    for operation in program.own_operations():
        given = [f"v{len(names) - len(arguments) + place}" for place in range(len(operation.results))]
        body.append(f"    {', '.join(given)}{' = ' * bool(given)}{Line(operation, names).expression()}")
        names |= zip(operation.results, given, strict=True)
    ends = [names[value] for value in program.end.operands]
    body += [f"    return {', '.join(ends) or '()'}", "", "", *_arguments(arguments, inputs), ""]
    body += ['if __name__ == "__main__":', "    print(jax.jit(function)(*ARGS))", ""]
    text = "\n".join((*_head("\n".join(body)), *body))
    _check(program, text, inputs)
    return text


def _head(body: str) -> list[str]:
    """The imports that a text needs, and 64 bits where it has such types."""
    imports = {"import jax": "", "import jax.numpy as jnp": "jnp.", "import numpy as np": "np."}
    imports["from jax import lax"] = "lax."
    head = ["from pathlib import Path", ""] if "Path(" in body else []
    head += [line for line, used in imports.items() if re.search(rf"\b{re.escape(used)}", body)]
    if re.search(r"\.(u?int64|float64|complex128)\b", body):
        head += ["", 'jax.config.update("jax_enable_x64", True)']
    return [*head, "", ""]


def _arguments(arguments: list[Any], inputs: Path) -> list[str]:
    """The lines of ARGS: arrays that are small or of equal elements as they are written, others from the .npz."""
    expressions = []
    with np.load(inputs) as archive:
        members = sorted(archive.files, key=lambda name: int(name.partition(".")[0]))
        for value, member in zip(arguments, members, strict=True):
            stored, dtype = archive[member], numpy_dtype(kind_of(value)[1])
            view = "" if stored.dtype == dtype else f".view({dtype_text(dtype.name)})"
            expressions.append(array_text(stored.view(dtype)) or f'inputs["{member}"]{view}')
    lines = ["ARGS = (", *(f"    {each}," for each in expressions), ")"]
    if not any(each.startswith("inputs[") for each in expressions):
        return lines
    return [f'with np.load(Path(__file__).with_name("{inputs.name}")) as inputs:', *(f"    {line}" for line in lines)]


def _check_is_plain(program: Program) -> None:
    """Raise `RefusedError` for what is not in the operations: several devices, shardings, effects; and for many."""
    own = attributes(program.module.operation)
    if any(str(own.get(f"mhlo.num_{kind}", 1)).split()[0] != "1" for kind in ("partitions", "replicas")):
        raise RefusedError("it runs on several devices")
    if len(program.own_operations()) > MOST_OPERATIONS:
        raise RefusedError(f"it has more than {MOST_OPERATIONS} operations")
    if any(list(value.uses) for value in list(program.body.arguments)[: program.leading]):
        raise RefusedError("its operations depend on the platform or on symbolic sizes")
    declared = attributes(program.main)
    for side in ("arg_attrs", "res_attrs"):
        for entry in (entry for each in ir.ArrayAttr(declared[side]) for entry in each) if side in declared else ():
            if entry.name not in ("jax.result_info", "jax.global_constant"):
                raise RefusedError(f"{entry.name} has no line of its own")


def _check(program: Program, text: str, inputs: Path) -> None:
    """Raise `RefusedError` where jax does not trace a text, or to other types."""
    import jax  # here only: edits do without

    jax.config.update("jax_enable_x64", False)  # as in a new process; the text may change it
    names: dict[str, Any] = {"__name__": "source", "__file__": str(inputs.with_name("source.py"))}
    try:
        exec(text, names)
        traced = jax.tree_util.tree_leaves(jax.eval_shape(names["function"], *names["ARGS"]))
    except Exception as error:  # whatever jax raises
        raise RefusedError(f"jax does not trace it: {type(error).__name__}: {error}") from error
    if [(each.shape, each.dtype.name) for each in traced] != [kind_of(value) for value in program.end.operands]:
        raise RefusedError("jax traces it to other types")

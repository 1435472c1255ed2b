"""The program that rewrites modules: runs in a process of its own, in the environment of the newest release.

``rewriting_program.py FOLDER`` reads job.json in the folder and the modules beside it (0.bc, 1.bc, …), and writes each
again (0.out, 1.out, …), then result.json:

    {"modules": 2, "stablehlo": "1.13.3", "shardy": true, "replace": ["lapack_spotrf_ffi"], "platform": "tpu",
     "plain": false}
    {"rewrites": ["…", …], "by": "0.12.0.1"}   or   {"refused": "why"}

Nothing is compiled and nothing is run. It imports nothing of this project; what it cannot rewrite, it refuses.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import shardy  # type: ignore[import-not-found]  # beside this file, as the next one
from jaxlib import _jax, version
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
from parts import NotRewritableError, attributes, operations  # type: ignore[import-not-found]

LONGEST_REASON = 400


def main(folder: Path) -> None:
    """Rewrite the modules in a folder, and write result.json there: what was rewritten, or why it was refused."""
    job = json.loads((folder / "job.json").read_text())
    done: Counter[str] = Counter()
    try:
        for number in range(job["modules"]):
            code = rewritten((folder / f"{number}.bc").read_bytes(), job, done)
            (folder / f"{number}.out").write_bytes(code)
        counts = [f"{what}: {count}" for what, count in done.items()]
        rewrites = [f"modules written for StableHLO {job['stablehlo']}", *counts]
        result = {"rewrites": rewrites, "by": version.__version__}
    except NotRewritableError as refused:
        result = {"refused": str(refused)[:LONGEST_REASON]}
    except Exception as error:  # a part of jaxlib that has changed: nothing is written
        result = {"refused": f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]}
    (folder / "result.json").write_text(json.dumps(result))


def rewritten(code: bytes, job: dict[str, Any], done: Counter[str]) -> bytes:
    """Return the bytecode of one module, rewritten as `job` says; `done` counts the rewrites by their description."""
    with ir.Context() as context, ir.Location.unknown():
        for dialect in (stablehlo, chlo, sdy):
            dialect.register_dialect(context)
        read = stablehlo.deserialize_portable_artifact
        module = attempt("the newest jaxlib does not read the module", read, context, code)
        if job["replace"]:
            import lapack  # type: ignore[import-not-found]  # only this needs jax

            done.update(lapack.replace_calls(module, job["replace"], job["platform"]))
        if not job["shardy"]:
            # Written and read once with its meshes, by which groups of devices are spelled out for old versions.
            module = attempt("the rewritten module cannot be read", read, context, written(module, job["stablehlo"]))
            done.update(shardy.rewrite_shardings(module))
        if job["plain"]:
            done.update(shardy.remove_sharding_calls(module))
        attempt("the rewritten module is not valid", module.operation.verify)
        return written(module, job["stablehlo"])


def written(module: Any, target: str) -> bytes:
    """Return a module as a portable artifact for the StableHLO version `target`. Changes the module."""
    # The names of all operations, and of all attributes of operations and of functions' arguments and results.
    names: set[str] = set()
    for operation in operations(module):
        own = attributes(operation)
        names |= {operation.name, *own}
        for field in ("arg_attrs", "res_attrs"):
            if field in own:
                names |= {named.name for one in ir.ArrayAttr(own[field]) for named in ir.DictAttr(one)}
    # Mixed: dialects other than VHLO stay as they are, for readers that parse them.
    mixed, write = any(name.startswith("sdy.") for name in names), _jax.mlir.serialize_portable_artifact
    code: bytes = attempt(f"the module cannot be written for StableHLO {target}", write, module, target, mixed)
    return code


def attempt(what: str, function: Any, *args: Any) -> Any:
    """Call a function of jaxlib and return its result.

    Raises `NotRewritableError`, with `what` as the beginning of its message, for any exception of the function.
    """
    try:
        return function(*args)
    except Exception as error:  # what it raises differs by release
        raise NotRewritableError(f"{what}: {' '.join(str(error).split())}") from error


if __name__ == "__main__":
    main(Path(sys.argv[1]))

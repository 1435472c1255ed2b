"""The program that tries artifacts in a release of jax. The release's Python runs it, without this project.

`python negative_program.py FOLDER FILE...` reads, calls and differentiates each file of the folder in a forked process,
and prints a line of JSON for each: the outcome, and a message. The outcome is the step that raised an error, `died`,
`no end` if the process timed out, or `accepted`. It is `other results` if the results differ from those of the first
accepted file whose name begins with the same letter.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import resource
import signal
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_EXPORT_DESERIALIZE_EXPIRED_VERSIONS"] = "1"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

SECONDS = 10
MEMORY = 16 << 30


def used(data, step):
    """Call an artifact and its derivative with arguments of ones; return dtype, shape and sum of each result.

    Args:
        data: the artifact.
        step: a function that is called with the name of each step before the step is done.
    """
    step("read")
    exported = export.deserialize(bytearray(data))
    leaves = [np.ones(aval.shape, aval.dtype) for aval in exported.in_avals]
    step("call")
    args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, leaves)
    results = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(jax.jit(exported.call)(*args, **kwargs))]
    if exported.has_vjp():
        step("derivative")
        derivative = exported.vjp()
        leaves = [np.ones(aval.shape, aval.dtype) for aval in derivative.in_avals]
        args, kwargs = jax.tree_util.tree_unflatten(derivative.in_tree, leaves)
        results += [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(derivative.call(*args, **kwargs))]
    return [[str(result.dtype), list(result.shape), float(result.sum())] for result in results]


def answer(path, write):
    """Use the artifact at `path`, and pass lines about its steps and its outcome to `write`."""
    now = ["read"]

    def step(name):
        now[0] = name
        write(_line(name, ""))

    # Up to 0.9.2 a process must have met linear algebra before it can run what it has not exported itself (jax#29610).
    jax.jit(jnp.linalg.cholesky).lower(np.eye(2, dtype="float32"))
    try:
        write(_line("accepted", used(path.read_bytes(), step)))
    except BaseException as error:  # whatever is raised is the answer
        lines = [line for line in str(error).splitlines() if line.strip()]
        kind = type(error).__qualname__
        kind = f"struct.{kind}" if type(error).__module__ == "struct" else kind
        write(_line(now[0], f"{kind}: {lines[0] if lines else ''}"[:300]))


def _line(*words):
    return json.dumps(words).encode() + b"\n"


def main(folder, names):
    first = {}
    for name in names:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(SECONDS)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            answer(pathlib.Path(folder, name), functools.partial(os.write, writing))
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            lines = pipe.read().splitlines()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stage, message = json.loads(lines[-1]) if lines else ["read", ""]
        if status < 0:
            ended = -status == signal.SIGALRM
            stage, message = (
                "no end" if ended else "died",
                f"{stage}, {SECONDS} s" if ended else f"{stage}, signal {-status}",
            )
        elif stage == "accepted":
            stage, message = ("accepted" if message == first.setdefault(name[0], message) else "other results"), ""
        print(json.dumps([stage, message]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

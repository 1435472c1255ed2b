"""Arrays on disk, and the calls of one cell: what the worker halves of runtimes share, beside the worker's program.

The program loads this file by its path, with NumPy, in every reader's environment: see program.py.
"""

from __future__ import annotations

import contextlib
import io
import time
import zipfile  # noqa: F401 - NumPy imports it with the first arrays

import numpy as np

from .program import (
    KINDS,
    STAGES,
    NotRefusedError,
    NotWrittenError,
    few_digits,
    full_message,
    is_machine_fault,
    peak_bytes,
)

with contextlib.suppress(ImportError):  # so that no cell has to import it; `load_arrays` says where it is missing
    import ml_dtypes  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .program import Say

FILE_NAMES = {"key<fry>": "key_fry", "key<rbg>": "key_rbg", "key<urbg>": "key_urbg", "float0": "float0"}
"""The names in files of the dtypes that NumPy and ml_dtypes lack."""


class NoDtypeError(TypeError):
    """An array of a dtype that the environment's ml_dtypes lacks, and with it the runtime that uses it."""


def run_calls(run: Callable[..., Any], request: dict[str, Any], say: Say) -> None:
    """Run the calls of a cell in order, report their stages, and write their outputs.

    An error before `run` has reported a stage is raised again, even for a call that must be refused: it means that the
    golden could not be passed to the runtime. An error for what the runtime lacks, such as a dtype, must come after a
    stage.

    Args:
        run: the runtime's own function, which runs one call of one module and returns its outputs, see program.py.
        request: the cell, a `Request` of protocol.py as JSON.
        say: reports a message about the cell, such as its stage.
    """
    for check in request["checks"]:
        say({"stage": "read", "check": check["name"]})
        stage = Stages(say)
        try:
            leaves = [data for _, data in load_arrays(check["inputs"])]
        except NoDtypeError:
            stage("deserialize")
            raise
        try:
            results = run(check["call"], leaves, stage)
        except Exception as error:
            if check["outputs"] is not None or stage.name == "read" or is_machine_fault(error):
                raise
            say({"stage": "run", "refusals": {check["name"]: full_message(error)}})
            continue
        stage("run")  # the half may not have reported it, and a cell can pass in this stage only
        if check["outputs"] is None:
            raise NotRefusedError
        if not check["name"]:
            times = {name: few_digits(stage.seconds[name]) for name in stage.seconds if name in KINDS}
            say({"timings": {**times, "peak_bytes": peak_bytes()}})
        save_results(check["outputs"], results, check["call"]["outputs"])


class Stages:
    """A callable that reports the next stage of a call, and measures the seconds of each stage in `seconds`.

    It is the argument `stage` of a worker half's `run`.
    """

    def __init__(self, say: Say) -> None:
        self.say = say
        self.name = "read"
        self.seconds: dict[str, float] = {}
        self.started = time.perf_counter()

    def __call__(self, name: str) -> None:
        if name not in STAGES[2:]:
            raise ValueError("expected one of %s as a stage, found %r" % (", ".join(STAGES[2:]), name))
        now = time.perf_counter()
        self.seconds[self.name] = self.seconds.get(self.name, 0.0) + now - self.started
        self.name, self.started = name, now
        self.say({"stage": name})


def load_arrays(path: str | io.BytesIO) -> list[tuple[str, Any]]:
    """Return the arrays of an .npz file in order, each as (dtype in JAX, array).

    A dtype that NumPy's format lacks is restored from the name that `save_arrays` gave the array. A PRNG key comes as
    its uint32 data, float0 as zeros of type bool. Raises `NoDtypeError` if this ml_dtypes lacks it.
    """
    import ml_dtypes  # here: an environment without it reads all other arrays

    arrays = []
    with np.load(path, allow_pickle=False) as archive:
        for name in sorted(archive.files, key=lambda name: int(name.partition(".")[0])):
            dtype, data = name.partition(".")[2], archive[name]
            if dtype not in FILE_NAMES.values() and dtype != data.dtype.name:
                if not hasattr(ml_dtypes, dtype):
                    raise NoDtypeError("ml_dtypes %s here has no dtype %s" % (ml_dtypes.__version__, dtype))
                data = data.view(getattr(ml_dtypes, dtype))
            arrays.append((dtype, data))
    return arrays


def save_arrays(path: str | io.BytesIO, arrays: list[tuple[str, Any]]) -> None:
    """Write arrays, each given as (dtype in JAX, array), in the form that `load_arrays` reads.

    Raises `NotWrittenError` if the file cannot be written.
    """
    members = {}
    for index, (dtype, data) in enumerate(arrays):
        if data.dtype.kind == "V" or data.dtype.isbuiltin == 2:  # a dtype that NumPy itself lacks
            data = data.view("u%d" % data.dtype.itemsize)
        members["%04d.%s" % (index, dtype)] = data
    try:
        np.savez(path, **members)
    except OSError as error:  # numpy raises some without an errno, by which `is_machine_fault` knows them
        raise NotWrittenError("the outputs could not be written: %s" % error) from error


def pass_arrays() -> None:
    """Write and read an array in memory to warm NumPy up, which takes 4 ms the first time."""
    file = io.BytesIO()
    save_arrays(file, [("float32", np.zeros(1, np.float32))])
    file.seek(0)
    load_arrays(file)


def save_results(path: str, results: Any, types: list[Any]) -> None:
    """Write the outputs of a call to `path`. Raises `ValueError` if their number differs from that of `types`.

    `types` are the expected outputs as `WireType` of protocol.py, which also name the dtypes that NumPy lacks: PRNG
    keys and float0.
    """
    arrays = [np.asarray(value) for value in results]
    if len(arrays) != len(types):
        raise ValueError("expected %d outputs, found %d" % (len(types), len(arrays)))
    names = [FILE_NAMES.get(dtype, data.dtype.name) for data, (_, _, dtype) in zip(arrays, types, strict=True)]
    save_arrays(path, list(zip(names, arrays, strict=True)))

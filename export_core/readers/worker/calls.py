"""Arrays on disk, and one cell of a runtime that runs calls: what the halves of runtimes share, beside the program.

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


def run_calls(run: Callable[..., Any], request: dict[str, Any], say: Say) -> None:
    """Run the calls of a cell in order.

    An error of a half before its first stage means that it cannot pass the golden.
    """
    for check in request["checks"]:
        say({"stage": "read", "check": check["name"]})
        leaves, stage = [data for _, data in load_arrays(check["inputs"])], Stages(say)
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
    """The `stage` of a call, which is told what comes next and measures how long the stages took, in seconds."""

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
    """Return stored arrays, each after its dtype, which .npy may lack: keys as data, float0 as zeros.

    `save_arrays` writes them.
    """
    import ml_dtypes  # here: an environment without it reads all other arrays

    arrays = []
    with np.load(path, allow_pickle=False) as archive:
        for name in sorted(archive.files, key=lambda name: int(name.partition(".")[0])):
            dtype, data = name.partition(".")[2], archive[name]
            if dtype not in FILE_NAMES.values() and dtype != data.dtype.name:
                data = data.view(getattr(ml_dtypes, dtype))
            arrays.append((dtype, data))
    return arrays


def save_arrays(path: str | io.BytesIO, arrays: list[tuple[str, Any]]) -> None:
    """Write arrays in the same form. Raises `NotWrittenError` where the disk refuses."""
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
    """Write an array and read it, in memory: the first time takes NumPy 4 ms, as long as a short cell of a runtime."""
    file = io.BytesIO()
    save_arrays(file, [("float32", np.zeros(1, np.float32))])
    file.seek(0)
    load_arrays(file)


def save_results(path: str, results: Any, types: list[Any]) -> None:
    """Write what a call returned.

    `types` are those that are expected, whose last names are those of jax, for keys and float0.
    """
    arrays = [np.asarray(value) for value in results]
    if len(arrays) != len(types):
        raise ValueError("expected %d outputs, found %d" % (len(types), len(arrays)))
    names = [FILE_NAMES.get(dtype, data.dtype.name) for data, (_, _, dtype) in zip(arrays, types, strict=True)]
    save_arrays(path, list(zip(names, arrays, strict=True)))

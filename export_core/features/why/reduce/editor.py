"""The client of the program that changes modules: one process, which is started anew where a module kills it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from export_core.base.processes import kill_group
from export_core.base.scratch import scratch_folder
from export_core.readers.environment import Environment

PROGRAM = Path(__file__).with_name("editing") / "program.py"
SECONDS = 60.0
"""How long one change may take."""
LONGEST_REPLY = 64 << 20

Edit = tuple[str | int, ...]
"""A change: see editing/edits.py."""


class Source(msgspec.Struct, frozen=True):
    """What an argument or result of a changed main is: the one with the number `was`, or a value of an operation.

    `type` is the shape and dtype of such a value, `text` how the operation is shown.
    """

    was: int | None = None
    operation: int = -1
    result: int = 0
    type: tuple[tuple[int, ...], str] | None = None
    text: str = ""


class ModuleSummary(msgspec.Struct, frozen=True):
    """A module as the program sees it; `edits` are the changes that may be tried, by kind."""

    names: tuple[str, ...] = ()
    arguments: tuple[Source, ...] = ()
    results: tuple[Source, ...] = ()
    edits: dict[str, tuple[Edit, ...]] = {}
    refused: str = ""


@dataclass(frozen=True)
class ModuleParts:
    """A module as it is edited: its bytes, and how many arguments and results of main come before the envelope's."""

    code: bytes
    stablehlo: str
    leading: int = 0
    tokens: int = 0


class ModuleEditor:
    """Changes modules in the environment of the newest release. A context manager; used from one thread."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._stack = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._scratch = self._stack.enter_context(scratch_folder())
        self._stack.callback(self._end)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def summary(self, module: ModuleParts) -> ModuleSummary:
        """What may be tried on a module."""
        return self._ask(module)

    def edited(self, module: ModuleParts, edits: Sequence[Edit]) -> tuple[ModuleSummary, bytes, bytes]:
        """A changed module: what it is, its bytes, its text. The first says where it was refused."""
        code, text = self._scratch / "changed.bc", self._scratch / "changed.mlir"
        summary = self._ask(module, apply=edits, stablehlo=module.stablehlo, out=str(code), text=str(text))
        return (summary, b"", b"") if summary.refused else (summary, code.read_bytes(), text.read_bytes())

    def _ask(self, module: ModuleParts, **wanted: object) -> ModuleSummary:
        path = self._scratch / "module.bc"
        path.write_bytes(module.code)
        request = {"module": str(path), "leading": module.leading, "tokens": module.tokens, **wanted}
        process = self._process = self._process or subprocess.Popen(
            [str(self._environment.python), "-B", str(PROGRAM)],  # -B: nothing is written beside the program
            env=dict(self._environment.variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin
        assert process.stdout
        watch = threading.Timer(SECONDS, kill_group, (process,))
        watch.start()
        try:
            process.stdin.write(msgspec.json.encode(request) + b"\n")
            process.stdin.flush()
            return msgspec.json.decode(process.stdout.readline(LONGEST_REPLY), type=ModuleSummary)
        except (OSError, msgspec.MsgspecError):
            # MLIR may abort where an edit makes a module that is none; the next one gets a new process.
            self._end()
            return ModuleSummary(refused="the process that changes modules died, or answered nothing that can be read")
        finally:
            watch.cancel()

    def _end(self) -> None:
        if process := self._process:
            self._process = None
            kill_group(process)
            process.communicate()

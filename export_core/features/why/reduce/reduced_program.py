"""The program that is reduced: a module in the simplest envelope that holds it, with the arrays that it is called with.

It has flat arguments and results, no argument that the module does not use, and no derivatives. Modules are changed in
one process, by the program in editing/; if a module kills that process, a new one is started.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import msgspec

from export_core.artifact import Artifact, Envelope
from export_core.artifact.envelope.encode import encode
from export_core.artifact.envelope.fields import Aval, ByteSpan, Sharding, Tree
from export_core.base.processes import ask, kill_group
from export_core.base.scratch import scratch_folder
from export_core.base.text import plural
from export_core.features.why.choice import WhyError
from export_core.goldens.arrays import Leaf, to_npz
from export_core.readers.environment import Environment

PROGRAM = Path(__file__).with_name("editing") / "editing_program.py"
SECONDS = 60.0  # How long one change may take.
LONGEST_REPLY = 64 << 20

Edit = tuple[str | int, ...]  # A change: see editing/editing_program.py.


class Source(msgspec.Struct, frozen=True):
    """The origin of an argument or result of a changed main: one of the original main, or a result of an operation."""

    was: int | None = None  # Its index among the original's arguments or results; None if it is not one of them.
    operation: int = -1  # Otherwise, the index of the operation that computed it in the original.
    result: int = 0  # Which result of that operation it is.
    type: tuple[tuple[int, ...], str] | None = None  # Its shape and dtype.
    text: str = ""  # The operation as text.


class ModuleSummary(msgspec.Struct, frozen=True):
    """A reply of the editing program: the operations of a module, and the arguments and results of its main.

    `edits` are the edits that may be tried, by kind. `refused` is why an edit was not made; empty if it was made.
    """

    names: tuple[str, ...] = ()
    arguments: tuple[Source, ...] = ()
    results: tuple[Source, ...] = ()
    edits: dict[str, tuple[Edit, ...]] = {}
    refused: str = ""


@dataclass(frozen=True)
class ModuleParts:
    """A module that can be edited: its bytecode, and its StableHLO version.

    `leading` arguments and `tokens` results of its main come before those that the envelope lists.
    """

    code: bytes
    stablehlo: str
    leading: int = 0
    tokens: int = 0


class ModuleEditor(ExitStack):
    """A context manager that edits StableHLO modules in a process, in the environment of the newest release.

    It must be used from one thread.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._scratch = self.enter_context(scratch_folder())
        self.callback(self._end)
        return self

    def edited(self, module: ModuleParts, edits: Sequence[Edit]) -> tuple[ModuleSummary, bytes, bytes]:
        """Return a module after these edits: its summary, its bytecode, and its text.

        If the edits are refused, the summary says why, and bytecode and text are empty.
        """
        code, text = self._scratch / "changed.bc", self._scratch / "changed.mlir"
        summary = self.summary(module, apply=edits, stablehlo=module.stablehlo, out=str(code), text=str(text))
        return (summary, b"", b"") if summary.refused else (summary, code.read_bytes(), text.read_bytes())

    def summary(self, module: ModuleParts, **wanted: object) -> ModuleSummary:
        """Return the summary of a module, or, if `wanted` requests edits, that of the changed module.

        `wanted` are further keys of the request to the editing program.
        """
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
        try:
            reply = ask(process, msgspec.json.encode(request), SECONDS, LONGEST_REPLY)
            return msgspec.json.decode(reply, type=ModuleSummary)
        except msgspec.MsgspecError:
            # MLIR may abort where an edit makes a module that is none; the next one gets a new process.
            self._end()
            return ModuleSummary(refused="the process that changes modules died, or its reply cannot be read")

    def _end(self) -> None:
        if process := self._process:
            self._process = None
            kill_group(process)
            process.communicate()


Values = Mapping[tuple[int, int], Leaf]  # Outputs of operations, by the number of the operation and of its result.


class NotEditedError(WhyError):
    """An error for a program in which the requested edits cannot be made."""


@dataclass(frozen=True)
class ReducedProgram:
    """A program under reduction: its envelope, its module and its inputs. The further fields are empty until an edit.

    `names` are the names of its operations in all functions and regions, without those that return. `results` are the
    origins of its results. `text` is its module as MLIR prints it, in bytes, since these are not always UTF-8.
    """

    envelope: Envelope
    module: ModuleParts
    inputs: tuple[Leaf, ...]
    names: tuple[str, ...] = ()
    results: tuple[Source, ...] = ()
    text: bytes = b""

    @cached_property
    def artifact(self) -> bytes:
        """The serialized `jax.export.Exported`."""
        code = self.module.code
        return encode(self.envelope._replace(module_source=ByteSpan(code, 0, len(code))))

    @cached_property
    def arrays(self) -> bytes:
        """The inputs, as the bytes of an .npz file."""
        return to_npz(self.inputs)

    @cached_property
    def key(self) -> bytes:
        """A digest of the artifact and the inputs: equal for equal programs."""
        return hashlib.sha256(self.artifact + self.arrays).digest()

    def edited(self, editor: ModuleEditor, edits: Sequence[Edit] = (), values: Values | None = None) -> ReducedProgram:
        """Return the program after these edits.

        `values` are known outputs of operations, for edits that turn such an output into an input of the program.

        Raises `NotEditedError` if the edits are refused, or if the value of a new input is not known.
        """
        summary, code, text = editor.edited(self.module, edits)
        if summary.refused:
            raise NotEditedError(summary.refused)
        base = self
        if edits and edits[0][0] == "size":
            _, size, smaller = edits[0]
            base = self._cut(int(size), int(smaller))
        envelope, values = base.envelope, values or {}
        inputs = []
        for source in summary.arguments:
            if source.was is not None:
                inputs.append(base.inputs[source.was])
            elif (source.operation, source.result) in values:
                inputs.append(values[source.operation, source.result])
            else:
                raise NotEditedError(f"the value of {source.text} is not known")
        is_placed = any(aval.memory_space for aval in (*envelope.in_avals, *envelope.out_avals))

        def typed(source: Source, avals: Sequence[Aval], shardings: Sequence[Sharding]) -> tuple[Aval, Sharding]:
            if source.was is not None:
                return avals[source.was], shardings[source.was]
            assert source.type is not None
            shape, dtype = source.type
            return Aval(dtype, shape, "device" if is_placed else None), None

        taken = [typed(source, envelope.in_avals, envelope.in_shardings) for source in summary.arguments]
        given = [typed(source, envelope.out_avals, envelope.out_shardings) for source in summary.results]
        changed = _flat(envelope, [aval for aval, _ in taken], [aval for aval, _ in given])._replace(
            in_shardings=tuple(sharding for _, sharding in taken),
            out_shardings=tuple(sharding for _, sharding in given),
        )
        module = replace(self.module, code=code)
        return ReducedProgram(changed, module, tuple(inputs), summary.names, summary.results, text)

    def _cut(self, size: int, smaller: int) -> ReducedProgram:
        """Return the program with its envelope and inputs cut from size `size` to `smaller` in each such dimension.

        The inputs lose their last elements. The module is not changed.
        """

        def cut(avals: Sequence[Aval]) -> tuple[Aval, ...]:
            return tuple(
                aval._replace(shape=tuple(smaller if dim == size else dim for dim in aval.shape)) for aval in avals
            )

        envelope = self.envelope._replace(in_avals=cut(self.envelope.in_avals), out_avals=cut(self.envelope.out_avals))
        inputs = []
        for leaf in self.inputs:
            kept = tuple(slice(smaller if dim == size else None) for dim in leaf.shape)
            inputs.append(Leaf(leaf.dtype, leaf.data[kept].copy()))
        return replace(self, envelope=envelope, inputs=tuple(inputs))


def flat_program(artifact: Artifact, order: int, inputs: Sequence[Leaf]) -> ReducedProgram:
    """Return the program of an artifact, or of its derivative of order `order`, with these flattened inputs.

    Raises:
        ArtifactError: The artifact cannot be read.
        WhyError: The artifact is a bare module or has no such derivative, or `main` does not fit envelope or inputs.
    """
    envelope = artifact.envelope
    for _ in range(order):
        envelope = envelope.vjp if envelope else None
    if envelope is None:
        raise WhyError(f"{artifact.name}: expected an artifact of jax.export with its derivatives, found none.")
    module = artifact.modules[order]
    main, version = module.main, module.stablehlo_version
    if main is None or version is None:
        raise WhyError(f"{artifact.name}: expected a StableHLO module with a function main, found none.")
    kept = envelope.module_kept_var_idx
    if len(inputs) != len(envelope.in_avals) or (kept and max(kept) >= len(inputs)):
        raise WhyError(f"{artifact.name}: expected {plural(len(envelope.in_avals), 'input')}, found {len(inputs)}.")
    leading, tokens = len(main.inputs) - len(kept), len(main.outputs) - len(envelope.out_avals)
    if leading < 0 or tokens < 0:
        raise WhyError(f"{artifact.name}: expected a main with the arguments and results of the envelope, found fewer.")
    flat = _flat(envelope, [envelope.in_avals[number] for number in kept], envelope.out_avals)._replace(
        in_shardings=tuple(envelope.in_shardings[number] for number in kept), vjp=None
    )
    parts = ModuleParts(module.serialized(), version, leading, tokens)
    return ReducedProgram(flat, parts, tuple(inputs[number] for number in kept))


def _flat(envelope: Envelope, in_avals: Sequence[Aval], out_avals: Sequence[Aval]) -> Envelope:
    """Return the envelope of a function that takes and returns flat tuples of these types."""
    leaf = Tree("leaf")
    return envelope._replace(
        in_tree=Tree("tuple", (Tree("tuple", (leaf,) * len(in_avals)), Tree("dict"))),
        in_avals=tuple(in_avals),
        out_tree=Tree("tuple", (leaf,) * len(out_avals)),
        out_avals=tuple(out_avals),
        module_kept_var_idx=tuple(range(len(in_avals))),
    )

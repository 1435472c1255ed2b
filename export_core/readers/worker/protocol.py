"""The messages between coordinator and worker: the request of a cell, its stages, its reply."""

from collections.abc import Callable
from concurrent.futures import Future
from enum import StrEnum
from typing import Literal, Protocol

import msgspec

from export_core.readers.environment import Environment
from export_core.readers.placement import Described

_SPREADING = 0x9E3779B1  # An odd number near the golden ratio of 32 bits, by which a multiplicative hash spreads bits.


class Stage(StrEnum):
    """How far a cell got, in order."""

    ENVIRONMENT = "environment"  # The reader's environment is found or built, and its worker starts.
    READ = "read"  # The golden's files are read, and the modules that it registers are imported.
    AUDIT = "audit"  # Its custom calls are checked, before anything is compiled.
    DESERIALIZE = "deserialize"  # The reader deserializes the artifact.
    MODULE = "module"  # jaxlib parses the StableHLO module.
    LOWER = "lower"  # The call is lowered for the platform.
    COMPILE = "compile"  # XLA compiles it.
    RUN = "run"  # The device runs it.
    COMPARE = "compare"  # The outputs are compared with those that the writer saw.


def moves(seed: int, ulps: int) -> tuple[int, ...]:
    """Return the argument that makes a rewritten call move its results by -`ulps` to `ulps` units in the last place.

    The call is one that moved_inside.py has rewritten. The argument has three numbers: one made from `seed`, by how
    many bits a 32-bit hash is shifted down, and 1 if anything moves, else 0. The remaining bits of the hash, plus one,
    halved, are the units. For one unit two bits remain, which give -1, 0, 0 or 1, so half of the values stay.

    Args:
        seed: chooses which values move which way.
        ulps: the farthest that a value moves, a power of two; 0 if nothing moves.
    """
    spread = (seed + 1) * _SPREADING | 1
    return (spread + (1 << 31)) % (1 << 32) - (1 << 31), 31 - ulps.bit_length(), int(ulps > 0)


class VariantRequest(msgspec.Struct, frozen=True):
    """A repetition of a call with other inputs or compiler options, with the paths of its files.

    If a variant raises, the error is reported and the next variant runs. Consecutive variants share a compiled program
    if their options are equal and both are rewritten, or neither is.
    """

    name: str
    inputs: str
    outputs: str
    options: dict[str, str | int | bool] = {}  # The options of XLA's compiler.
    numbers: tuple[int, ...] = ()  # From `moves`, for a call rewritten by moved_inside.py; empty: it is not rewritten.
    limited: bool = False
    """Whether the process is ended if the variant takes much longer than the call: with its inputs it may never end.
    All limited variants together have a time limit too; those that are left when it is used up fail."""


WireType = tuple[str, tuple[int | None, ...], str]
"""A value of a call: its dtype in NumPy, its shape with null for each symbolic size, and its dtype in jax.

The dtype in NumPy is uint32 for a key, whose data is passed, and bool for float0.
"""


class ModuleCall(msgspec.Struct, frozen=True):
    """The calling convention of a module of jax.export, spelled out for a runtime without jax.export."""

    module: str  # The path of a file with a StableHLO portable artifact.
    version: int  # The version of the calling convention.
    platforms: tuple[str, ...]
    kept: tuple[int, ...]  # The indexes of the arguments that the module's `main` takes.
    refine: bool  # Whether shapes must be refined before it is compiled: jax's `uses_global_constants`.
    tokens: int  # How many ordered effects it has, each with a token that is passed in and out.
    disabled_checks: tuple[str, ...]
    inputs: tuple[WireType, ...]  # All arguments in order, also those that main does not take.
    outputs: tuple[WireType, ...]
    devices: int
    x64: bool  # Whether jax exported it with 64-bit types enabled.
    shardy: bool  # Whether it was exported with Shardy's dialect for shardings.


Place = Literal["own", "whole", "spread", "given"]
"""How arguments are placed on devices: "own" as the artifact says, "whole" as a copy on each device, "spread" split
over all devices, "given" as the `specs` of a `CheckRequest` say."""


class CheckRequest(msgspec.Struct, frozen=True):
    """One call of the artifact, or of its derivative of the order `vjp`, with the paths of its files."""

    name: str
    vjp: int
    inputs: str
    outputs: str | None  # Where its outputs are written; None for a call that must be refused.
    mesh: tuple[tuple[str, int], ...]
    place: Place
    specs: tuple[tuple[str | tuple[str, ...] | None, ...] | None, ...] = ()
    """How each argument is sharded, if the artifact does not say it. If `place` is "given", they replace what the
    artifact says."""
    dump: str | None = None  # An existing folder into which the StableHLO and HLO modules are written as text.
    variants: tuple[VariantRequest, ...] = ()  # They run after all calls of the cell.
    call: ModuleCall | None = None  # The call for a runtime that does not read artifacts.


class Request(msgspec.Struct, frozen=True):
    """The request by which a worker runs a cell: the artifact, its calls, the platform and the limits."""

    artifact: str
    checks: tuple[CheckRequest, ...]  # The calls in order, the plain one first and with an empty name.
    register: tuple[tuple[str, str], ...]  # Names of Python modules, and the files from which they are imported.
    devices: int
    x64: bool
    timeout: float  # The limit in seconds of wall time, or of processor time.
    memory: int  # The limit in bytes of resident size; 0 is no limit.
    platform: str = "cpu"
    described: Described | None = None  # The device for which the cell is only compiled; None if it runs here.
    warm: bool = False  # Whether linear algebra is lowered first: else LAPACK calls crash in releases until 0.9.2.
    repeat: int = 0  # How many more times the plain call runs, only to measure its time.
    by_processor: bool = False  # Whether the timeout is in processor seconds, so that a busy machine ends no cell.


class Cost(msgspec.Struct, frozen=True, gc=False):
    """The compiler's figures for the plain call, the same in each compilation; null if a release does not report one.

    With several devices, they are about the program of one device. A CUDA plugin without a device reports no estimates.
    """

    temp_bytes: int | None = None  # Bytes of temporary buffers.
    argument_bytes: int | None = None  # Bytes of arguments.
    output_bytes: int | None = None  # Bytes of outputs.
    alias_bytes: int | None = None  # Bytes of outputs that share their buffer with an argument.
    code_bytes: int | None = None  # Bytes of generated code.
    flops: float | None = None
    """Floating-point operations, as XLA estimates them; null also where it cannot, for some custom calls."""
    transcendentals: float | None = None  # Evaluations of functions such as exp and sin, as XLA estimates them.
    bytes_accessed: float | None = None  # Bytes read and written, as XLA estimates them.
    instructions: int | None = None  # HLO instructions after optimization, in all computations.
    fusions: int | None = None  # Those of them that are fusions.


class Timings(msgspec.Struct, frozen=True, gc=False):
    """The wall time of each stage of the plain call in seconds, and the memory of its process.

    The time of a stage that was not run is null. Times are longer on a busy machine, and for the first cell in a new
    environment, which imports modules. A result from the cache of outcomes has the times of its original run.
    """

    deserialize: float | None = None  # To read the artifact.
    lower: float | None = None  # To trace and lower its call.
    compile: float | None = None  # To compile it.
    run: float | None = None  # To run it for the first time, until its outputs are there.
    runs: tuple[float, ...] = ()  # To run it again: one for each repetition that `--repeat` asked for.
    peak_bytes: int | None = None
    """The most resident memory that the process of the cell had, with what it shares with its worker."""


class Reply(msgspec.Struct, frozen=True):
    """What a worker answers about a cell: the stage and the check that were reached, and how its process ended."""

    stage: Stage  # The last one. An error in the stage "environment", which looks for devices, is not the artifact's.
    end: Literal["ok", "error", "fault", "crash", "timeout", "memory"]
    """How the process ended. A "fault" is a failure of the machine and says nothing about the artifact."""
    check: str = ""  # The name of the last call that began; empty for the plain call.
    refusals: dict[str, str] = {}  # The messages of the calls that had to be refused.
    failed: dict[str, str] = {}  # The messages of the variants that raised.
    variant: str = ""  # The name of the last variant that began.
    shardings: tuple[str, ...] = ()  # Which part of each output of the plain call was on which device of the mesh.
    shardings_of: dict[str, tuple[str, ...]] = {}  # The same of each further call on a mesh, by its name.
    device: str = ""  # The kind of device; empty on a CPU.
    driver: str = ""
    type: str | None = None
    message: str | None = None
    signal: int | None = None
    stderr: str = ""
    seconds: float = 0.0
    ran: float = 0.0  # How many seconds after the start of the cell its variants began.
    cost: Cost | None = None  # The cost of the plain call.
    timings: Timings | None = None  # The timings of the plain call.
    note: str = ""  # A note about the worker, and not about this cell.
    id: int = 0  # The number of the request, by which the client of a worker finds the cell that was answered.


class Worker(Protocol):
    """One reader on one platform, ready to run cells."""

    def submit(self, request: Request) -> Future[Reply]:
        """Start a cell in a cold process, and return the future of its reply.

        The future raises `WorkerDied` if the worker is lost.
        """

    def close(self) -> None:
        """End the worker and everything it started."""


WorkerStarter = Callable[[Environment, int], Worker]
"""A function that starts a worker in an environment, for at most the given number of cells at once.

It raises `WorkerDied` if the worker does not start.
"""

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
    """Return the numbers by which results move inside by -`ulps` to `ulps` units, a power of two or 0.

    They are for moved_inside.py: the seed, spread over its bits; by how many bits a hash of 32 is shifted down; and
    whether anything moves. Of the hash's rest one is added and half is taken: of two bits -1, 0, 0 and 1, of one
    nothing. Of one unit, half of the values stay.
    """
    spread = (seed + 1) * _SPREADING | 1
    return (spread + (1 << 31)) % (1 << 32) - (1 << 31), 31 - ulps.bit_length(), int(ulps > 0)


class VariantRequest(msgspec.Struct, frozen=True):
    """A call once more, in paths; one that raises is reported, and the next one follows.

    One with the options of the one before, and rewritten or not like it, runs the same program.
    """

    name: str
    inputs: str
    outputs: str
    options: dict[str, str | int | bool] = {}  # The options of XLA's compiler.
    numbers: tuple[int, ...] = ()  # How results are moved inside (see moved_inside.py); none: it is not rewritten.
    limited: bool = False
    """Whether its process ends if it takes much longer than the call: with such inputs it may never end. All of these
    together have a limit too, after which they fail."""


WireType = tuple[str, tuple[int | None, ...], str]
"""The dtype that a runtime is given or gives, the shape with null for each symbolic size, and the dtype in jax.

A key is given as its uint32 data, float0 as bool.
"""


class ModuleCall(msgspec.Struct, frozen=True):
    """How a module is called, for a runtime without jax.export: jax.export's calling convention in plain words."""

    module: str  # The path of a file with a StableHLO portable artifact.
    version: int  # The version of the calling convention.
    platforms: tuple[str, ...]
    kept: tuple[int, ...]  # Which arguments main takes, by index.
    refine: bool  # Whether shapes must be refined before it is compiled: jax's `uses_global_constants`.
    tokens: int  # How many ordered effects it has, each with a token that is passed in and out.
    disabled_checks: tuple[str, ...]
    inputs: tuple[WireType, ...]  # All arguments in order, also those that main does not take.
    outputs: tuple[WireType, ...]
    devices: int
    x64: bool  # Whether jax exported it with 64-bit types enabled.
    shardy: bool  # Whether it was exported with Shardy's dialect for shardings.


Place = Literal["own", "whole", "spread", "given"]
"""Where arguments are: as the artifact wants them, whole on each device, split over all, or as `specs` says."""


class CheckRequest(msgspec.Struct, frozen=True):
    """One call of the artifact, or of its derivative of the order `vjp`, in paths."""

    name: str
    vjp: int
    inputs: str
    outputs: str | None  # Without any, the call must be refused.
    mesh: tuple[tuple[str, int], ...]
    place: Place
    specs: tuple[tuple[str | tuple[str, ...] | None, ...] | None, ...] = ()
    """How each argument is sharded: where the artifact does not say it, or whatever it says if `place` is "given"."""
    dump: str | None = None  # A folder that exists, for the modules as text.
    variants: tuple[VariantRequest, ...] = ()  # These run after all calls.
    call: ModuleCall | None = None  # The call for a runtime that does not read artifacts.


class Request(msgspec.Struct, frozen=True):
    """A cell as its worker gets it."""

    artifact: str
    checks: tuple[CheckRequest, ...]  # The calls in order, the plain one first and with an empty name.
    register: tuple[tuple[str, str], ...]  # Names of modules, and the files they are imported from.
    devices: int
    x64: bool
    timeout: float  # The limit in seconds of wall time, or of processor time.
    memory: int  # The limit in bytes of resident size; 0 is no limit.
    platform: str = "cpu"
    described: Described | None = None  # The cell ends when it is compiled for such a device; None runs it here.
    warm: bool = False  # In a process that has traced linear algebra: without, releases until 0.9.2 crash in LAPACK.
    repeat: int = 0  # How many more times the plain call runs, for its time alone.
    by_processor: bool = False  # Whether the timeout is in processor seconds, so that a busy machine ends no cell.


class Cost(msgspec.Struct, frozen=True, gc=False):
    """What the compiler says that the plain call needs: the same each time. Null where a release or platform is silent.

    With several devices, it is about the program of one device. A CUDA plugin without a device estimates nothing.
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
    """How long the plain call took, in seconds of wall time, and the memory of its process. They vary.

    Null for what was not done. A busy machine makes them longer, and so does the first cell in a new environment, which
    imports modules. A result from the cache of outcomes has the times of the run that it comes from.
    """

    deserialize: float | None = None  # To read the artifact.
    lower: float | None = None  # To trace and lower its call.
    compile: float | None = None  # To compile it.
    run: float | None = None  # To run it for the first time, until its outputs are there.
    runs: tuple[float, ...] = ()  # To run it again: one for each repetition that `--repeat` asked for.
    peak_bytes: int | None = None
    """The most resident memory that the process of the cell had, with what it shares with its worker."""


class Reply(msgspec.Struct, frozen=True):
    """What a worker answers: the stage and the check reached, and how the process ended."""

    stage: Stage  # An error in the stage "environment", which looks for devices, is no fault of the artifact.
    end: Literal["ok", "error", "fault", "crash", "timeout", "memory"]
    """A "fault" is one of the machine: it says nothing about the artifact."""
    check: str = ""
    refusals: dict[str, str] = {}  # The messages of the calls that had to be refused.
    failed: dict[str, str] = {}  # The messages of the variants that raised.
    variant: str = ""  # The last one that began.
    shardings: tuple[str, ...] = ()  # Where the outputs of the plain call were.
    shardings_of: dict[str, tuple[str, ...]] = {}  # Where the outputs of each further call on a mesh were.
    device: str = ""  # The kind of device; empty on a CPU.
    driver: str = ""
    type: str | None = None
    message: str | None = None
    signal: int | None = None
    stderr: str = ""
    seconds: float = 0.0
    ran: float = 0.0  # After how many seconds its variants began.
    cost: Cost | None = None  # The cost of the plain call.
    timings: Timings | None = None  # The timings of the plain call.
    note: str = ""  # About the worker, and not about this cell.
    id: int = 0  # The number of its request, of a worker that runs several cells.


class Worker(Protocol):
    """One reader on one platform, ready to run cells."""

    def submit(self, request: Request) -> Future[Reply]:
        """Run a cell in a cold process. The future raises `WorkerDied` when the worker is lost."""

    def close(self) -> None:
        """End the worker and everything it started."""


WorkerStarter = Callable[[Environment, int], Worker]
"""A function that starts a worker for up to so many cells at once.

Raises `WorkerDied` when it does not start.
"""

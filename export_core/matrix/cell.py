"""A cell, the unit of work, and what can happen to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from export_core.goldens import Golden
from export_core.numbers.compare import Difference
from export_core.readers.placement import Mode, Placement, Target
from export_core.readers.worker.protocol import Cost, Stage, Timings
from export_core.releases import Release


class Verdict(StrEnum):
    """What happened."""

    PASS = "pass"
    """It ran, and its outputs are those that the writer saw, within the tolerance."""
    COMPILED = "compiled"
    """It was compiled for a described device, and not run. Never called a pass."""
    CONVERTED = "converted"
    """It works as `pass` or `compiled` do, but what the reader took is an artifact that `jaxexport convert` made."""
    NUMERICS = "numerics"
    """It ran, and gave other numbers than the writer saw."""
    REFUSED = "refused"
    """The reader refused it, by a message that this release is known to use."""
    ERROR = "error"
    """The reader raised another error."""
    CRASH = "crash"
    """Its process died by a signal."""
    TIMEOUT = "timeout"
    """It took longer than the time limit of a cell."""
    NOT_RUN = "not_run"
    """It was not run, for a reason that says nothing about the artifact, such as a full disk."""

    @property
    def works(self) -> bool:
        """Whether the cell works, as far as it was asked to."""
        return self in (Verdict.PASS, Verdict.COMPILED, Verdict.CONVERTED)

    @property
    def is_compared(self) -> bool:
        """Whether the outputs of the cell were compared."""
        return self in (Verdict.PASS, Verdict.CONVERTED, Verdict.NUMERICS)

    @property
    def fails(self) -> bool:
        """Whether the cell was run and does not work."""
        return not self.works and self is not Verdict.NOT_RUN


class CellKey(NamedTuple):
    """The name of a cell, the same in every run: its golden, the reader's jaxlib and jax, the platform."""

    golden: str
    jaxlib: str
    jax: str
    platform: str

    def __str__(self) -> str:
        return f"{self.golden} in {self.jaxlib}-jax{self.jax} on {self.platform}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One golden, in one reader, on one platform.

    `target` is what it is compiled for where the platform is missing; None on a CPU. `promised`: its reader is inside
    the window of its writer. `deployed` are the names of the policy's places in which it has to run.
    """

    golden: Golden
    reader: Release
    platform: str
    mode: Mode = Mode.RUN
    target: Target | None = None
    promised: bool = False
    deployed: tuple[str, ...] = ()

    @property
    def decides(self) -> bool:
        """Whether the gate depends on it: a replay runs such cells first."""
        return self.promised or bool(self.deployed)

    @property
    def key(self) -> CellKey:
        """Unique in a plan."""
        return CellKey(self.golden.id, self.reader.jaxlib, self.reader.jax, self.platform)

    @property
    def placement(self) -> Placement:
        """What its environment and its worker are for."""
        return Placement(self.reader, self.platform, self.mode, self.target)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to a cell, not yet judged.

    `message` is one line or more for a person; `stderr` the end of what native libraries printed; `signal` the number
    of the signal that ended the process; `difference` the numbers, where outputs were compared; `seconds` of wall
    time. `flaky` says which other verdict the same content had the last time that it ran, and when; it is empty where
    the verdict was this one, or the content never ran. `device` is the kind of device that the cell ran on or was
    compiled for, `driver` what drove it: both are empty on a CPU. `outputs` is a digest of the bits of all outputs,
    empty where none were compared; `as_written` says whether they are the bits that the golden's writer saw. `cost` and
    `timings` are None where nothing was compiled, and where the reader does not say them.
    """

    cell: Cell
    stage: Stage
    verdict: Verdict
    message: str = ""
    signal: int | None = None
    stderr: str = ""
    difference: Difference | None = None
    seconds: float = 0.0
    flaky: str = ""
    device: str = ""
    driver: str = ""
    outputs: str = ""
    as_written: bool = False
    cost: Cost | None = None
    timings: Timings | None = None

    @property
    def mode(self) -> Mode:
        """How much of the cell was done."""
        return self.cell.mode

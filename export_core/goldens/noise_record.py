"""How the noise of a golden was measured, as golden.yaml says it."""

from __future__ import annotations

import msgspec


class UndecidedOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An output with elements that cannot tell right from wrong: their noise is large beside its largest number."""

    elements: int
    """How many elements."""
    of: int
    """How many elements the output has."""
    noise: float
    """The largest noise in the output."""
    largest: float
    """The largest finite magnitude in the output."""
    leaf: str = ""
    """Its place in the tree of the results, such as `result['loss']`; of a derivative, by what."""


class NoiseRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the noise of a golden was measured."""

    jaxlib: str
    """The release that measured it: the writer's own, unless its environment could not be built."""
    instruction_set: str
    """That of its processor, as XLA calls it."""
    moved: int
    """The number of runs with inputs moved by up to one unit in the last place; 0 without floating-point inputs."""
    compiled: tuple[str, ...]
    """The runs with other options of the compiler."""
    failed: dict[str, str] = {}
    """Runs that gave nothing, with the reason."""
    inside: int = 0
    """The number of runs in which what is rounded inside the program was moved too; 0 where nothing is rounded, and
    where `failed` says why it could not be: then the noise knows inputs and compilations only."""
    amplified: int = 0
    """The number of such runs with moves of up to 64 units, by which elements that jump are found."""
    kernel: str = ""
    """The kernel of OpenBLAS (`OPENBLAS_CORETYPE`) of one more run, in a process of its own; empty where none was made:
    nothing calls LAPACK, or the processor can run no other kernel."""
    narrowest_float: str = ""
    """The float type of the fewest significant bits in the module."""
    undecided: dict[str, tuple[int, int]] = {}
    """Of goldens by older versions: by call and output (`vjp1/0`), how many elements have noise above a tenth
    of the largest number that goes in or comes out of the call, of how many."""
    unstable: dict[str, int] = {}
    """By call and output: how many elements had to be equal and were not."""
    jumping: dict[str, tuple[int, int]] = {}
    """By call and output: how many elements jump when last bits change, as where one chooses others, of how many."""
    undecided_outputs: dict[str, UndecidedOutput] | None = None
    """By call and output: those with elements whose noise is above a tenth of the largest number in that output; null
    where `undecided` says it."""

    def moved_inside(self, call: str = "") -> bool:
        """Whether what is rounded inside the program of a call was moved."""
        return self.inside > 0 and f"{call}/inside".removeprefix("/") not in self.failed

"""How the noise of a golden was measured, as golden.yaml says it."""

from __future__ import annotations

import msgspec


class NoiseRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the noise of a golden was measured."""

    jaxlib: str
    """The release that measured it: the writer's own, unless its environment could not be built."""
    instruction_set: str
    """That of its processor, as XLA calls it."""
    moved: int
    """The number of runs with inputs moved by up to one unit in the last place."""
    compiled: tuple[str, ...]
    """The runs with other options of the compiler."""
    failed: dict[str, str] = {}
    """Runs that gave nothing, with the reason."""
    narrowest_float: str = ""
    """The float type of the fewest significant bits in the module."""
    undecided: dict[str, tuple[int, int]] = {}
    """By call and output (`vjp1/0`): how many elements have noise so large that they cannot tell right from wrong, of
    how many."""
    unstable: dict[str, int] = {}
    """By call and output: how many elements had to be equal and were not."""

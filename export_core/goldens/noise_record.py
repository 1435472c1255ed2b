"""How the noise of a golden was measured, as golden.yaml says it."""

from __future__ import annotations

import msgspec


class NoiseRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the noise of a golden was measured.

    `jaxlib` ran it, the writer's own unless its environment could not be built; `instruction_set` is that of its
    processor, as XLA calls it. `moved` is the number of runs with inputs moved by up to one unit in the last place,
    `compiled` names those with other options of the compiler, and `failed` says why others gave nothing.
    `narrowest_float` is the float type of the fewest significant bits in the module. `undecided` counts, by call and
    output (``vjp1/0``), elements whose noise is so large that they cannot tell right from wrong, of how many;
    `unstable` those of outputs that must be equal and were not.
    """

    jaxlib: str
    instruction_set: str
    moved: int
    compiled: tuple[str, ...]
    failed: dict[str, str] = {}
    narrowest_float: str = ""
    undecided: dict[str, tuple[int, int]] = {}
    unstable: dict[str, int] = {}

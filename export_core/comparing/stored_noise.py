"""The noise that a golden brings along: what follows from it, and whether golden.yaml says the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from export_core.artifact.float_types import narrowest_float
from export_core.comparing.noise import count_undecided, scale_of
from export_core.goldens import Check, Comparison, Golden, GoldenError
from export_core.goldens.arrays import from_npz
from export_core.goldens.noise import Noise
from export_core.goldens.store import INPUTS, OUTPUTS

Undecided = dict[str, tuple[int, int]]


def undecided_counts(golden: Golden, noise: Mapping[str, Noise]) -> Undecided:
    """How many elements cannot tell right from wrong, of how many, by call and output: ``vjp1/0``.

    Args:
        golden: whose stored inputs and outputs say what is large.
        noise: for each file of outputs, as noise.npz has it. It is rounded there, so that what was measured would
            give other counts.
    """
    # Of calls that must have the same outputs, the first one stands for all.
    calls: dict[str, Check] = {OUTPUTS: Check("", inputs=INPUTS, outputs=OUTPUTS)}
    for check in golden.manifest.checks:
        if check.outputs:
            calls.setdefault(check.outputs, check)
    counts: Undecided = {}
    for file, noises in noise.items():
        check = calls[file]
        if golden.manifest.comparison == Comparison() or check.vjp:
            scale = scale_of((*from_npz(golden.folder / (check.inputs or INPUTS)), *from_npz(golden.folder / file)))
            # Factors that turn with every kernel are compared by what they must satisfy, whatever their noise.
            factors = {output for group in golden.factors for output in group.outputs} if not check.vjp else ()
            for number, own in enumerate(noises):
                if own is not None and number not in factors:
                    counts[f"{check.name}/{number}".removeprefix("/")] = (count_undecided(own, scale), own.size)
    return counts


def proves_nothing(golden: Golden, undecided: Undecided) -> bool:
    """Whether half of the elements of every output cannot tell right from wrong: no wrong number would be seen."""
    files = {OUTPUTS, *(check.outputs for check in golden.manifest.checks if check.outputs)}
    outputs = sum(leaf.data.size > 0 for file in files for leaf in from_npz(golden.folder / file))
    return 0 < sum(2 * count >= size > 0 for count, size in undecided.values()) == outputs


def check_noise(goldens: Iterable[Golden]) -> None:
    """Raise `GoldenError` naming all goldens whose golden.yaml and noise.npz contradict each other or the artifact."""
    problems = [
        f"{golden.folder}: {problem} Measure its noise anew: jaxexport goldens noise --again {shlex.quote(golden.id)}"
        for golden in goldens
        for problem in _problems(golden)
    ]
    if problems:
        raise GoldenError("\n".join(problems))


def _problems(golden: Golden) -> Sequence[str]:
    record = golden.manifest.noise
    if record is None:
        return []
    try:
        noise = golden.noise()
    except GoldenError as error:
        return [str(error)]
    found = {
        "undecided": (
            record.undecided,
            {name: counts for name, counts in undecided_counts(golden, noise).items() if counts[0]},
        ),
        "narrowest_float": (record.narrowest_float, narrowest_float(golden.read_artifact())),
    }
    return [
        f"noise.{field}: expected {follows!r}, as its files have it, found {stated!r}."
        for field, (stated, follows) in found.items()
        if stated != follows
    ]

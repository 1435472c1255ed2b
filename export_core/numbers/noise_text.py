"""What the noise of a golden means for a person: what was measured, and which outputs cannot tell right from wrong."""

from __future__ import annotations

from collections.abc import Iterable

from export_core.base.phrases import plural
from export_core.goldens import Golden, GoldenError
from export_core.goldens.manifest import NoiseRecord
from export_core.numbers.stored_noise import Jumping, Undecided, noise_on_disk

WHAT_TO_DO = (
    "These numbers move by more than a tenth of the output's largest when inputs move by one unit in the last place or "
    "the compiler rounds in another order. A difference of large numbers: scale or centre the inputs, use another "
    "formula, or float64. A chaotic function: export fewer steps. A zero that is nothing but rounding, such as the "
    "gradient of a bias that cancels: nothing, if other outputs show what is computed; else return one that does. Or "
    "say what is to be compared: compare='shape', or a tolerance or comparator of your own, in the marker or in the "
    "policy's `numbers`."
)
"""Why an output cannot tell right from wrong, and what its author can do."""

_MOST = 4
"""Outputs of a golden that are named."""


def proves_nothing_text(record: NoiseRecord) -> str:
    """Why a golden is refused of which no output can tell right from wrong, and what to do."""
    return f"the numbers of this golden would prove nothing: {'; '.join(_recorded(record))}. {WHAT_TO_DO}"


def noise_text(record: NoiseRecord) -> str:
    """In a line: how the noise was measured, and what it shows."""
    parts = [
        f"noise by jaxlib {record.jaxlib}: {record.moved} moved inputs, {record.inside + record.amplified} moved inside"
    ]
    if record.failed:
        parts.append(f"{plural(len(record.failed), 'kind')} of runs failed, as golden.yaml says")
    if knows_inputs_only(record):
        parts.append("the noise knows inputs only: what is rounded inside was not moved")
    return "; ".join([*parts, *outputs_to_name(record)])


def knows_inputs_only(record: NoiseRecord) -> bool:
    """Whether what is rounded inside some call could not be moved, or was not by an older version."""
    kinds = {name.rpartition("/")[2] for name in record.failed}
    return "inside" in kinds or (not record.inside and bool(record.compiled or {"inside 0", "unoptimized"} & kinds))


def outputs_to_name(record: NoiseRecord) -> list[str]:
    """What a writer must know of the outputs: some show nothing, or may not be equal in another release."""
    return [
        *_recorded(record),
        *_jumping(record.jumping),
        *(
            f"output {name}: {plural(count, 'element')} must be equal, and are not in all runs"
            for name, count in record.unstable.items()
        ),
    ]


def undecided_in(goldens: Iterable[Golden]) -> list[str]:
    """The outputs of these goldens that cannot tell right from wrong, wholly or where they jump, each in a line.

    They are counted in the noise and the outputs that the goldens have, whatever golden.yaml says of them.
    """
    return [f"{golden.id}: {text}" for golden in goldens if golden.manifest.noise for text in _on_disk(golden)]


def _on_disk(golden: Golden) -> list[str]:
    try:
        undecided, jumping = noise_on_disk(golden)
    except GoldenError as error:
        return [f"its noise cannot be read: {error}"]
    return [*_undecided(undecided), *_jumping(jumping)]


def _jumping(jumping: Jumping) -> list[str]:
    return [
        f"output {name}: {count} of {plural(total, 'element')} jump: one last bit chooses others"
        for name, (count, total) in jumping.items()
    ]


def _recorded(record: NoiseRecord) -> list[str]:
    by_older_version = [_counted(name, *counts) for name, counts in record.undecided.items()]
    return [*by_older_version, *_undecided(record.undecided_outputs or {})]


def _undecided(outputs: Undecided) -> list[str]:
    texts = [
        f"{_counted(f'{name} ({output.leaf})', output.elements, output.of)}: its largest number is "
        f"{output.largest:.3g}, its noise up to {output.noise:.3g}"
        for name, output in outputs.items()
    ]
    more = len(texts) - _MOST
    return [*texts[:_MOST], f"and {plural(more, 'more output')}, in golden.yaml"] if more > 0 else texts


def _counted(name: str, count: int, total: int) -> str:
    return f"output {name}: {count} of {plural(total, 'element')} cannot tell right from wrong"

"""What the noise of a golden means for a person: what was measured, and which outputs cannot tell right from wrong."""

from __future__ import annotations

from collections.abc import Mapping

from export_core.goldens.noise_record import NoiseRecord
from export_core.phrases import plural

PROVES_NOTHING = (
    "the numbers of this golden would prove nothing: its outputs move by more than a tenth of the largest number when "
    "inputs move by one unit in the last place or the compiler rounds in another order, as those of a chaotic function "
    "do. Export fewer steps, or a smoother function; or say what is to be compared: compare='shape', or a tolerance or "
    "comparator of your own, in the marker or in the policy's `numbers`."
)


def noise_text(record: NoiseRecord) -> str:
    """In a line: how the noise was measured, and what it shows."""
    runs = (
        f"noise by jaxlib {record.jaxlib}: {record.moved} moved inputs, {plural(len(record.compiled), 'compilation')}"
    )
    parts = [runs]
    if record.failed:
        parts.append(f"{plural(len(record.failed), 'variant')} failed")
    return "; ".join([*parts, *outputs_to_name(record)])


def outputs_to_name(record: NoiseRecord) -> list[str]:
    """What a writer must know of the outputs: some show nothing, or may not be equal in another release."""
    return [
        *_named("cannot tell right from wrong", record.undecided),
        *_named("must be equal, and are not in all runs", record.unstable),
    ]


def _named(meaning: str, counts: Mapping[str, int]) -> list[str]:
    return [f"output {name}: {plural(count, 'element')} {meaning}" for name, count in counts.items()]

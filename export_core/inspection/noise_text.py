"""What the noise of a golden means for a person: what was measured, and which outputs cannot tell right from wrong."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from export_core.goldens import Golden
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
        *(
            f"output {name}: {count} of {plural(total, 'element')} cannot tell right from wrong"
            for name, (count, total) in record.undecided.items()
        ),
        *(
            f"output {name}: {plural(count, 'element')} must be equal, and are not in all runs"
            for name, count in record.unstable.items()
        ),
    ]


def undecided_in(goldens: Iterable[Golden]) -> list[str]:
    """The outputs of these goldens that cannot tell right from wrong, each in a line."""
    return [
        f"{golden.id}: {text}"
        for golden in goldens
        if (record := golden.manifest.noise)
        for text in outputs_to_name(msgspec.structs.replace(record, unstable={}))
    ]

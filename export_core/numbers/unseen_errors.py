"""The errors that the outputs of a golden do not show, since noise decides: how large they are, and what to do."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from export_core.base.leaf_names import numbered, path_at
from export_core.base.text import plural
from export_core.base.tolerances import FLOATS, Tolerances
from export_core.goldens import Golden
from export_core.numbers.comparison_of_call import NO_TOLERANCES, is_by_noise
from export_core.numbers.leaf_paths import call_in_words, call_paths, output_name
from export_core.numbers.noise import LARGE, call_noise, noise_with_floors, scale_of

MUCH_NOT_SEEN = 0.01
"""An output that hides larger errors than this fraction of its largest number gets advice.

A noise of one unit hides 1.6 to 3.1 % in bfloat16, and 0.2 to 0.4 % in float16.
"""
_WIDE = ("float64", "complex128", "float32", "complex64")
LITTLE_NOT_SEEN = "Up to 1 % is fine: nothing is to do"
"""The advice where the unseen share of each output is at most `MUCH_NOT_SEEN`."""
NOT_SEEN_ADVICE = (
    "More than 1 % is much. What to do: export the function in a wider type too, such as float32, which shows smaller "
    "errors. Or set `ulp=` or `rtol=` in the marker; then a reader that only rounds differently may fail."
)
"""The advice about outputs above `MUCH_NOT_SEEN` of types narrower than float32."""
NOT_SEEN_IN_WIDE_ADVICE = (
    "More than 1 % is much for {types}. What to do: choose inputs away from values where the function jumps, such as "
    "edges of bins; inside, compute in no narrower type. Or set `ulp=` or `rtol=` in the marker, such as `ulp=4`; then "
    "a reader that only rounds differently may fail."
)
"""The advice about outputs above `MUCH_NOT_SEEN` of float32 or a wider type, for which no wider type helps."""


class NotSeen(NamedTuple):
    """The largest error that an output may have without failing its comparison, relative to its largest number."""

    fraction: float  # The fraction of its largest number below which errors pass unseen.
    dtype: str  # The type of the output.


def not_seen(golden: Golden, tolerances: Tolerances = NO_TOLERANCES) -> dict[str, NotSeen]:
    """Return, for each output, how large an error may pass unseen; a key has the output's name and path.

    The fraction follows from the largest noise in the output, elements that jump included. Without jumps, elements that
    show nothing are left out, since `undecided_outputs` counts them. Only outputs of floats that are compared by noise,
    and have a number other than 0, are included.
    """
    parts: dict[str, NotSeen] = {}
    outputs, how = golden.outputs_of_calls(), call_noise(golden)
    jumping = golden.manifest.noise.jumping if golden.manifest.noise else {}
    for file, measured in how.items():
        check = golden.calls[file]
        leaves = list(zip(outputs[file], measured.outputs, strict=True))
        places = call_paths(golden, check.vjp)[1]
        for number, (leaf, noise) in enumerate(leaves):
            is_shown = noise is not None and leaf.dtype in FLOATS and is_by_noise(golden, check, leaf.dtype, tolerances)
            if noise is None or not is_shown or not (largest := scale_of([leaf])):
                continue
            judged_by = noise_with_floors(leaf.numpy(), noise, leaf.dtype)
            jumps = output_name(check.name, number) in jumping
            decided = judged_by if jumps else judged_by[judged_by <= LARGE * largest]
            if decided.size:
                of = f" of {call_in_words(check.name)}" if check.name else ""
                name = f"output {numbered(str(number), path_at(places, number))}{of}"
                parts[name] = NotSeen(measured.factor * float(decided.max()) / largest, leaf.dtype)
    return parts


def not_seen_text(parts: Mapping[str, NotSeen], most: int) -> str:
    """Return a text on how large an error each output may hide; empty if there are no outputs.

    `parts` has the error by output, as `not_seen` returns it. The `most` outputs with the largest fractions are named,
    the largest first.
    """
    ranked = sorted(parts.items(), key=lambda item: -item[1].fraction)
    named = [f"up to {_percent(part.fraction)} in {name}" for name, part in ranked[:most]]
    more = [f"less in {plural(len(ranked) - most, 'more output')}"] if len(ranked) > most else []
    listed = "; ".join([*named, *more]).replace(" % in ", " % of the largest number in ", 1)  # said once
    return f"errors that rounding hides: {listed}" if named else ""


def not_seen_advice(parts: Iterable[NotSeen]) -> list[str]:
    """Return advice on outputs whose comparison may miss errors above `MUCH_NOT_SEEN`; empty if there are none.

    `parts` has the largest error that each output may hide.
    """
    types = dict.fromkeys(part.dtype for part in parts if part.fraction > MUCH_NOT_SEEN)
    wide = [dtype for dtype in _WIDE if dtype in types]
    narrow = [NOT_SEEN_ADVICE] if len(types) > len(wide) else []
    return [*narrow, *([NOT_SEEN_IN_WIDE_ADVICE.format(types=" and ".join(wide))] if wide else [])]


def _percent(fraction: float) -> str:
    """Return a fraction in percent with one digit, such as ``5 %``."""
    return f"{float(f'{100 * fraction:.1g}'):g} %"

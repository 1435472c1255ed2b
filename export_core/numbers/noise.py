"""Noise as the measure of numbers: how far a correct reader may be from the outputs that the writer saw.

The writer runs its artifact several times, on inputs moved by up to one unit in the last place and compiled in other
ways. How far an element moves in these runs is its noise.

An element jumps if one last bit decides between values that are far apart, as in resampling and in argmax. To find such
elements, the writer also moves inputs and what is rounded inside by up to 64 units. In a smooth program, 64 units move
an element at most 64 times as far: an element that moves much farther jumps. Its noise is then a part of its jump,
since the few runs with single units need not have met the jump that a reader meets.

The second half is about the noise that a golden has stored: what follows from it, whether golden.yaml says the same,
and its description in words.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from msgspec import structs, to_builtins

from export_core.artifact.errors import ArtifactError
from export_core.base.leaf_names import numbered, path_at
from export_core.base.text import plural
from export_core.base.tolerances import FLOATS, NOISE_FACTOR, Tolerances
from export_core.goldens import Comparison, Golden, GoldenError, Leaf
from export_core.goldens.arrays import KEYS, Array, Noise, from_npz
from export_core.goldens.manifest import NoiseRecord, UndecidedOutput
from export_core.goldens.store import ComparedAs
from export_core.numbers.comparison_of_call import NO_TOLERANCES, is_by_noise
from export_core.numbers.elements import finfo, to_double
from export_core.numbers.leaf_paths import call_paths, output_name, output_paths

FACTOR = NOISE_FACTOR  # Under the name by which the rules and the studies know it.
FACTOR_OF_INPUTS = 8.0  # How many times its noise if only inputs were moved: such noise is smaller.

UNITS = ((2.0**-10, 1.0), (2.0**-7, 0.5), (1.0, 0.0))
"""The least noise of every element, in units in the last place of its value, by the largest `eps` of the types.

The first row is for float16 and wider types, the second for bfloat16. The last is for types of 8 bits and fewer, whose
unit is an eighth of the value or half of it: not a rounding error. Their elements must be equal unless they jump.
Values are moved before they are rounded to such a type, so elements near a tie are known.
"""

SMALLEST = 2.0**-16
"""The least noise of an element that never moved, in units in the last place of the output's largest element.

A sum that is zero in all runs of the writer may be 1e-17 in another release.
"""

DRAWS = 34  # How many runs decide an element's noise, its largest move: those with moved inputs, those moved inside.
PIECE = 1 << 17
"""How many elements are processed together: as doubles, large arrays would take many times their memory."""
MOST_OF_INPUTS = 64.0
"""The most noise that moved inputs usually give if nothing is rounded inside.

It is in units in the last place of an output's largest element. Of 145 such goldens of this repository the largest
noise is 3.2 units.
"""
LARGE = 0.1  # An element whose noise is above this part of the output's largest number shows nothing.


def spread(plain: Sequence[Leaf], variants: Iterable[Sequence[Leaf]]) -> Noise:
    """Return the noise of each output: for each element, its largest distance from the plain run in any variant.

    The noise of keys and float0 is None, since they are not numbers. A variant in which an element is not finite does
    not count for this element: moving an input across a pole shows nothing about a reader, whose inputs are exact.
    """
    wanted = [leaf.numpy() for leaf in plain]
    noises = [None if leaf.dtype in KEYS or leaf.dtype == "float0" else np.zeros(leaf.shape) for leaf in plain]
    for variant in variants:
        for noise, want, leaf in zip(noises, wanted, variant, strict=True):
            if noise is not None:
                with np.errstate(all="ignore"):
                    moved = np.abs(to_double(leaf.numpy()) - to_double(want))
                np.maximum(noise, np.where(np.isfinite(moved), moved, 0.0), out=noise)
    return tuple(noises)


@np.errstate(all="ignore")  # NaN, infinities and overflows are expected, not warned of
def moved_by(ulps: int, leaf: Leaf, generator: np.random.Generator) -> Leaf:
    """Return a leaf whose floats are each moved at random by up to `ulps` units in the last place, up or down.

    Zeros are not moved, since they are masks and padding, which rounding does not change. Elements that are not finite
    are not moved either. Other types are not moved at all, nor are floats of at most 8 bits, whose unit is an eighth of
    the value or more.
    """
    if leaf.dtype not in FLOATS or leaf.data.itemsize == 1:
        return leaf
    values = leaf.numpy()
    width = values.dtype.itemsize // (2 if values.dtype.kind == "c" else 1)
    steps = np.ascontiguousarray(leaf.data).view(f"i{width}")
    direction = generator.integers(-ulps, ulps + 1, steps.shape, dtype=np.int8).astype(steps.dtype)
    # Below the sign bit the integer counts the numbers up from zero: the next one is the next number.
    moved = (steps + direction).view(leaf.data.dtype).reshape(leaf.data.shape)
    as_moved = Leaf(leaf.dtype, moved).numpy()
    stays = (values == 0) | ~np.isfinite(values) | ~np.isfinite(as_moved) | (as_moved == 0)
    return Leaf(leaf.dtype, np.where(stays, leaf.data, moved))


def count_undecided(leaf: Leaf, noise: Array) -> int:
    """Return how many elements of an output have so much noise that a wrong number would pass.

    `noise` is the measured noise; elements are judged by `noise_with_floors`, as in a comparison. If an output is zero
    in all runs, no element counts, since any other number would fail.
    """
    expected, largest = leaf.numpy(), scale_of([leaf])
    if not largest:
        return int((np.maximum(noise, _lent(noise)) > 0).sum())
    # What is lent is no larger, and a floor of rounding is that large only among denormal numbers.
    if not (noise.max(initial=0.0) > LARGE * largest or largest < float(finfo(leaf.dtype).smallest_normal)):
        return 0
    return int((noise_with_floors(expected, noise, leaf.dtype) > LARGE * largest).sum())


def scale_of(leaves: Iterable[Leaf]) -> float:
    """Return the largest finite magnitude of the floats in these leaves; 0 if there are no floats."""
    arrays = (leaf.numpy().reshape(-1) for leaf in leaves if leaf.dtype in FLOATS)
    pieces = (array[start : start + PIECE] for array in arrays for start in range(0, array.size, PIECE))
    return max((float(_finite_magnitudes(piece).max()) for piece in pieces), default=0.0)


@dataclass(frozen=True)
class Whole:
    """The facts about a whole array that are needed to compare a piece of the array."""

    largest: float  # The largest finite magnitude of its elements.
    lent: float  # The noise that its elements lend each other (`_lent`).

    @classmethod
    def of(cls, expected: Array, noise: Array | None) -> Whole:
        """Return the facts about a flat array, which is read in pieces to save memory."""
        spans = [slice(start, start + PIECE) for start in range(0, expected.size, PIECE)]
        largest = max(float(_finite_magnitudes(expected[span]).max()) for span in spans)
        return cls(largest, 0.0 if noise is None else float(_lent(noise)))


@np.errstate(all="ignore")  # NaN, infinities and overflows are expected, not warned of
def noise_with_floors(
    expected: Array,
    noise: Array,
    dtype: str,
    scale: Array | None = None,
    whole: Whole | None = None,
) -> Array:
    """Return the noise by which elements are compared: the measured noise, but at least the error of rounding.

    The noise of all elements together (`_lent`) is another lower bound, since the few runs may by chance have moved an
    element only a little. Types of at most 8 bits have no lower bounds: for them, the measured noise is returned.

    Args:
        expected: the outputs that the writer saw, or arrays made from them in double precision.
        noise: the measured noise of each element.
        dtype: the dtype of the outputs.
        scale: the magnitude that counts for rounding if it is larger than that of the element. It broadcasts with
            `expected`.
        whole: facts about the whole array, if these elements are a piece of it.
    """
    magnitudes = np.maximum(_finite_magnitudes(expected), 0.0 if scale is None else scale)
    info, eps = finfo(dtype), float(finfo(dtype).eps)
    largest = whole.largest if whole else float(magnitudes.max(initial=0.0))
    if not (units := _units(eps)):
        return np.maximum(noise, np.zeros(magnitudes.shape))
    smallest = np.where(noise > 0, 0.0, SMALLEST * largest)
    floor = eps * (units * magnitudes + smallest) + float(info.smallest_subnormal)
    judged_by: Array = np.maximum(np.maximum(noise, whole.lent if whole else _lent(noise)), floor)
    return judged_by


def _units(eps: float) -> float:
    return next(units for largest, units in UNITS if eps <= largest)


@np.errstate(all="ignore")  # NaN, infinities and overflows are expected, not warned of
def _finite_magnitudes(values: Array) -> Array:
    """Return the magnitudes of elements as float64; 0 for elements that are not finite."""
    magnitudes = np.abs(to_double(values))
    return np.where(np.isfinite(magnitudes), magnitudes, 0.0)


def _lent(noise: Array) -> Array:
    """Return the lower bound of an element's noise that follows from the noise of all elements of its array.

    The bound is needed because the few runs may by chance have moved an element only a little. It is the lower quartile
    of the noise of n elements times √(ln n / ln `DRAWS`). This root is the ratio of the largest of n normal draws to
    the largest of `DRAWS` draws. Without the root, a reader would move some of 10,000 elements farther than the
    writer's few runs moved any.
    """
    if not noise.size:
        return np.asarray(0.0)
    return np.asarray(np.quantile(noise, 0.25) * math.sqrt(math.log(max(noise.size, DRAWS)) / math.log(DRAWS)))


ULPS = 64  # By how many units the amplified runs move, a power of two below 128.
SMOOTH = 16.0
"""The most times its noise that a smooth element moves for each unit of the amplified runs.

That move is then its noise, since it has more noise than the runs with single units showed.
"""

JUMPS = 128.0  # An element that moves, for each unit, by more than this many times its noise jumps.
PART = 0.5
"""The part of a jump that counts as noise.

With `FACTOR` times the noise an element may be off by twice its jump.
"""


def noise_and_jumps(leaf: Leaf, near: Array | None, far: Array | None) -> tuple[Array | None, int]:
    """Return the noise of an output (None if it must be equal), and how many of its elements jump.

    `leaf` is the output of the plain run. `near` is how far its elements moved in runs that move by single units, and
    `far` in runs that move by up to `ULPS` units; both are 0 if there were no such runs. In an output of integers,
    booleans or floats of at most 8 bits, each element that ever moved counts as a jump: it is an index, a count or a
    rounded number.
    """
    if near is None or far is None:
        return None, 0
    if leaf.dtype in FLOATS and _units(float(finfo(leaf.dtype).eps)):
        unit, for_one = noise_with_floors(leaf.numpy(), near, leaf.dtype), far / ULPS
        noise = np.where(for_one <= SMOOTH * unit, np.maximum(near, for_one), near)
        jumps = for_one > JUMPS * np.maximum(unit, noise)
    else:
        noise, far = np.zeros(near.shape), np.maximum(near, far)
        jumps = far > 0
    if not jumps.any():
        return noise, 0
    # Each jumps as far as it was seen to, or by the root mean square of all that jump.
    jump = np.maximum(far, np.sqrt(np.mean(far[jumps] ** 2)))
    return np.where(jumps, np.maximum(noise, PART * jump), noise), int(jumps.sum())


# --- of a golden ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallNoise:
    """The noise of a call's outputs, as the golden of the call stores it."""

    outputs: Noise = ()
    factor: float = FACTOR  # How many times its noise an element may be off.


NO_NOISE = CallNoise()  # The noise of a golden whose writer measured none.


def call_noise(golden: Golden) -> dict[str, CallNoise]:
    """Return the noise of a golden's outputs, by the name of their file.

    The result is empty if no noise was measured. It has no files of calls whose runs all failed.
    """
    if (record := golden.manifest.noise) is None:
        return {}
    factors = {
        file: FACTOR if record.moved_inside(call.name) else FACTOR_OF_INPUTS for file, call in golden.calls.items()
    }
    # Of a call whose runs all failed nothing is known, and tolerances hold.
    return {
        file: CallNoise(noise, factors[file])
        for file, noise in golden.noise().items()
        if golden.calls[file].name not in record.unmeasured
    }


Undecided = dict[str, UndecidedOutput]
Jumping = Mapping[str, tuple[int, int]]
WHAT_TO_DO = (
    "Elements that would not show a wrong number change by more than a tenth of the output's largest number when "
    "inputs change by one unit in the last place, or the compiler rounds in another order. What to do: for a "
    "difference of large numbers, scale or centre the inputs, or use another formula or float64. For a chaotic "
    "function, export fewer steps. For an input exactly where the function or its derivative jumps, move it: 0.5 to "
    "0.52. For a zero that is only rounding errors, nothing if other outputs show what is "
    "computed; else return one that does. Or say what to compare: compare='shape', or a tolerance or comparator of "
    "your own, in the marker or in the policy's `numbers`."
)
"""The advice about an output that would not show a wrong number."""
_MOST = 4  # The most outputs of a golden that a text names.


def undecided_outputs(
    golden: Golden,
    noise: Mapping[str, Noise],
    jumping: Jumping,
    outputs: Mapping[str, Sequence[Leaf]] | None = None,
    tolerances: Tolerances = NO_TOLERANCES,
) -> Undecided:
    """Return, by name such as ``vjp1/0``, the outputs with elements whose noise would let a wrong number pass.

    Elements that jump do not count: they are reported separately, and in most readers they equal what the writer saw.

    Args:
        golden: the golden.
        noise: the noise of each file of outputs, as noise.npz stores it. The stored noise is rounded, and without
            rounding the counts would differ.
        jumping: by name of the output, how many elements jump and how many there are.
        outputs: the arrays of these files, if they have been read already.
        tolerances: the tolerances of the policy, by platform.
    """
    undecided: Undecided = {}
    paths = cache(partial(call_paths, golden))  # each reads the artifact
    for file, noises in noise.items():
        check = golden.calls[file]
        leaves = outputs[file] if outputs else from_npz(golden.folder / file)
        for number, (leaf, own) in enumerate(zip(leaves, noises, strict=True)):
            if own is None or leaf.dtype not in FLOATS or not is_by_noise(golden, check, leaf.dtype, tolerances):
                continue
            name = output_name(check.name, number)
            count = count_undecided(leaf, own) - jumping.get(name, (0,))[0]
            # Factors that turn with every kernel are compared by what they must satisfy, whatever their noise. Asked
            # for last: it reads the artifact.
            if count > 0 and (check.vjp or not any(number in group.outputs for group in golden.factors)):
                largest = scale_of([leaf])
                worst, scale = (float(f"{value:.3g}") for value in (own.max(), largest))
                place = path_at(paths(check.vjp)[1], number)
                undecided[name] = UndecidedOutput(count, own.size, worst, scale, place)
    return undecided


def proves_nothing(golden: Golden, undecided: Undecided) -> bool:
    """Return whether, in every output, a wrong number could pass unseen in at least half of the elements."""
    outputs = sum(leaf.data.size > 0 for file in golden.calls for leaf in from_npz(golden.folder / file))
    return 0 < sum(2 * output.elements >= output.of for output in undecided.values()) == outputs


def check_noise(goldens: Iterable[Golden]) -> None:
    """Raise `GoldenError` naming all goldens whose golden.yaml and noise.npz contradict each other or the artifact."""
    problems = []
    for golden in goldens:
        again = f"Measure its noise again: jaxexport goldens verify --noise --again {shlex.quote(golden.id)}"
        problems += [f"{golden.folder}: {problem} {again}" for problem in _problems(golden)]
    if problems:
        raise GoldenError("\n".join(problems))


def _problems(golden: Golden) -> Sequence[str]:
    if (record := golden.manifest.noise) is None:
        return []
    try:
        noise = golden.noise()
    except GoldenError as error:
        return [str(error)]
    if (stated := record.undecided_outputs) is None:  # an older version counted by another rule
        return []
    follows = undecided_outputs(golden, noise, record.jumping)
    # An older version counted derivatives too that a tolerance decides.
    plain = golden.compared(ComparedAs(Comparison(), golden.compared_as.allow))
    if (
        stated == follows
        or follows.items() <= stated.items() <= undecided_outputs(plain, noise, record.jumping).items()
    ):
        return []
    found = to_builtins(stated)
    return [f"noise.undecided_outputs: expected {to_builtins(follows)!r}, as its files have it, found {found!r}."]


def proves_nothing_text(record: NoiseRecord) -> str:
    """Return the message for a golden that is refused since wrong numbers would pass in all of its outputs."""
    undecided = "; ".join(_undecided(record.undecided_outputs))
    return f"the numbers of this golden would prove nothing: {undecided}. {WHAT_TO_DO}"


def noise_text(record: NoiseRecord) -> str:
    """Return a line about how the noise of a golden was measured, and what it shows."""
    inside = record.inside + record.amplified
    parts = [f"noise by jaxlib {record.jaxlib}: {plural(record.moved, 'moved input')}, {inside} moved inside"]
    if record.failed:
        parts.append(f"{plural(len(record.failed), 'kind')} of runs failed, as golden.yaml says")
    if knows_inputs_only(record):
        parts.append("noise of inputs only: results inside the program were not moved")
    return "; ".join([*parts, *outputs_to_name(record)])


def knows_inputs_only(record: NoiseRecord) -> bool:
    """Return whether the noise of some call was measured only with moved inputs, not with results moved inside.

    This happens if results inside the program could not be moved, or if an older version measured the noise, which did
    not move them.
    """
    kinds = {name.rpartition("/")[2] for name in record.failed}
    return "inside" in kinds or (not record.inside and bool(record.compiled or {"inside 0", "unoptimized"} & kinds))


def unusual_noise(golden: Golden, tolerances: Tolerances = NO_TOLERANCES) -> tuple[str, str] | None:
    """Return what is unusual about the noise of a golden, and why it is said; None if nothing is.

    If no run measured it, there can be none. If runs moved only inputs, more than `MOST_OF_INPUTS` units are unusual,
    but possible: an input may be where the function jumps, and a difference may be much smaller than its operands. Only
    outputs that are compared by noise count. `tolerances` are those of the policy, by platform.
    """
    record = golden.manifest.noise
    if record is None or record.compiled or record.inside or record.kernel:
        return None
    try:
        outputs = golden.outputs_of_calls()
        noise = golden.noise(outputs)
    except GoldenError:  # its cells report it
        return None
    units = max(
        (
            _in_units(leaf, own)
            for file, leaves in outputs.items()
            for leaf, own in zip(leaves, noise[file], strict=True)
            if own is not None and own.any() and is_by_noise(golden, golden.calls[file], leaf.dtype, tolerances)
        ),
        default=0.0,
    )
    if not record.moved:
        none = ("noise, but no run that measured it", "more than the runs in its golden.yaml can have measured")
        return none if units else None
    # Where moved inputs choose another element, whole numbers move as well.
    if not MOST_OF_INPUTS < units < math.inf:
        return None
    return (
        f"noise of {units:.3g} units in the last place, by moved inputs alone",
        "expected only where the function jumps or cancels at its inputs; `jaxexport goldens verify --noise --again` "
        "measures it",
    )


def _in_units(leaf: Leaf, noise: Array) -> float:
    """Return the largest noise, in units in the last place of the output's largest element.

    The result is infinite if the output is not of floats, or if all its elements are zero.
    """
    unit = float(finfo(leaf.dtype).eps) * scale_of([leaf]) if leaf.dtype in FLOATS else 0.0
    return float(noise.max()) / unit if unit else math.inf


def outputs_to_name(record: NoiseRecord, golden: Golden | None = None) -> list[str]:
    """Return lines for the person who writes a golden: which outputs show nothing, or may differ in another release.

    With `golden`, they say the path of each output, and how large an error passes where elements jump. Raises
    `ArtifactError` or `GoldenError` if its artifact or its arrays cannot be read.
    """
    paths, limits = (output_paths(golden), _limits_of_jumps(golden, record.jumping)) if golden else ({}, {})
    unstable = (
        f"output {numbered(name, paths.get(name, ''))}: {plural(count, 'element')} must be equal, but differed in "
        "some runs"
        for name, count in record.unstable.items()
    )
    unmeasured = (
        f"{f'outputs of the call {name}' if name else 'outputs'}: nothing was measured, since all runs failed, as "
        "golden.yaml says under noise.failed; compared with the default tolerances"
        for name in record.unmeasured
    )
    return [*_undecided(record.undecided_outputs), *_jumping(record.jumping, paths, limits), *unstable, *unmeasured]


def left_to_noise(golden: Golden, tolerances: Tolerances = NO_TOLERANCES) -> NoiseRecord | None:
    """Return the record of noise in golden.yaml, without outputs that are compared by a tolerance or a comparator.

    `golden` has the comparison that its policy gives it, and `tolerances` are the tolerances of the policy. Raises
    `GoldenError` if the outputs of the golden cannot be read.
    """
    if (record := golden.manifest.noise) is None or not (record.undecided_outputs or record.jumping):
        return record
    by_noise = {
        output_name(check.name, number)
        for file, check in golden.calls.items()
        for number, leaf in enumerate(from_npz(golden.folder / file))
        if is_by_noise(golden, check, leaf.dtype, tolerances)
    }
    undecided = {name: output for name, output in (record.undecided_outputs or {}).items() if name in by_noise}
    jumping = {name: counts for name, counts in record.jumping.items() if name in by_noise}
    return structs.replace(record, undecided_outputs=undecided, jumping=jumping)


def hides_large_errors(golden: Golden, tolerances: Tolerances = NO_TOLERANCES) -> bool:
    """Return whether a golden has outputs that would not show a wrong number, or that jump, as golden.yaml has it.

    The arguments are those of `left_to_noise`.
    """
    record = left_to_noise(golden, tolerances)
    return record is not None and bool(record.undecided_outputs or record.jumping)


def undecided_in(goldens: Iterable[Golden], tolerances: Tolerances = NO_TOLERANCES) -> list[str]:
    """Return lines about the outputs of goldens in which a wrong number could pass, or elements jump.

    The elements are counted in the stored noise and outputs, whatever golden.yaml claims about them. Only the number of
    floats that jump is taken from golden.yaml. Outputs that are compared by a tolerance or a comparator are left out.
    """
    lines = []
    for golden in goldens:
        if (record := golden.manifest.noise) is None:
            continue
        try:
            outputs = golden.outputs_of_calls()
            noise = golden.noise(outputs)
            # Floats that jump cannot be told from others by noise.npz alone: the manifest's word counts, and is shown.
            jumping: dict[str, tuple[int, int]] = {}
            for file, noises in noise.items():
                check = golden.calls[file]
                for number, (leaf, own) in enumerate(zip(outputs[file], noises, strict=True)):
                    name = output_name(check.name, number)
                    counts = record.jumping.get(name, (0, 0))
                    if own is not None and leaf.dtype not in FLOATS:
                        counts = (int((own > 0).sum()), own.size)
                    if counts[0] and is_by_noise(golden, check, leaf.dtype, tolerances):
                        jumping[name] = counts
            leaves, limits = (output_paths(golden), _limits_of_jumps(golden, jumping)) if jumping else ({}, {})
            undecided = undecided_outputs(golden, noise, record.jumping, outputs, tolerances)
            texts = [*_undecided(undecided), *_jumping(jumping, leaves, limits)]
        except (ArtifactError, GoldenError) as error:
            texts = [f"its noise cannot be read: {error}"]
        lines += [f"{golden.id}: {text}" for text in texts]
    return lines


def _limits_of_jumps(golden: Golden, jumping: Jumping) -> dict[str, str]:
    """Return in words how large an error passes in each output that has elements that jump, by its name."""
    limits = {}
    outputs = golden.outputs_of_calls() if jumping else {}
    for file, measured in call_noise(golden).items() if jumping else ():
        for number, (leaf, noise) in enumerate(zip(outputs[file], measured.outputs, strict=True)):
            name = output_name(golden.calls[file].name, number)
            if noise is not None and name in jumping:
                limits[name] = f"; errors of up to {measured.factor * noise.max(initial=0.0):.3g} pass"
                limits[name] += f", and the largest number is {scale_of([leaf]):.3g}" if leaf.dtype in FLOATS else ""
    return limits


def _jumping(jumping: Jumping, paths: Mapping[str, str], limits: Mapping[str, str]) -> list[str]:
    why = "their last bit decides between distant values"
    return [
        f"output {numbered(name, paths.get(name, ''))}: {count} of {plural(total, 'element')} jump: {why}"
        f"{limits.get(name, '')}"
        for name, (count, total) in jumping.items()
    ]


def _undecided(outputs: Undecided | None) -> list[str]:
    texts = [
        f"output {numbered(name, output.leaf)}: {output.elements} of {plural(output.of, 'element')} would not show a "
        f"wrong number: rounding alone moves them by up to {output.noise:.3g}, and the largest number is "
        f"{output.largest:.3g}"
        for name, output in (outputs or {}).items()
    ]
    more = len(texts) - _MOST
    return [*texts[:_MOST], f"and {plural(more, 'more output')}, in golden.yaml"] if more > 0 else texts

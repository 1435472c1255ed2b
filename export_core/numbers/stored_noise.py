"""The noise that a golden brings along: what follows from it, whether golden.yaml says the same, and in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

from msgspec import to_builtins

from export_core.artifact.numerics import narrowest_float
from export_core.base.phrases import plural
from export_core.base.tolerances import FLOATS, amount_for
from export_core.goldens import Comparison, Golden, GoldenError, Leaf
from export_core.goldens.arrays import Noise, from_npz
from export_core.goldens.manifest import NoiseRecord, UndecidedOutput
from export_core.numbers.noise import count_undecided, scale_of

Undecided = dict[str, UndecidedOutput]
Jumping = Mapping[str, tuple[int, int]]

WHAT_TO_DO = (
    "These numbers move by more than a tenth of the output's largest when inputs move by one unit in the last place or "
    "the compiler rounds in another order. A difference of large numbers: scale or centre the inputs, use another "
    "formula, or float64. A chaotic function: export fewer steps. A zero that is nothing but rounding, such as the "
    "gradient of a bias that cancels: nothing, if other outputs show what is computed; else return one that does. Or "
    "say what is to be compared: compare='shape', or a tolerance or comparator of your own, in the marker or in the "
    "policy's `numbers`."
)
"""Why an output cannot tell right from wrong, and what its author can do."""

_BY_NOISE = Comparison().compare
_MOST = 4
"""Outputs of a golden that are named."""


def undecided_outputs(
    golden: Golden,
    noise: Mapping[str, Noise],
    jumping: Jumping,
    outputs: Mapping[str, Sequence[Leaf]] | None = None,
) -> Undecided:
    """The outputs with elements that cannot tell right from wrong, by call and output: ``vjp1/0``.

    Elements that jump are not among them: they are named by themselves, and are what the writer saw in most readers.
    `jumping` says by call and output how many do, of how many. `noise` is that of each file of outputs as noise.npz has
    it: it is rounded there, so that what was measured would give other counts. `outputs` are the arrays of these files,
    where they have been read.
    """
    undecided: Undecided = {}
    paths = cache(partial(_paths_of_outputs, golden))  # each reads the artifact
    for file, noises in noise.items():
        check = golden.calls[file]
        # Factors that turn with every kernel are compared by what they must satisfy, whatever their noise.
        factors = [] if check.vjp else [output for group in golden.factors for output in group.outputs]
        leaves = outputs[file] if outputs else from_npz(golden.folder / file)
        comparison = Comparison() if check.vjp else golden.manifest.comparison
        amounts = (comparison.rtol, comparison.atol, comparison.ulp)
        for number, (leaf, own) in enumerate(zip(leaves, noises, strict=True)):
            # Of other types, and by a tolerance or a comparator of their own, noise does not decide.
            asked = [amount for amount in amounts if amount_for(leaf.dtype, amount) is not None]
            if own is None or leaf.dtype not in FLOATS or number in factors or asked or comparison.compare != _BY_NOISE:
                continue
            name, largest = f"{check.name}/{number}".removeprefix("/"), scale_of([leaf])
            count = count_undecided(own, largest) - jumping.get(name, (0,))[0]
            if count > 0:
                worst, scale = (float(f"{value:.3g}") for value in (own.max(), largest))
                place = next(iter(paths(check.vjp)[number:]), "")
                undecided[name] = UndecidedOutput(count, own.size, worst, scale, place)
    return undecided


def _paths_of_outputs(golden: Golden, order: int) -> list[str]:
    """The place of each flat result in the tree of results; of the derivative of that order, by what it is one."""
    if flattened := golden.manifest.flattened:
        arguments, results = list(flattened.inputs), list(flattened.outputs)
    elif envelope := golden.read_artifact().envelope:
        trees = zip(("args", "kwargs"), envelope.in_tree.children, strict=False)  # a damaged file has any tree
        arguments = [path for root, tree in trees for path in tree.paths(root)]
        results = envelope.out_tree.paths("result")
    else:
        return []
    for _ in range(order):
        cotangents = [f"the cotangent of {path}" for path in results]
        results = [f"derivative by {path}" for path in arguments]
        arguments += cotangents
    return results


def proves_nothing(golden: Golden, undecided: Undecided) -> bool:
    """Whether half of the elements of every output cannot tell right from wrong: no wrong number would be seen."""
    outputs = sum(leaf.data.size > 0 for file in golden.calls for leaf in from_npz(golden.folder / file))
    return 0 < sum(2 * output.elements >= output.of for output in undecided.values()) == outputs


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
    found: dict[str, tuple[object, object]] = {
        "narrowest_float": (record.narrowest_float, narrowest_float(golden.read_artifact()))
    }
    if record.undecided_outputs is not None:  # else an older version counted by another rule
        found["undecided_outputs"] = (record.undecided_outputs, undecided_outputs(golden, noise, record.jumping))
    return [
        f"noise.{field}: expected {to_builtins(follows)!r}, as its files have it, found {to_builtins(stated)!r}."
        for field, (stated, follows) in found.items()
        if stated != follows
    ]


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
    unstable = (
        f"output {name}: {plural(count, 'element')} must be equal, and are not in all runs"
        for name, count in record.unstable.items()
    )
    return [*_recorded(record), *_jumping(record.jumping), *unstable]


def undecided_in(goldens: Iterable[Golden]) -> list[str]:
    """The outputs of these goldens that cannot tell right from wrong, wholly or where they jump, each in a line.

    They are counted in the noise and the outputs that the goldens have, whatever golden.yaml says of them.
    """
    lines = []
    for golden in goldens:
        if (record := golden.manifest.noise) is None:
            continue
        try:
            outputs = golden.outputs_of_calls()
            noise = golden.noise(outputs)
            # Floats that jump cannot be told from others by noise.npz alone: the manifest's word counts, and is shown.
            jumping = dict(record.jumping)
            for file, noises in noise.items():
                for number, (leaf, own) in enumerate(zip(outputs[file], noises, strict=True)):
                    if own is not None and leaf.dtype not in FLOATS and (count := int((own > 0).sum())):
                        jumping[f"{golden.calls[file].name}/{number}".removeprefix("/")] = (count, own.size)
            texts = [*_undecided(undecided_outputs(golden, noise, record.jumping, outputs)), *_jumping(jumping)]
        except GoldenError as error:
            texts = [f"its noise cannot be read: {error}"]
        lines += [f"{golden.id}: {text}" for text in texts]
    return lines


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

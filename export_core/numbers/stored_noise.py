"""The noise that a golden brings along: what follows from it, and whether golden.yaml says the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

from msgspec import to_builtins

from export_core.artifact.numerics import narrowest_float
from export_core.base.tolerances import FLOATS, amount_for
from export_core.goldens import Comparison, Golden, GoldenError, Leaf
from export_core.goldens.arrays import Noise, from_npz
from export_core.goldens.manifest import UndecidedOutput
from export_core.numbers.noise import count_undecided, scale_of

Undecided = dict[str, UndecidedOutput]


Jumping = Mapping[str, tuple[int, int]]


def undecided_outputs(
    golden: Golden,
    noise: Mapping[str, Noise],
    jumping: Jumping,
    outputs: Mapping[str, Sequence[Leaf]] | None = None,
) -> Undecided:
    """The outputs with elements that cannot tell right from wrong, by call and output: ``vjp1/0``.

    Elements that jump are not among them: they are named by themselves, and are what the writer saw in most readers.

    Args:
        golden: whose stored outputs say what is large.
        noise: for each file of outputs, as noise.npz has it. It is rounded there, so that what was measured would
            give other counts.
        jumping: by call and output, how many elements jump, of how many.
        outputs: the arrays of each of these files, where they have been read.
    """
    undecided: Undecided = {}
    paths = cache(partial(_paths_of_outputs, golden))  # each reads the artifact
    for file, noises in noise.items():
        check = golden.calls[file]
        # Factors that turn with every kernel are compared by what they must satisfy, whatever their noise.
        factors = [] if check.vjp else [output for group in golden.factors for output in group.outputs]
        leaves = outputs[file] if outputs else from_npz(golden.folder / file)
        comparison = Comparison() if check.vjp else golden.manifest.comparison
        for number, (leaf, own) in enumerate(zip(leaves, noises, strict=True)):
            if own is None or leaf.dtype not in FLOATS or number in factors or not _is_judged_by(comparison, leaf):
                continue
            name, largest = f"{check.name}/{number}".removeprefix("/"), scale_of([leaf])
            count = count_undecided(own, largest) - jumping.get(name, (0,))[0]
            if count > 0:
                worst, scale = (float(f"{value:.3g}") for value in (own.max(), largest))
                place = next(iter(paths(check.vjp)[number:]), "")
                undecided[name] = UndecidedOutput(count, own.size, worst, scale, place)
    return undecided


def _is_judged_by(comparison: Comparison, leaf: Leaf) -> bool:
    """Whether noise decides about floats of this type, and neither a tolerance nor a comparator of their own."""
    amounts = (comparison.rtol, comparison.atol, comparison.ulp)
    return comparison.compare == Comparison().compare and all(amount_for(leaf.dtype, it) is None for it in amounts)


def noise_on_disk(golden: Golden) -> tuple[Undecided, Jumping]:
    """What the golden's files themselves leave undecided, and which elements jump, whatever its manifest says of that.

    Floats that jump cannot be told from others by noise.npz alone: of these the manifest's word counts, and is shown.

    Raises:
        GoldenError: there are no such files.
    """
    record = golden.manifest.noise
    if record is None:
        return {}, {}
    outputs = golden.outputs_of_calls()
    noise = golden.noise(outputs)
    jumping = dict(record.jumping)
    for file, noises in noise.items():
        for number, (leaf, own) in enumerate(zip(outputs[file], noises, strict=True)):
            if own is not None and leaf.dtype not in FLOATS and (count := int((own > 0).sum())):
                jumping[f"{golden.calls[file].name}/{number}".removeprefix("/")] = (count, own.size)
    return undecided_outputs(golden, noise, record.jumping, outputs), jumping


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

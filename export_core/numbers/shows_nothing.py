"""What a golden cannot show: outputs that are the same for all inputs, inputs without effect, saturation.

When noise is measured, the compiled program also runs with other inputs of the same kind: numbers between the given
ones, integers and booleans from among them, and new PRNG keys.

An output may be equal in all these runs, or have the same value in all its elements. It would be so even if what is
computed before a mask or a ReLU were wrong. The same holds for a saturated output, at the bounds of the function that
makes it, such as 0 and 1 for a softmax. Such a golden is stored all the same, with a remark.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from export_core.artifact import Artifact
from export_core.artifact.bounded_outputs import Bounded, Bounds, bounded_outputs
from export_core.base.text import few, plural
from export_core.base.tolerances import FLOATS
from export_core.goldens import Golden, Leaf
from export_core.goldens.arrays import KEYS, Array, from_npz, to_npz
from export_core.numbers.elements import finfo, to_double
from export_core.numbers.leaf_paths import leaf_paths
from export_core.numbers.other_inputs import InputsKind, OtherRun, equal, has_one_value, limits, other_runs, same
from export_core.readers.worker.protocol import CheckRequest, Reply, VariantRequest

MOST_BYTES = 1 << 28  # For inputs and outputs of all these runs together; but a few runs are always made.

MANY = 8  # An output with fewer elements may have the same value in all of them.
BOUNDS = 3  # The most values that a saturated output has: 0 and 1, or -1, 0 and 1.
NEARLY_ALL = 0.95  # At least this part of the elements of a saturated output is at its bounds.
ENOUGH = 2  # The fewest runs with other inputs in which an output must have been equal.
SAMPLE = 1 << 12  # How many elements are checked for saturation before all are.
SATURATED: Mapping[Bounds, str] = {
    "tanh": "choose smaller inputs, or a smaller gain",
    "erf": "choose smaller inputs, or a smaller gain",
    "a sigmoid": "choose smaller inputs, or a smaller gain",
    "a softmax": "choose smaller inputs, or a larger temperature",
    "a clamp": "choose inputs or bounds for which some are between them",
}
"""The advice for a saturated output, by the function that makes it."""

MOST_LINES = 8  # The most lines of remarks on a golden.


@dataclass(frozen=True)
class Remark:
    """A remark on one leaf of the arguments or results about which a golden shows nothing, with advice."""

    leaf: str  # Its path, such as `result['bias']`.
    text: str  # What was seen, and what to do.


# --- what outputs show ------------------------------------------------------------------------------------------------


class Output:
    """An output of the plain run, and what runs with other inputs show about this output."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf
        self.values = leaf.numpy()
        self.finite = _finite(leaf)
        self.depends = False  # Whether it changes with the inputs.
        self.equal = 0  # In how many runs with other inputs it was the same.
        self.varies = False  # Whether its elements had different values in one of these runs.
        self.becomes_finite = False  # Whether most of its elements that are not finite were, with smaller numbers.
        self.few = self._few()  # The values that nearly all elements have, as doubles; empty if they are many.
        self.bounds = self.few if len(self.few) > 1 else ()  # The same, if they are as common in other runs.
        self.inside: Array | None = None  # Which elements were between these bounds with smaller numbers.
        self.changed_by: set[int] = set()  # The numbers of the inputs that change it when they change alone.
        self.is_other_in_a_call = False  # Whether a further call of the golden gives a different output.

    def see(self, run: OtherRun, leaf: Leaf) -> None:
        """Record what a run with other inputs shows; `leaf` is this output in that run."""
        values = leaf.numpy()
        finite = _finite(leaf)
        alike = equal(values, self.values)
        both = self.finite & finite
        differs = bool((both & ~alike).any())
        is_whole = bool((finite | ~self.finite).all())
        # Whatever changes a few integers or booleans shows that they are no constants: they are often equal by chance.
        is_small = alike.size < MANY and self.leaf.dtype not in FLOATS
        self.depends |= differs and (run.kind == "other" or is_small)
        if run.is_alone:
            self.changed_by |= set(run.changed) if not alike.all() else set()
        if run.kind == "small":
            lost, was_lost = int((~finite).sum()), int((~self.finite).sum())
            self.becomes_finite |= 2 * lost < was_lost
            if self.bounds:
                doubles = to_double(values)
                inside = (doubles > self.bounds[0]) & (doubles < self.bounds[-1]) & ~np.isin(doubles, self.bounds)
                self.inside = inside if self.inside is None else self.inside | inside
        elif run.kind == "other" and is_whole:
            self.equal += not differs
            self.varies |= not has_one_value(values)
            if self.bounds and np.isin(to_double(values), self.bounds).mean() < NEARLY_ALL:
                self.bounds = ()

    def see_moved(self, leaf: Leaf) -> None:
        """Record what a run with inputs moved by a unit in the last place shows; `leaf` is this output in that run."""
        self.depends |= bool((self.finite & ~same(leaf, self.leaf)).any())

    def see_call(self, leaf: Leaf) -> None:
        """Record what a further call of the golden shows; `leaf` is its output, which may have a different shape."""
        if leaf.shape == self.leaf.shape:
            self.is_other_in_a_call |= not same(leaf, self.leaf).all()
        else:
            both = np.concatenate([leaf.numpy().reshape(-1), self.values.reshape(-1)])
            self.is_other_in_a_call |= bool(both.size) and not has_one_value(both)

    def _few(self) -> tuple[float, ...]:
        """Return the at most `BOUNDS` values that nearly all elements have; an empty tuple if there are more."""
        if self.leaf.dtype == "bool" or self.leaf.dtype in KEYS or self.values.dtype.kind == "c":
            return ()
        flat = self.values.reshape(-1)
        for part in (flat[:: max(flat.size // SAMPLE, 1)], flat):
            values, counts = np.unique(to_double(part), return_counts=True)
            most = np.argsort(-counts, kind="stable")[:BOUNDS]
            if flat.size < MANY or counts[most].sum() < NEARLY_ALL * part.size:
                return ()
        return tuple(sorted(float(value) for value in values[most] if math.isfinite(value)))

    def remark(self, names_of_constant: Mapping[int, str], not_finite: str = "") -> str:
        """Return what this output fails to show, with advice; empty if there is nothing to report.

        `names_of_constant` has the names of the inputs with the same value in all elements, by their number.
        `not_finite` is the name of an input that is infinite or NaN in the same elements as the output.
        """
        size = self.values.size
        if not size or self.leaf.dtype == "float0":
            return ""
        elements = plural(size, "element")
        nan = int((self.values != self.values).sum())
        lost = int((~self.finite).sum())
        if 2 * nan > size or (2 * lost > size and (self.becomes_finite or lost == size)):
            what, count = ("NaN", nan) if 2 * nan > size else ("infinite or NaN", lost)
            found = f"{count} of {elements} {'is' if count == 1 else 'are'} {what}"
            if not_finite:
                given = "numbers" if size > 1 else "a number"
                return f"{found}, as {not_finite} is: give that {given}, or name this leaf in constant="
            if 2 * nan > size:
                return f"{found}: choose inputs for which the function gives numbers"
            return f"{found}: choose smaller inputs, or others for which it is finite"
        if self.is_other_in_a_call:
            return ""
        is_constant = not self.depends and self.equal >= ENOUGH
        hidden = [name for number, name in names_of_constant.items() if number in self.changed_by]
        why = f" ({few(hidden)} {'is' if len(hidden) == 1 else 'are'} the same in all elements)" if hidden else ""
        if size >= MANY and self.leaf.dtype not in KEYS and has_one_value(self.values):
            value = self.values.reshape(-1)[0]
            if is_constant or self.varies or _is_bound(value, self.leaf.dtype):
                also = ", with other inputs too" if is_constant else ""
                return f"all {elements} are {_text(value)}{also}{why}: {_for_other_values(value, self.leaf.dtype)}"
            return ""
        if is_constant:
            is_number = size == 1 and self.leaf.dtype not in KEYS
            alike = "it is the same" if size == 1 else f"its {elements} are the same"
            what = f"it is {_text(self.values.reshape(-1)[0])}" if is_number else alike
            return f"{what} with all of {self.equal} other inputs too{why}: choose inputs on which it depends"
        if self.bounds and self.inside is not None:
            at_bounds = np.isin(to_double(self.values), self.bounds)
            if 2 * int((at_bounds & self.inside).sum()) > size:
                bounds = " or ".join(map(_text, self.bounds))
                return (
                    f"{int(at_bounds.sum())} of {elements} are {bounds}, where it is saturated: choose smaller inputs"
                )
        return ""

    def is_lost_as(self, given: Leaf, *, same_values: bool) -> bool:
        """Return whether an input is infinite or NaN in the same elements as this output, which has such elements.

        If `same_values` is true, the values of all elements must be equal, too.
        """
        if given.dtype not in FLOATS or given.shape != self.leaf.shape:
            return False
        alike = equal(given.numpy(), self.values) if same_values else _finite(given) == self.finite
        return bool(alike.all())

    @property
    def may_be_saturated(self) -> bool:
        """Whether nearly all elements of this float output have a few values, which may be the bounds of a function."""
        return self.leaf.dtype in FLOATS and bool(self.few) and not self.is_other_in_a_call

    def saturated(self, made: Bounded) -> str:
        """Return the advice for an output whose elements are at the bounds of the function `made` that computes it.

        The advice is empty if too few elements are at a bound. For a clamp, all elements must be at a bound; for other
        functions, nearly all.
        """
        values = to_double(self.values).reshape(-1)
        # Nothing follows from the elements that a select fills. A softmax with masked elements has zeros there itself.
        values = values[~np.isin(values, [fill for fill in made.fills if fill or made.by != "a softmax"])]
        # In the precision of the output, which may be less than that of the constants.
        at_bounds = np.isin(values, to_double(np.asarray(made.bounds, self.values.dtype)))
        count = int(at_bounds.sum())
        if values.size < MANY or count < (1 if made.by == "a clamp" else NEARLY_ALL) * values.size:
            return ""
        # Zeros may be those of a mask: in the rows of a softmax that are saturated, one element has the whole sum.
        if made.by == "a softmax" and not values[at_bounds].sum() >= NEARLY_ALL * values.sum():
            return ""
        size = self.values.size
        amount = f"all {plural(size, 'element')}" if count == size else f"{count} of {plural(size, 'element')}"
        found = [_text(value) for value in np.unique(values[at_bounds])]
        bounds = "a bound" if len(found) == 1 else "the bounds"
        return f"{amount} are {' or '.join(found)}, {bounds} of {made.by}: {SATURATED[made.by]}"


def _finite(leaf: Leaf) -> Array:
    values = leaf.numpy()
    if leaf.dtype not in FLOATS:
        return np.ones(values.shape, np.bool_)
    # Not all dtypes of ml_dtypes have isfinite.
    return np.asarray(np.isfinite(values if values.dtype.kind in "fc" else values.astype(np.float32)))


def _is_bound(value: object, dtype: str) -> bool:
    """Return whether a mask, a ReLU, a comparison or a limit may set this value, whatever is computed before."""
    if dtype == "bool" or value in (0, 1, -1):
        return True
    if dtype not in FLOATS:
        return int(value) in limits(dtype)  # type: ignore[call-overload]
    if dtype.startswith("complex"):
        return False
    return abs(float(value)) >= float(finfo(dtype).max)  # type: ignore[arg-type]


def _for_other_values(value: object, dtype: str) -> str:
    """Return advice on which inputs to choose if all elements of an output have this value."""
    if dtype == "bool":
        return f"choose inputs for which some are {not bool(value)}"
    if value == 0:
        return "choose inputs for which some are not: for which a mask lets something through, or a ReLU is positive"
    if _is_bound(value, dtype):
        return "choose inputs for which they differ: smaller ones, if it is saturated"
    return "choose inputs for which they differ"


def _text(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (complex, np.complexfloating)):
        return f"{complex(value):.4g}"
    number = float(value)  # type: ignore[arg-type]
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else f"{number:.4g}"


def _nothing(numbers: Collection[int]) -> Mapping[int, Bounded]:
    return {}


@dataclass(frozen=True)
class Seen:
    """A golden's plain call, and its results in other runs, from which the remarks on the golden are made."""

    inputs: Sequence[Leaf]
    used: Sequence[int]  # The numbers of the inputs that the program takes.
    outputs: Sequence[Leaf]
    runs: Iterable[tuple[OtherRun, Sequence[Leaf]]]  # The runs with other inputs, each with its outputs.
    moved: Iterable[Sequence[Leaf]] = ()  # The outputs for inputs that were moved by a unit in the last place.
    calls: Sequence[Sequence[Leaf]] = ()  # The outputs of further calls that the golden has.
    paths: tuple[Sequence[str], Sequence[str]] = ((), ())
    """The paths of all inputs and of all outputs, if they are known."""
    bounded: Callable[[Collection[int]], Mapping[int, Bounded]] = _nothing
    """Finds, for outputs by number, the functions with bounds that make them."""

    @np.errstate(all="ignore")  # NaN, infinities and overflows are expected, not warned of
    def remarks(self) -> tuple[Remark, ...]:
        """Return the remarks on outputs and inputs about which the golden shows nothing."""
        outputs = [Output(leaf) for leaf in self.outputs]
        kinds: set[InputsKind] = set()
        without_effect: dict[int, bool] = {}
        for run, leaves in self.runs:
            kinds.add(run.kind)
            for output, leaf in zip(outputs, leaves, strict=True):
                output.see(run, leaf)
            if run.is_alone:
                has_effect = any(set(run.changed) & output.changed_by for output in outputs)
                without_effect |= {n: without_effect.get(n, True) and not has_effect for n in run.changed}
        for leaves in self.moved:
            for output, leaf in zip(outputs, leaves, strict=True):
                output.see_moved(leaf)
        for leaves in self.calls:
            for output, leaf in zip(outputs, leaves, strict=True):
                output.see_call(leaf)
        constant = {n: self._input(n) for n in self.used if _is_constant(self.inputs[n])}
        is_uniform = "alone" in kinds and "other" not in kinds  # no input has another one of its kind
        for output in outputs:
            output.varies |= is_uniform
        texts = [output.remark(constant, self._lost_as(n, output)) for n, output in enumerate(outputs)]
        maybe = [n for n, output in enumerate(outputs) if not texts[n] and output.may_be_saturated]
        for number, made in (self.bounded(maybe) if maybe else {}).items():
            texts[number] = outputs[number].saturated(made)
        found = [Remark(self._output(number), text) for number, text in enumerate(texts) if text]
        # In a further call an input may have an effect; and where no output shows anything, no input can have one.
        hidden = [] if self.calls or all(texts) else [n for n, is_hidden in without_effect.items() if is_hidden]
        found += self._of_inputs(hidden)
        if is_uniform:
            found += [Remark(name, _all_alike(self.inputs[n])) for n, name in constant.items()]
        return tuple(found)

    def _of_inputs(self, hidden: Sequence[int]) -> Iterator[Remark]:
        for number, leaf in enumerate(self.inputs):
            if not leaf.data.size or leaf.dtype == "float0":
                continue
            if number not in self.used:
                yield Remark(self._input(number), "no output depends on this input: is it meant to be unused?")
            elif number in hidden:
                what = "choose inputs for which it has an effect, such as another flag or mask"
                yield Remark(self._input(number), f"no output changes with this input: {what}")

    def _lost_as(self, number: int, output: Output) -> str:
        """Return the name of an input that is infinite or NaN in the same elements as an output; "" for none.

        The function may return such an input unchanged, for example the best result so far before the first step. An
        input whose path ends with the name of the output is preferred. Any other input must have the same values as the
        output.
        """
        if output.finite.all():
            return ""
        end = _steps(self._output(number))[1:][-1:]
        names = {n: self._input(n) for n in self.used}
        has_name = bool(end) and not end[0][1:-1].isdecimal()  # an index says nothing
        alike = [n for n, name in names.items() if has_name and _steps(name)[-1:] == end]
        found = [n for n in alike if output.is_lost_as(self.inputs[n], same_values=False)]
        found += [n for n in names if output.is_lost_as(self.inputs[n], same_values=True)]
        return names[found[0]] if found else ""

    def _input(self, number: int) -> str:
        return self.paths[0][number] if self.paths[0] else f"input {number}"

    def _output(self, number: int) -> str:
        return self.paths[1][number] if self.paths[1] else f"output {number}"


def _is_constant(leaf: Leaf) -> bool:
    return leaf.data.size > 1 and leaf.dtype not in {*KEYS, "float0"} and has_one_value(leaf.numpy())


def _all_alike(leaf: Leaf) -> str:
    """Return the remark on an input whose elements are all equal, so that similar inputs cannot be made from it."""
    what = f"all {plural(leaf.data.size, 'element')} of this input are {_text(leaf.numpy().reshape(-1)[0])}"
    return f"{what}: choose numbers that differ, which show how outputs depend on them"


# --- of a golden ------------------------------------------------------------------------------------------------------


class OtherInputs:
    """The runs of a golden's plain call with other inputs, and what they show.

    These runs need no further compilation, and do not count for the golden's noise. A run that fails is left out.
    """

    def __init__(self, golden: Golden, plain: CheckRequest, folder: Path) -> None:
        artifact = golden.read_artifact()
        envelope = artifact.envelope
        self._golden = golden
        self._plain = Path(plain.outputs or "")
        self._inputs = from_npz(Path(plain.inputs))
        self._used = _used(artifact, len(self._inputs))
        self._runs: dict[str, OtherRun] = {}
        # A program with ordered effects runs once: each further run would be compiled.
        can_run = plain.outputs is not None and not plain.name and not (envelope and envelope.ordered_effects)
        self.variants = tuple(self._write_variants(plain, folder)) if can_run else ()
        self._ran: list[VariantRequest] = []

    def _write_variants(self, plain: CheckRequest, folder: Path) -> Iterator[VariantRequest]:
        folder.mkdir(parents=True)
        given = sum(leaf.data.nbytes for leaf in self._inputs)
        given += sum(leaf.data.nbytes for leaf in self._golden.outputs())
        for run, leaves in other_runs(self._inputs, self._used, MOST_BYTES // max(given, 1)):
            if not run.changed:
                continue
            self._runs[run.name] = run
            path = folder / f"{run.name}.inputs.npz"
            path.write_bytes(to_npz(leaves))
            yield VariantRequest(run.name, str(path), str(folder / f"{run.name}.npz"), limited=True)

    def ended(self, reply: Reply) -> bool:
        """Record how a process that ran these variants ended, and return whether one of the variants ended the process.

        No later process runs these variants again, even if they had not run yet. Only if a call of the golden itself
        ended the process, all variants run again.
        """
        if reply.end != "ok" and not reply.variant:
            return False
        names = [variant.name for variant in self.variants]
        is_own = reply.end != "ok" and reply.variant in names
        ran = self.variants[: names.index(reply.variant)] if is_own else self.variants
        self._ran += [variant for variant in ran if variant.name not in reply.failed]
        self.variants = ()
        return is_own

    def remarks(self, moved: Iterable[VariantRequest]) -> tuple[Remark, ...]:
        """Return the remarks on what the golden does not show; empty if only shapes are compared.

        `moved` are the runs with inputs moved by a unit in the last place.
        """
        runs = ((self._runs[one.name], from_npz(Path(one.outputs))) for one in self._ran)
        after = (from_npz(Path(one.outputs)) for one in moved)
        return _remarks(self._golden, self._inputs, from_npz(self._plain), runs, after)


def remarks_without_runs(golden: Golden) -> tuple[Remark, ...]:
    """Return the remarks on a stored golden that follow from its files alone, such as remarks on unused inputs."""
    return () if golden.manifest.options.without_outputs else _remarks(golden, golden.inputs(), golden.outputs())


def _remarks(
    golden: Golden,
    inputs: Sequence[Leaf],
    outputs: Sequence[Leaf],
    runs: Iterable[tuple[OtherRun, Sequence[Leaf]]] = (),
    moved: Iterable[Sequence[Leaf]] = (),
) -> tuple[Remark, ...]:
    if golden.compared_as.comparison.compare == "shape":
        return ()  # no number of it is compared
    artifact = golden.read_artifact()
    files = [check.outputs for check in golden.manifest.checks if check.inputs and check.outputs and not check.vjp]
    return Seen(
        inputs=inputs,
        used=_used(artifact, len(inputs)),
        outputs=outputs,
        runs=runs,
        moved=moved,
        calls=[from_npz(golden.folder / file) for file in files],
        paths=leaf_paths(golden.manifest, artifact),
        bounded=partial(bounded_outputs, artifact),
    ).remarks()


def _used(artifact: Artifact, inputs: int) -> list[int]:
    """Return the indexes of the inputs that the program of an artifact uses."""
    envelope = artifact.envelope
    return [number for number in range(inputs) if envelope is None or number in envelope.module_kept_var_idx]


def is_named(leaf: str, names: Iterable[str]) -> bool:
    """Return whether one of these names is the path `leaf`, or the path of a subtree that contains this leaf."""
    return any(leaf == name or leaf.startswith((f"{name}[", f"{name}.")) for name in names)


def unknown_leaves(names: Iterable[str], leaves: Sequence[str]) -> list[str]:
    """Return the names that are neither the path of a leaf nor the path of a subtree with leaves."""
    return [name for name in names if not any(is_named(leaf, [name]) for leaf in leaves)]


def _steps(path: str) -> list[str]:
    """Return the steps of a path in a tree: `args`, `[0]`, `['w']` and `.mean` of `args[0]['w'].mean`."""
    steps: list[str] = _STEP.findall(path)
    return steps if "".join(steps) == path else [path]


_STEP = re.compile(r"""\A\w+|\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\]'"]*)\]|\.[^.\[]+""")


def whole_trees(names: Sequence[str], leaves: Iterable[str]) -> list[str]:
    """Return the names of leaves, with the name of a subtree in place of two or more that are all its leaves.

    `leaves` are the paths of all leaves.
    """

    def parts(path: str) -> list[str]:
        steps = _steps(path)
        first = 1 if steps[0] == "result" else 2  # all arguments together are no part of a tree that is one's own
        return ["".join(steps[:count]) for count in range(first, len(steps))]

    held, named = (Counter(part for path in paths for part in parts(path)) for paths in (leaves, names))
    whole = {part for part, count in named.items() if 1 < count == held[part]}
    return list(dict.fromkeys(next((part for part in parts(name) if part in whole), name) for name in names))


def remark_lines(
    remarks: Iterable[Remark],
    constant: Iterable[str] = (),
    leaves: Iterable[str] = (),
    *,
    whole: bool = False,
    how_to_see: str = "",
) -> list[str]:
    """Return the remarks as lines, without those on leaves that are meant to be constant.

    Leaves with the same remark share a line, and a subtree stands for all its leaves. If the leaves are many, three are
    named. After `MOST_LINES` lines, one line counts the rest.

    Args:
        remarks: the remarks.
        constant: the leaves, or subtrees, that are meant to be constant.
        leaves: the paths of all leaves of the arguments and results.
        whole: whether to name all leaves, in as many lines as that takes.
        how_to_see: the option that shows what is left out, such as ``-v``.
    """
    constant, leaves = tuple(constant), tuple(leaves)
    named: dict[str, list[str]] = {}
    for remark in remarks:
        if not is_named(remark.leaf, constant):
            named.setdefault(remark.text, []).append(remark.leaf)
    see = f" ({how_to_see} names all)" if how_to_see else ""
    lines = []
    for text, names in named.items():
        shorter = whole_trees(names, leaves)
        shown = ", ".join(shorter) if whole else few(shorter)
        lines.append(f"{shown}{'' if shown == ', '.join(shorter) else see}: {text}")
    more = len(lines) - MOST_LINES
    if whole or more <= 1:
        return lines
    return [*lines[:MOST_LINES], f"and {more} more remarks on leaves that show nothing{see}"]


MEANT = (
    "Where a leaf is meant to be constant, unused, infinite or NaN, such as a step counter or a gradient that is zero, "
    "name it, or the part of a tree that holds it, in the marker of its test, and leave out any other leaf:"
)
"""The advice in case a remark is not about a fault, printed once, below all remarks; `meant_line` follows it."""


def meant_line(
    test: str, remarks: Iterable[Remark], constant: Iterable[str], leaves: Iterable[str], *, whole: bool = False
) -> str:
    """Return a line with a test and the keyword `constant` for its marker, which names the leaves that have remarks.

    Args:
        test: the test. Its parameters are left out of the line, since one marker is for all of them.
        remarks: the remarks.
        constant: the leaves, or subtrees, that the marker names already.
        leaves: the paths of all leaves of the arguments and results.
        whole: whether to name all leaves, however many there are.
    """
    constant = tuple(constant)
    new = list(dict.fromkeys(remark.leaf for remark in remarks if not is_named(remark.leaf, constant)))
    names = [*constant, *whole_trees(new, tuple(leaves))]
    shown = names if whole else names[: len(constant) + MOST_LINES]
    listed = ", ".join(repr(name) if '"' in name or "\\" in name else f'"{name}"' for name in shown)
    more = len(names) - len(shown)
    rest = f" and {more} more (-v names all)" if more else ""
    return f"  {test.partition('[')[0]}: export_compat(constant=[{listed}]){rest}"

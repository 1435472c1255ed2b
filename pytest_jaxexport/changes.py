"""The differences between what a test exports now and its golden, as lines of a message.

First comes what counts as a change, then jaxprs and StableHLO side by side. Renamed variables are not a difference.
"""

import difflib
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap, zip_longest
from pathlib import Path
from typing import NamedTuple

from export_core.artifact import ArtifactError, read_bytes
from export_core.artifact.export_changes import (
    constant_arrays_differ,
    export_changes,
    independent_changes,
    operations_that_differ,
)
from export_core.base.text import few, plural
from export_core.base.tolerances import ROUNDING
from export_core.base.untrusted import read_regular
from export_core.export.produce import ProducedGolden, outputs_for
from export_core.goldens import Check, Golden, GoldenError, Leaf
from export_core.goldens.arrays import from_npz
from export_core.goldens.manifest import JaxprSummary, Manifest
from export_core.goldens.store import ARTIFACT, JAXPR_TEXT, OUTPUTS
from export_core.numbers.compare import Difference, GoldenOutputs
from export_core.numbers.elements import bits_of, nearly_same
from export_core.numbers.leaf_paths import call_in_words, leaf_paths
from export_core.readers.hardware import instructions_used, processors


class Changes(NamedTuple):
    """The differences of an export from a golden, as lines of a message."""

    other: list[str]  # Signature, options and names, numbers, in this order.
    export: list[str]
    """The export itself: fields of the envelope, operations of the module. Empty if `other` has the reason."""
    flags: list[str]
    """Settings of jax that may be the reason, with their variables, and other processors: not a change by
    themselves."""


_TREES = {"in_tree": "arguments", "out_tree": "results"}
"""What the leaves of each tree of a signature are, by the field of the export that has the tree."""


def changes_since(produced: ProducedGolden, wanted: GoldenOutputs) -> Changes:
    """Return how an export differs from a golden.

    `wanted` has the golden, and the rules by which this run compares numbers with it.
    """
    now, then = produced.manifest, wanted.golden.manifest
    parts = ("inputs", "outputs", "in_tree", "out_tree")
    signatures = {what: (getattr(then.signature, what), getattr(now.signature, what)) for what in parts}
    changed = {what: (old, new) for what, (old, new) in signatures.items() if old != new}
    named = _changed_leaves(produced, wanted.golden) if changed.keys() & {*_TREES} else {}
    changes = [
        named.get(what) or f"signature: {what}: golden {_listed(old)}; now {_listed(new)}"
        for what, (old, new) in changed.items()
    ]
    # Where types differ the signature says so, and numbers from other inputs would differ anyway.
    comparable = changed.keys() <= {"out_tree"}
    if now.writer.id == then.writer.id:
        changes += _changed_options_and_names(produced, wanted.golden)
    export = [] if changes else _changed_export(produced, wanted.golden)
    found: list[tuple[str, Difference]] = []
    if comparable and produced.outputs is not None and not then.options.without_outputs:
        found += _changed_numbers(produced, produced.outputs, wanted)
    numbers = [f"{what}: {difference}" for what, difference in found]
    if export and now.writer.id == then.writer.id:  # the numbers changed because of it, however little
        numbers = [_without_rounding(text) for text in numbers]
    settings = changed_settings(now, then)
    flags = [
        f"{flag}: golden {old}; now {new}{f', see {flag.upper()}' if flag.upper() in os.environ else ''}"
        for flag, (old, new) in settings.items()
    ]
    if unset := {flag: old for flag, (old, _) in settings.items() if flag.upper() not in os.environ}:
        calls = "; ".join(f"jax.config.update({flag!r}, {old!r})" for flag, old in unset.items())
        flags.append(_SETTINGS.format(calls))
    is_own, is_beyond = now.writer.id == then.writer.id, any(difference.is_beyond_rounding for _, difference in found)
    both = processors(then.computed_on, os.environ) if numbers and is_own else ""
    if both and not is_beyond:
        flags.append(f"processor: {both}: numbers may depend on it")
    if numbers and is_own and _constant_arrays_differ(produced, wanted.golden):
        flags.append(_MAY_BE_RANDOM)
    if is_own and is_beyond and then.reproducible and not (changes or export):
        flags.append(_IN_DOUBT.format(shlex.quote(str(wanted.golden.folder))))
    return Changes([*changes, *numbers], export, flags)


def _changed_leaves(produced: ProducedGolden, reference: Golden) -> dict[str, str]:
    """Return a line for each tree of arguments or results whose leaves have other paths, such as other keys of a dict.

    The lines are returned by tree. A tree is missing if its paths are the same, or not known.
    """
    try:
        before = leaf_paths(reference.manifest, reference.read_artifact())
        after = leaf_paths(produced.manifest, produced.artifact)
    except (ArtifactError, GoldenError):  # its replay reports it
        return {}
    lines = {}
    for (tree, leaves), old, new in zip(_TREES.items(), before, after, strict=True):
        for line in _changed_names(f"signature: {leaves}", new, old):
            lines[tree] = line
    return lines


def changed_settings(now: Manifest, then: Manifest) -> dict[str, tuple[object, object]]:
    """Return the settings of jax that differ from a golden's, as (the golden's value, the present value) by name.

    For a golden by another writer, which may have other defaults, only settings made by an environment variable count.
    """
    is_own = now.writer.id == then.writer.id
    return {
        flag: (then.flags[flag], value)
        for flag, value in now.flags.items()
        if then.flags.get(flag, value) != value and (is_own or flag.upper() in os.environ)
    }


_SETTINGS = (
    "settings: they may be the only cause. A library may set one where it is imported, so that it depends on which "
    "test files are collected. Set it in a conftest.py for all tests, as the golden has it, {}, or as you want it."
)
_MAY_BE_RANDOM = (
    "constants: they differ from the golden's. If you changed nothing, they are random, and differ in each run, after "
    "an update too: seed what the test closes over, or pass it as an argument."
)
_IN_DOUBT = (
    "golden: the program is the golden's, and no rounding of a processor is known to give such numbers. Unless the "
    "test is not deterministic, the golden's stored outputs are in doubt: look at the history of its folder with "
    "`git log -- {}`, and restore it if they were changed."
)


def _constant_arrays_differ(produced: ProducedGolden, reference: Golden) -> bool:
    if produced.manifest.files[ARTIFACT] == reference.manifest.files[ARTIFACT]:
        return False
    try:
        return constant_arrays_differ(reference.read_artifact(), produced.artifact)
    except (ArtifactError, GoldenError):  # its replay reports it
        return False


def _without_rounding(text: str) -> str:
    """Return the text of a difference without the line that says that the difference looks like rounding."""
    guess = f"looks like: {ROUNDING}"
    return "\n".join(line for line in text.split("\n") if not line.strip().startswith(guess))


def _changed_export(produced: ProducedGolden, reference: Golden) -> list[str]:
    """Return how the export itself differs from a golden, as lines about its envelope and its operations.

    For a golden by the same writer any difference counts, else only one that another release of jax cannot cause.
    """
    now, then = produced.manifest, reference.manifest
    if not then.reproducible or now.files[ARTIFACT] == then.files[ARTIFACT]:
        return []
    try:
        paths = leaf_paths(now, produced.artifact)
        if now.writer.id != then.writer.id:
            return independent_changes(reference.read_artifact(), produced.artifact, paths=paths)
        exact = then.instruction_set == instructions_used(os.environ)
        return export_changes(reference.read_artifact(), produced.artifact, exact=exact, paths=paths)
    except ArtifactError:  # its replay reports it
        return []


def _changed_options_and_names(produced: ProducedGolden, reference: Golden) -> Iterator[str]:
    """Yield the changes of options, custom calls, factors of matrices, checks and leaves, each as a line.

    The golden must be by the same writer, since another one may lower the same function to other custom calls.
    """
    now, then = produced.manifest, reference.manifest
    options = []
    for name in now.options.__struct_fields__:
        new, old = getattr(now.options, name), getattr(then.options, name)
        # Calls are compared below, and outputs by their numbers; `nothing_to_compare` holds only a reason.
        if name in ("allow", "nothing_to_compare"):
            continue
        if name == "disabled_checks":  # the reasons may be reworded
            new, old = sorted(new), sorted(old)
        if name == "without_outputs":  # its reason may be reworded too
            new, old = bool(new), bool(old)
        if new != old:
            options.append(f"{name}: golden {_listed(old)}; now {_listed(new)}")
    yield from options
    if not options:
        yield from _changed_names("custom calls", now.custom_calls, then.custom_calls)
    if added := [group for group in then.factors if group not in now.factors]:
        yield f"factors: golden {_listed([f'{group.compare} {group.outputs}' for group in added])}; now none of these"
    yield from _changed_names("checks", *([check.name for check in side.checks] for side in (now, then)))
    yield from _changed_names("leaves", *(side.flattened.paths if side.flattened else () for side in (now, then)))


def _changed_numbers(
    produced: ProducedGolden, values: Sequence[Leaf], wanted: GoldenOutputs
) -> Iterator[tuple[str, Difference]]:
    reference = wanted.golden
    inputs = reference.inputs()
    if bits_of(produced.inputs) != bits_of(inputs):
        # The test makes other inputs now, perhaps random ones: compare the outputs for the golden's inputs.
        values = outputs_for(produced, inputs)
    difference = wanted.compare(Check("", outputs=OUTPUTS), reference.outputs(), values)
    if not difference.ok:
        yield "numbers", difference
    for check in reference.manifest.checks:  # derivatives and further calls
        if check.inputs is None or check.outputs is None:
            continue
        new_inputs, outputs = produced.files.get(check.inputs), produced.files.get(check.outputs)
        # Other inputs, such as random ones, give other outputs, which cannot be compared.
        if new_inputs is None or outputs is None or new_inputs != reference.content(check.inputs):
            continue
        difference = wanted.compare(check, from_npz(reference.folder / check.outputs), from_npz(outputs))
        if not difference.ok:
            yield f"numbers of {check.name}", difference


def changed_inputs(produced: ProducedGolden, reference: Golden) -> list[str]:
    """Return the example arguments whose values are not the golden's inputs: paths of leaves, then further calls.

    Such arguments have no effect, since outputs are compared for the golden's inputs. Empty if types differ, which is
    reported as a change of the signature, and for inputs that were made by rule.
    """
    now, then = produced.manifest, reference.manifest
    if now.signature.inputs != then.signature.inputs or then.inputs_made:
        return []
    paths, _ = leaf_paths(now, produced.artifact)
    pairs = zip(produced.inputs, reference.inputs(), strict=True)
    other = [number for number, (new, old) in enumerate(pairs) if not nearly_same(new, old)]
    names = [paths[number] if number < len(paths) else f"argument {number}" for number in other]
    for check in then.checks:
        if check.vjp or check.inputs is None or check.inputs not in produced.files:
            continue
        new_leaves, old_leaves = from_npz(produced.files[check.inputs]), from_npz(reference.folder / check.inputs)
        if not all(starmap(nearly_same, zip_longest(new_leaves, old_leaves))):
            names.append(call_in_words(check.name))
    return names


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, (tuple, list)) else str(value)


def _changed_names(what: str, now: Sequence[str], then: Sequence[str]) -> list[str]:
    gone, new = sorted(set(then) - set(now)), sorted(set(now) - set(then))
    return [f"{what}: gone {few(gone, 8) or 'none'}; new {few(new, 8) or 'none'}"] if gone or new else []


WIDTH = 200  # Characters of a line that are shown. jax writes some parameters without a break.

CONTEXT = 2
TOO_LONG = 20_000  # Lines above which names are not followed: the alignment takes time in the square of what differs.

_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_BINDER = re.compile(r"(?<!\S)(?!(?:inf|nan):)([a-z]+):(?=[a-z])")
_NAME = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|(?<![^\s(])([a-z]+)(?=[ ,):]|$)")


def source_difference(
    folder: Path, files_now: Mapping[str, bytes], then: Manifest, now: Manifest, *, operations: bool = True
) -> list[str]:
    """Return lines that show how jaxpr and module of an export differ from a golden's; empty if both are equal.

    `folder` is the folder of the golden. A file that is missing there is not compared, such as the jaxpr of a golden
    that was added without its source. With `operations`, differing operations of StableHLO are shown too.
    """
    lines = summary_difference(then.jaxpr, now.jaxpr)
    compared = [(JAXPR_TEXT, "jaxpr", "- golden, + now", _jaxprs_differ)]
    if operations:
        compared.append((ARTIFACT, "StableHLO", "golden → now, - only golden, + only now", _operations_differ))
    for name, what, signs, difference in compared:
        try:
            old, new = read_regular(folder / name), files_now.get(name)
        except OSError:
            continue
        if new is not None and (differing := difference(old, new)):
            lines += [f"{what} ({signs}; {folder / name}):", *(f"  {line}" for line in differing)]
    # Another jax lowers the same source to other operations: that is no change of the test.
    if lines and then.writer.id != now.writer.id:
        lines.append(
            f"The golden is by jax {then.writer.jax}, this is jax {now.writer.jax}: "
            "part of these differences may be jax's own."
        )
    return lines


def summary_difference(then: JaxprSummary | None, now: JaxprSummary | None) -> list[str]:
    """Return a line each for changed primitives, constants and effects: ``primitives: tanh 2 → 3; new: erf 1``."""
    if then is None or now is None:
        return []
    lines = []
    changed = [
        f"{name} {count} → {now.primitives[name]}"
        for name, count in sorted(then.primitives.items())
        if now.primitives.get(name, count) != count
    ]
    new = [f"{name} {count}" for name, count in sorted(now.primitives.items()) if name not in then.primitives]
    gone = [f"{name} {count}" for name, count in sorted(then.primitives.items()) if name not in now.primitives]
    parts = [", ".join(changed), f"new: {', '.join(new)}" if new else "", f"gone: {', '.join(gone)}" if gone else ""]
    if any(parts):
        lines.append(f"primitives: {'; '.join(filter(None, parts))}")
    for what, old, today in (("constants", then.constants, now.constants), ("effects", then.effects, now.effects)):
        if Counter(old) != Counter(today):
            lines.append(f"{what}: golden {_counted(old)}; now {_counted(today)}")
    return lines


def _counted(names: tuple[str, ...]) -> str:
    return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in Counter(names).items()) or "none"


def _jaxprs_differ(then: bytes, now: bytes) -> list[str]:
    return jaxpr_difference(*(data.decode(errors="backslashreplace") for data in (then, now)))


def _operations_differ(then: bytes, now: bytes) -> list[str]:
    try:
        return operations_that_differ(read_bytes(then), read_bytes(now))
    except ArtifactError:  # its replay reports it
        return []


def jaxpr_difference(then: str, now: str, *, most: int = 60) -> list[str]:
    """Return the lines of a unified diff of two jaxprs; empty if only the names of variables differ.

    Variables of `now` get the names that they have in `then`. A new variable whose name is in use gets a prime: ``c'``.
    After `most` lines, a last line says how many are left out.
    """
    old, new = then.splitlines(), now.splitlines()
    if len(old) + len(new) <= TOO_LONG:
        new = _with_old_names(old, new, _bound(then), _bound(now))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=CONTEXT))[2:]  # the first two would name two files
    shown = [line if len(line) <= WIDTH else f"{line[:WIDTH]}… ({len(line) - WIDTH} more characters)" for line in lines]
    if len(shown) <= most:
        return shown
    return [*shown[:most], f"… {plural(len(shown) - most, 'more line')} of this difference"]


def _bound(jaxpr: str) -> frozenset[str]:
    """Return the names of the variables that a jaxpr binds. Each is bound once, even across inner jaxprs."""
    return frozenset(_BINDER.findall(_QUOTED.sub("''", jaxpr)))


def _with_old_names(then: list[str], now: list[str], old: frozenset[str], new: frozenset[str]) -> list[str]:
    """Return the lines of the jaxpr `now` with its variables renamed as in `then`. `old` and `new` are the variables.

    Lines are paired by their text without names, and then the names in two paired lines by position. The first pair
    with a name decides, which is mostly the line that binds the variable.
    """
    partner: dict[str, str] = {}
    taken: set[str] = set()
    for left, right in _pairs([_blank(line, old) for line in then], [_blank(line, new) for line in now]):
        was, names = _names(then[left], old), _names(now[right], new)
        if len(was) == len(names):
            for before, name in zip(was, names, strict=True):
                if name not in partner and before not in taken:  # one to one, or two names would become one
                    partner[name] = before
                    taken.add(before)
    known = {name for line in then for name in _names(line, old)}

    def renamed(match: re.Match[str]) -> str:
        name = match[1]
        if name not in new:
            return match[0]
        return partner.get(name) or (f"{name}'" if name in known else name)

    return [_NAME.sub(renamed, line) for line in now]


def _names(line: str, bound: frozenset[str]) -> list[str]:
    return [match[1] for match in _NAME.finditer(line) if match[1] in bound]


def _blank(line: str, bound: frozenset[str]) -> str:
    return _NAME.sub(lambda match: "_" if match[1] in bound else match[0], line)


def _pairs(then: list[str], now: list[str]) -> Iterator[tuple[int, int]]:
    """Yield (index in `then`, index in `now`) of paired lines: equal ones, and ones replaced by as many other lines."""
    # Without autojunk, which ignores lines that occur often: without their names, many lines of a program are equal.
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, then, now, autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and i2 - i1 == j2 - j1):
            yield from zip(range(i1, i2), range(j1, j2), strict=True)

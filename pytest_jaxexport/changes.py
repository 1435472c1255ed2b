"""What differs between what a test exports now and its golden, as lines of a message."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from export_core.artifact import ArtifactError
from export_core.artifact.export_changes import export_changes, independent_changes
from export_core.export.produce import ProducedGolden, outputs_for
from export_core.goldens import Check, Golden, Leaf
from export_core.goldens.arrays import from_npz
from export_core.goldens.store import ARTIFACT, OUTPUTS
from export_core.matrix.comparisons import GoldenOutputs
from export_core.numbers.elements import bits_of
from export_core.readers.hardware import instruction_set


class Changes(NamedTuple):
    """What differs from a golden, as lines of a message."""

    other: list[str]  # Signature, options and names, numbers, in this order.
    export: list[str]
    """The export itself: fields of the envelope, operations of the module. Empty where `other` has the reason."""
    flags: list[str]  # Settings of jax that may be the reason, with their variables; they are no change by themselves.


def changes_since(produced: ProducedGolden, wanted: GoldenOutputs) -> Changes:
    """What differs from the golden. `wanted` has it, and how this run compares its numbers."""
    now, then = produced.manifest, wanted.golden.manifest
    parts = ("inputs", "outputs", "in_tree", "out_tree")
    signatures = {what: (getattr(then.signature, what), getattr(now.signature, what)) for what in parts}
    changed = {what: (old, new) for what, (old, new) in signatures.items() if old != new}
    changes = [f"signature: {what}: golden {old}, now {new}" for what, (old, new) in changed.items()]
    # Where types differ the signature says so, and numbers from other inputs would differ anyway.
    comparable = changed.keys() <= {"out_tree"}
    if now.writer.id == then.writer.id:
        changes += _changed_options_and_names(produced, wanted.golden)
    export = [] if changes else _changed_export(produced, wanted.golden)
    if comparable and produced.outputs is not None and not then.options.without_outputs:
        changes += _changed_numbers(produced, produced.outputs, wanted)
    # Those of another writer have other defaults: of these only what a variable sets.
    flags = [
        f"{flag}: golden {then.flags[flag]}; now {value}, see {flag.upper()}"
        for flag, value in now.flags.items()
        if then.flags.get(flag, value) != value and (now.writer.id == then.writer.id or flag.upper() in os.environ)
    ]
    return Changes(changes, export, flags)


def _changed_export(produced: ProducedGolden, reference: Golden) -> list[str]:
    """What one writer exports in another way, or of another writer what no release of jax changes."""
    now, then = produced.manifest, reference.manifest
    if not then.reproducible or now.files[ARTIFACT] == then.files[ARTIFACT]:
        return []
    try:
        if now.writer.id != then.writer.id:
            return independent_changes(reference.read_artifact(), produced.artifact)
        exact = then.instruction_set == instruction_set()
        return export_changes(reference.read_artifact(), produced.artifact, exact=exact)
    except ArtifactError:  # its replay says so
        return []


def _changed_options_and_names(produced: ProducedGolden, reference: Golden) -> Iterator[str]:
    """What differs in how it was exported. Another jaxlib may lower the same function to other targets."""
    now, then = produced.manifest, reference.manifest
    options = []
    for name in now.options.__struct_fields__:
        new, old = getattr(now.options, name), getattr(then.options, name)
        if name in ("allow", "disabled_checks"):  # the reasons may be reworded
            new, old = sorted(new), sorted(old)
        if name == "without_outputs":  # its reason too
            new, old = bool(new), bool(old)
        if new != old:
            options.append(f"{name}: golden {_listed(old)}; now {_listed(new)}")
    yield from options
    if not options:
        yield from _changed_names("custom calls", now.custom_calls, then.custom_calls)
    yield from _changed_names("checks", *([check.name for check in side.checks] for side in (now, then)))
    yield from _changed_names("leaves", *(side.flattened.paths if side.flattened else () for side in (now, then)))


def _changed_numbers(produced: ProducedGolden, values: Sequence[Leaf], wanted: GoldenOutputs) -> Iterator[str]:
    reference = wanted.golden
    inputs = reference.inputs()
    if bits_of(produced.inputs) != bits_of(inputs):
        # The test makes other inputs now, perhaps random ones: compare the outputs for the golden's inputs.
        values = outputs_for(produced, inputs)
    difference = wanted.compare(Check("", outputs=OUTPUTS), reference.outputs(), values)
    if not difference.ok:
        yield f"numbers: {difference}"
    for check in reference.manifest.checks:  # derivatives and further calls
        if check.inputs is None or check.outputs is None:
            continue
        new_inputs, outputs = produced.files.get(check.inputs), produced.files.get(check.outputs)
        # Other inputs, such as random ones, give other outputs, which say nothing.
        if new_inputs is None or outputs is None or new_inputs != reference.content(check.inputs):
            continue
        difference = wanted.compare(check, from_npz(reference.folder / check.outputs), from_npz(outputs))
        if not difference.ok:
            yield f"numbers of {check.name}: {difference}"


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, (tuple, list)) else str(value)


def _changed_names(what: str, now: Sequence[str], then: Sequence[str]) -> list[str]:
    gone, new = sorted(set(then) - set(now)), sorted(set(now) - set(then))
    return [f"{what}: gone {', '.join(gone) or 'none'}; new {', '.join(new) or 'none'}"] if gone or new else []

"""The lines of `jaxexport diff`: everything in which two artifacts differ."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from export_core.artifact import Artifact, read
from export_core.artifact.envelope.formats import format_in_words
from export_core.artifact.readers import Reader
from export_core.base.errors import ExportCompatError
from export_core.base.leaf_names import in_brackets, path_at
from export_core.base.text import plural, printable
from export_core.features.inspect.artifact_facts import (
    Inspection,
    ModuleFacts,
    describe,
)
from export_core.features.inspect.audit_screen import PolicyOfGoldens
from export_core.features.inspect.screen import (
    LINE,
    custom_call,
    joined,
    load_checks,
    need_in_words,
    size,
    who_wrote,
)
from export_core.policy.terms import Terms

if TYPE_CHECKING:
    from export_core.policy.load_check import LoadCheck


def compare(
    terms: Terms, readers: Sequence[Reader], of_goldens: PolicyOfGoldens, old: str, new: str, before: Artifact
) -> tuple[bool | None, str]:
    """Compare two artifacts, and return whether they are the same byte for byte, and lines on what differs.

    If both belong to goldens, their inputs must be equal too, and their outputs within what is allowed.

    The first value is None if the second artifact cannot be read; the text then says why.

    Args:
        terms: The releases and the allowed calls.
        readers: For each of these readers, whether it loads the artifacts is compared too.
        of_goldens: The policy by which outputs are compared.
        old: The first file, or the first folder of artifacts.
        new: The second file, or the second folder, in which the second artifact has the same relative path.
        before: The first artifact.

    Raises:
        ArtifactError: A module of the first artifact cannot be read.
    """
    other = new + before.name.removeprefix(old)
    if before.name != old and not os.path.lexists(other):
        return False, printable(f"only in the first folder: {before.name}") + "\n"
    try:
        after = read(other)
        is_fine, numbers = _numbers(before, after, of_goldens)
        if before.data == after.data:
            lines = [f"{before.name} and {other} are the same, byte for byte", *numbers]
            return is_fine, "".join(f"{printable(line)}\n" for line in lines)
        from export_core.artifact.export_changes import operations_that_differ

        then, now = (describe(artifact, terms, whole=False, runtimes=False) for artifact in (before, after))
        lines = [f"{sign} {facts.file}, {size(facts.nbytes)}" for sign, facts in (("-", then), ("+", now))]
        loads = (load_checks(artifact, terms, readers) for artifact in (before, after))
        of_paths = [*_differing_paths(before, after)]
        changes = changes_between(then, now, *loads)
        for name, was, became in [*of_paths, *changes]:
            if any(name == f"tree of {path.split()[2]}s" for path, *_ in of_paths):
                continue  # its paths say it
            name = _with_path(name, before, after)
            short = len(name) + len(was) + len(became) < LINE - 5
            lines += [f"{name}: {was} → {became}"] if short else [f"{name}:", f"  - {was}", f"  + {became}"]
        operations = operations_that_differ(before, after)
        lines += operations
    except ExportCompatError as error:
        return None, str(error)
    if not of_paths and not operations and all(_is_of_file(name) for name, *_ in changes):
        lines.append(
            "program: the same. Not compared: locations, and the names of private functions, arguments and results."
        )
    return False, "".join(f"{printable(line)}\n" for line in (*lines, *numbers))


def _numbers(before: Artifact, after: Artifact, of_goldens: PolicyOfGoldens) -> tuple[bool, list[str]]:
    if {os.path.basename(one.name) for one in (before, after)} != {"artifact.jaxexport"}:  # noqa: PTH119 - as text
        return True, []  # without NumPy: no artifact of a golden
    from export_core.features.inspect.golden_numbers import compare_goldens

    return compare_goldens(before, after, of_goldens.policy)


_OF_FILE = ("written by", "written as", "envelope format")


def _is_of_file(name: str) -> bool:
    """Return whether the fact with this name is about the file, its writer or its readers, not about the program."""
    return name in _OF_FILE or name.startswith("in ")


def _differing_paths(before: Artifact, after: Artifact) -> Iterator[tuple[str, str, str]]:
    """Yield the arguments and results whose paths in the trees differ between two artifacts, with both paths."""
    if before.envelope is None or after.envelope is None:
        return
    for kind in ("argument", "result"):
        trees = [getattr(one, f"{kind}_paths") for one in (before.envelope, after.envelope)]
        for number, (was, now) in enumerate(zip(*trees, strict=False)):
            if was != now:
                yield f"path of {kind} {number}", was, now


_NUMBERED = r"(?:sharding of )?(argument|result) (\d+)"


def _with_path(name: str, before: Artifact, after: Artifact) -> str:
    """Return the name of a fact, with the path of its argument or result unless the artifacts differ in it."""
    if not (match := re.fullmatch(_NUMBERED, name)):
        return name
    envelopes = [artifact.envelope for artifact in (before, after) if artifact.envelope]
    trees = [one.argument_paths if match[1] == "argument" else one.result_paths for one in envelopes]
    paths = {path for tree in trees if (path := path_at(tree, int(match[2])))}
    return f"{name}{in_brackets(paths.pop())}" if len(paths) == 1 else name


def changes_between(
    old: Inspection, new: Inspection, old_loads: Sequence[LoadCheck] = (), new_loads: Sequence[LoadCheck] = ()
) -> list[tuple[str, str, str]]:
    """Return each fact that differs between two artifacts: its name, the old value, and the new value.

    The load checks of the old and the new artifact are compared too.
    """
    depth = min(len(old.modules), len(new.modules))  # a derivative that only one artifact has is one line
    before = _compared(old, depth) | {f"in {check.reader}": str(check) for check in old_loads}
    after = _compared(new, depth) | {f"in {check.reader}": str(check) for check in new_loads}
    names = sorted({**before, **after}, key=_is_of_file)  # what only the second one has goes before the file's facts
    sides = ((name, before.get(name, "none"), after.get(name, "none")) for name in names)
    return [(name, was, now) for name, was, now in sides if was != now]


def _compared(facts: Inspection, depth: int) -> dict[str, str]:
    """Return the facts about an artifact that are compared, as texts by name, in the order in which they are shown.

    Only the first `depth` modules are included.
    """
    signature, writer = facts.signature, facts.writer
    rows: dict[str, Any] = {
        "kind": facts.kind,
        "function": signature.name,
        **_numbered("argument", signature.inputs),
        "tree of arguments": signature.in_tree,
        **_numbered("result", signature.outputs),
        "tree of results": signature.out_tree,
        "arguments that are used": signature.kept,
        "platforms": facts.platforms,
        "devices": facts.nr_devices,
        **_numbered("sharding of argument", facts.in_shardings),
        **_numbered("sharding of result", facts.out_shardings),
        "ordered effects": facts.ordered_effects,
        "effects": facts.unordered_effects,
        "derivatives": f"to order {facts.vjp_order}",
        "calling convention": facts.calling_convention_version,
        "checks switched off": facts.disabled_checks,
        **{
            f"custom call {call.target}": custom_call(call).removeprefix(call.target).lstrip(": ")
            for call in facts.custom_calls
            if call.count
        },
        **{name: row for module in facts.modules[:depth] for name, row in _module(module)},
        "written by": _writer(facts),
        "written as": writer.producer,
        "envelope format": format_in_words(*writer.formats) if writer.formats else "",
    }
    return {name: _text(value) for name, value in rows.items()}


def _writer(facts: Inspection) -> str:
    """Return the jax and jaxlib that wrote an artifact as text, as far as the artifact shows them."""
    writer = facts.writer
    if facts.nr_devices is None or not (writer.jaxlib or writer.candidates):
        return who_wrote(facts)
    jaxlib = f"jaxlib {writer.jaxlib}" if writer.jaxlib else f"one of jaxlib {joined(writer.candidates)}"
    return f"jax {writer.jax}, {jaxlib}" if writer.jax else jaxlib


def _module(module: ModuleFacts) -> Iterator[tuple[str, str]]:
    of = "" if module.vjp_order == 0 else f" of derivative {module.vjp_order}"
    yield f"needs{of}", need_in_words(module)
    yield f"functions{of}", str(len(module.functions))
    yield f"operations{of}", str(module.operations)
    for name, count in sorted(module.op_counts.items()):
        yield f"operation {name}{of}", f"× {count}"
    constants = module.constants
    if constants:
        total = size(sum(constant.nbytes for constant in constants))
        yield f"constants{of}", f"{plural(len(constants), 'constant')} of 256 bytes or more, {total}"
    # By content and not by place, so that a constant that moved is no difference.
    for (kind, digest), count in Counter((c.type, c.sha256) for c in constants).items():
        yield f"constant {kind} {digest[:12]}{of}", f"× {count}"
    for name, value in sorted(module.attributes.items()):
        yield f"attribute {name}{of}", str(value)


def _numbered(name: str, values: Sequence[Any]) -> dict[str, Any]:
    return {f"{name} {number}": value or "unspecified" for number, value in enumerate(values)}


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return joined(value) or "none"
    return "none" if value is None else str(value)

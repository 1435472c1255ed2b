"""The differences of two artifacts, in the terms that `inspect` uses."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from export_core.base.escaping import printable
from export_core.base.phrases import plural
from export_core.features.inspect.facts import Inspection, ModuleFacts
from export_core.features.inspect.screen import LINE, custom_call, joined, need_in_words, size, who_wrote


def differences(old: Inspection, new: Inspection, operations: Sequence[str] = ()) -> str:
    """Return a line for each thing that differs: its name, what it was, what it is; then these lines of operations."""
    lines = [f"- {old.file}, {size(old.nbytes)}", f"+ {new.file}, {size(new.nbytes)}"]
    depth = min(len(old.modules), len(new.modules))  # a derivative that only one has is one line
    before, after = _rows(old, depth), _rows(new, depth)
    for name in {**before, **after}:
        was, now = before.get(name, "none"), after.get(name, "none")
        if was != now:
            short = len(name) + len(was) + len(now) < LINE - 5
            lines += [f"{name}: {was} → {now}"] if short else [f"{name}:", f"  - {was}", f"  + {now}"]
    lines += operations
    if len(lines) == 2:
        lines.append(
            "The bytes differ, but everything that is compared is the same. "
            "Not compared: locations, and the names of private functions, arguments and results."
        )
    return "".join(f"{printable(line)}\n" for line in lines)


def _rows(facts: Inspection, depth: int) -> dict[str, str]:
    """What is compared, by name, in the order of the screen."""
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
        **{f"custom call {call.target}": custom_call(call) for call in facts.custom_calls if call.count},
        **{name: row for module in facts.modules[:depth] for name, row in _module(module)},
        "written by": who_wrote(facts),
        "written as": writer.producer,
        "envelope format": " to ".join(dict.fromkeys(map(str, writer.formats or []))),
    }
    return {name: _text(value) for name, value in rows.items()}


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

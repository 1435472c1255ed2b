"""The differences of two exports, except locations and names: fields of the envelope, operations of the modules."""

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import islice, zip_longest
from typing import Any

from export_core.artifact import Artifact
from export_core.artifact.bytecode.listing import Line, Listing, digest_of, listing
from export_core.artifact.envelope.fields import Envelope, HloSharding
from export_core.base.leaf_names import in_brackets, of_derivative, path_at

MOST = 12  # lines that are shown of one module
WIDTH = 160  # characters that are shown of a value
# Lines above which operations are paired one by one: an alignment takes time in the square of what differs.
TOO_LONG = 4_000

INDEPENDENT = ("platforms", "nr_devices", "ordered_effects", "unordered_effects", "disabled_checks")
"""Fields of the envelope that every release of jax writes in the same way for the same function.

Types and trees are not among them, since the signature of a golden has them, nor are shardings.
"""

FIELDS = (
    "in_tree", "in_avals", "out_tree", "out_avals", *INDEPENDENT, "in_shardings", "out_shardings",
    "module_kept_var_idx", "calling_convention_version",
)  # fmt: skip
"""Fields that the same writer always writes in the same way: all but the function's name and what these determine."""

LeafPaths = tuple[Sequence[str], Sequence[str]]  # The path of each flat argument, and of each flat result.

_CONSTANT = re.compile(r": \S*constant: value: ")  # In a line of `operations_that_differ` about a constant.
_NUMBER = r"dense<(?:[^>]*> : tensor<[a-z]|(?!SHA-256|0x)[^\[>]*> : tensor<)\S*"
_ONE_NUMBER = re.compile(rf"{_CONSTANT.pattern}{_NUMBER} → {_NUMBER}$")
"""A line about a constant that is a single number on both sides: a scalar, or an array of equal elements."""

_VARIABLES = {"calling_convention_version": ", see JAX_EXPORT_CALLING_CONVENTION_VERSION"}
"""A hint to the environment variable that sets a field whatever the test asks for; no manifest records it."""


def export_changes(then: Artifact, now: Artifact, *, exact: bool = True, paths: LeafPaths | None = None) -> list[str]:
    """Return a line for each difference between two exports by the same writer; empty if both do the same.

    Args:
        then: the golden's artifact.
        now: today's artifact.
        exact: whether all digits of floating-point constants count, as for `listing`.
        paths: the paths of the function's arguments and results; None for those in today's artifact.

    Raises:
        ArtifactError: One of the artifacts cannot be read.
    """
    changes: list[str] = []
    order, old, new = 0, then.envelope, now.envelope
    named = paths or _paths_in(new)
    while old is not None and new is not None:
        of = f" of derivative {order}" if order else ""
        for name in FIELDS:
            see = _VARIABLES.get(name, "")
            changes += [f"{what}{of}: {_change(was, value)}{see}" for what, was, value in _field(name, old, new, named)]
        old, new, order, named = old.vjp, new.vjp, order + 1, of_derivative(*named)
    if (old is None) != (new is None):
        was, is_now = (len(artifact.modules) - 1 for artifact in (then, now))
        changes.append(f"derivatives: to order {was} → to order {is_now}")
    return changes + operations_that_differ(then, now, exact=exact)


def constant_arrays_differ(then: Artifact, now: Artifact) -> bool:
    """Return whether two exports have different constant arrays in the same operations.

    Single numbers do not count: they are mostly literals in the source code, such as ``0.1 * x``, that somebody edited.
    Raises `ArtifactError` if a module cannot be read.
    """
    lines = operations_that_differ(then, now)
    return any(_CONSTANT.search(line) and not _ONE_NUMBER.search(line) for line in lines)


def operations_that_differ(then: Artifact, now: Artifact, *, exact: bool = True) -> list[str]:
    """Return a line for each of the first `MOST` operations that differ in each module, and how many more differ.

    A line names the function, the platforms if only some have the operation, and the difference.
    """
    platforms = now.envelope.platforms if now.envelope else ()
    changes: list[str] = []
    for modules in zip(then.modules, now.modules, strict=False):
        old, new = (listing(module, platforms=len(platforms) or 1, exact=exact) for module in modules)
        if digest_of(old) == digest_of(new):
            continue
        of = f" of derivative {order}" if (order := modules[1].vjp_order) else ""
        lines = list(islice(_changed_lines(old, new, platforms), 10 * MOST))
        changes += [f"module{of}: {line}" for line in lines[:MOST]]
        if len(lines) > MOST:
            changes.append(f"module{of}: {len(lines) - MOST} or more other operations differ")
    return changes


def export_digest(artifact: Artifact) -> str:
    """Return a SHA-256 of all fields and operations of an artifact, without locations and names.

    Raises `ArtifactError` if a module cannot be read.
    """
    digest, level = sha256(), artifact.envelope
    for module in artifact.modules:
        fields = [getattr(level, name) for name in FIELDS] if level else []
        digest.update(repr((fields, digest_of(listing(module)))).encode("utf-8", "surrogateescape"))
        level = level.vjp if level else None
    return digest.hexdigest()


def independent_changes(then: Artifact, now: Artifact, *, paths: LeafPaths | None = None) -> list[str]:
    """Return a line for each difference between two exports that their different writers do not explain.

    Only fields of the envelope are compared, not modules or derivatives. The result is empty if an export has no
    envelope. `paths` are the paths of the function's arguments and results; None for the paths in today's artifact.
    """
    old, new = then.envelope, now.envelope
    if old is None or new is None:
        return []
    # A release that lowers to another target has that one's check left out; what is called is compared elsewhere.
    old, new = (
        one._replace(disabled_checks=tuple(check for check in one.disabled_checks if not check.target))
        for one in (old, new)
    )
    fields = (*INDEPENDENT, "in_shardings", "out_shardings")
    named = paths or _paths_in(new)
    changes = (change for name in fields for change in _field(name, old, new, named, _same_by_others))
    return [f"{what}: {_change(was, value)}" for what, was, value in changes]


def _paths_in(envelope: Envelope | None) -> LeafPaths:
    return (envelope.argument_paths, envelope.result_paths) if envelope else ([], [])


def _same_by_others(old: object, new: object) -> bool:
    """Return whether two values of a field may mean the same, written by different releases.

    Older releases write shardings in another form (`HloSharding`). For them, only the presence of a sharding is
    compared.
    """
    if isinstance(old, HloSharding) or isinstance(new, HloSharding):
        return (old is None) == (new is None)
    return _words(old) == _words(new)


def _field(
    name: str, then: Envelope, now: Envelope, paths: LeafPaths, same: Callable[[Any, Any], bool] = operator.eq
) -> Iterator[tuple[str, str, str]]:
    """Yield each difference between two envelopes in the field `name`: where it is, the old value, the new value.

    A difference in one entry of the field has the number of the entry and, if known, its path: ``in_avals[0]
    (args[0]['w'])``. `same` decides whether two values are the same.
    """
    old, new = getattr(then, name), getattr(now, name)
    if name.endswith(("avals", "shardings")) and len(old) == len(new):
        for number, (was, value) in enumerate(zip(old, new, strict=True)):
            if not same(was, value):
                path = path_at(paths[name.startswith("out")], number)
                yield f"{name}[{number}]{in_brackets(path)}", *_texts(was, value)
    elif not same(old, new):
        yield name, *_texts(old, new)


def _words(value: object) -> str:
    if value is None:
        return "unspecified"
    is_list = isinstance(value, tuple) and not hasattr(value, "_fields")
    return (", ".join(map(str, value)) or "none") if is_list else str(value)  # type: ignore[call-overload]


def _texts(old: object, new: object) -> tuple[str, str]:
    """Return two different values as texts: in a short form, or by `repr` if their short forms are equal."""
    texts = _words(old), _words(new)
    return _cut(*(texts if texts[0] != texts[1] else (repr(old), repr(new))))


def _cut(old: str, new: str) -> tuple[str, str]:
    """Return two different texts; if one is long, both are cut to the part around the first difference."""
    start = max(0, _alike(old, new) - WIDTH // 4) if max(len(old), len(new)) > WIDTH else 0
    before = "…" if start else ""
    return tuple(
        f"{before}{text[start : start + WIDTH]}{'…' if len(text) > start + WIDTH else ''}" for text in (old, new)
    )  # type: ignore[return-value]


def _change(old: str, new: str) -> str:
    """Return a change from an old to a new value as text: with an arrow, or in words if a value contains an arrow."""
    return f"was {old}; now {new}" if "->" in old + new else f"{old} → {new}"


def _alike(old: Sequence[object], new: Sequence[object]) -> int:
    """Return how many items are equal at the start of two sequences."""
    return next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


_Placed = tuple[str, Line]  # a line, and the function that it is in


def _changed_lines(then: Listing, now: Listing, platforms: Sequence[str]) -> Iterator[str]:
    old, new = ([(function, line) for function, lines in side.items() for line in lines] for side in (then, now))
    differs = False
    for was, line in _pairs(old, new):
        differs = True
        if was and line and was[1].name == line[1].name:
            for what, before, after in _in_operation(was[1], line[1]):
                yield f"{_where(line, platforms)}: {line[1].name}: {what}: {_change(before, after)}"
        else:
            sides = (("-", was), ("+", line))
            yield from (f"{_where(side, platforms)}: {sign} {str(side[1])[:WIDTH]}" for sign, side in sides if side)
    if differs:
        return
    for was, line in zip(old, new, strict=True):  # no text differs, so there are as many
        if was[1].values != line[1].values:
            is_permuted = sorted(was[1].values) == sorted(line[1].values)
            what = "are in another order" if is_permuted else "come from other operations or arguments"
            yield f"{_where(line, platforms)}: {line[1].name}: its operands {what}"
            return
    yield "the same operations in other functions"


def _pairs(old: list[_Placed], new: list[_Placed]) -> Iterator[tuple[_Placed | None, _Placed | None]]:
    """Yield pairs of an old and a new operation that differ, with None for an operation that one side lacks."""
    left, right = ([f"{line.depth} {line}" for _, line in side] for side in (old, new))
    start = _alike(left, right)
    if max(len(left), len(right)) - start > TOO_LONG:
        pairs = zip_longest(old[start:], new[start:])
        yield from ((a, b) for a, b in pairs if not (a and b and str(a[1]) == str(b[1])))
        return
    # Without autojunk, which ignores lines that occur often, as those of a program do.
    matcher = difflib.SequenceMatcher(None, left[start:], right[start:], autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind != "equal":
            yield from zip_longest(old[start + i1 : start + i2], new[start + j1 : start + j2])


def _in_operation(then: Line, now: Line) -> Iterator[tuple[str, str, str]]:
    """Yield each difference between two operations of one name: what differs, the old value, and the new value."""
    old, new = dict(then.attributes), dict(now.attributes)
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield name, *_cut(old.get(name, "none"), new.get(name, "none"))
    for what, before, after in (("type", then.types, now.types), ("calls", then.calls, now.calls)):
        if before != after:
            yield what, *_cut(", ".join(before), ", ".join(after))


def _where(placed: _Placed, platforms: Sequence[str]) -> str:
    function, line = placed
    alone = ", ".join(platforms[number] for number in line.platforms)
    return f"{f'@{function}' if function else 'outside functions'}{f', for {alone}' if alone else ''}"

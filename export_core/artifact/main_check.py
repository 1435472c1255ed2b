"""The check of `main` against the envelope around it, by the calling convention that the envelope names.

What is checked is read from the module itself. JAX's export documentation ("Module calling convention") says what
`main` must look like; docs/reference/calling-conventions.md says what each version changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from export_core.artifact.artifact import Artifact
from export_core.artifact.bytecode.module import Function, Module
from export_core.artifact.bytecode.sections import STRINGS
from export_core.artifact.envelope.fields import Aval, Envelope
from export_core.base.named_tuple import TYPE_CHECKING
from export_core.base.text import plural

if TYPE_CHECKING:
    from typing import Any


OLDEST, NEWEST = 1, 10  # the calling conventions that JAX has had
ATTRIBUTE_SINCE = 8  # the first version whose module must have jax.uses_shape_polymorphism
PLATFORMS_SINCE = 6  # the first version whose envelope must name its platforms
TOKENS_SINCE = 9  # whose `main` takes and returns tokens, and whose arguments say which global constant they are

CONSTANT = "jax.global_constant"
PLATFORM = "_platform_index"
POLYMORPHISM = "jax.uses_shape_polymorphism"
TOKEN = "!stablehlo.token"
INNER = "_wrapped_jax_export_main"
_SCALARS = ("tensor<i32>", "tensor<i64>")
_CONSTRAINT = (  # As text: few modules need it compiled.
    rb"do not match the symbolic shape constraint ([^\0]{1,400}?)\. Expected '"
)
KEY_WORDS = {"key<fry>": 2, "key<rbg>": 4, "key<urbg>": 4}
"""The number of uint32 values that make a PRNG key, by the key's dtype. Source: jax/_src/prng.py."""

# What the element types of a module are called, where it is not jax's letter and the width in bits. float0 has no bits:
# i1 stands for it.
_ELEMENTS = {
    "bool": "i1", "float0": "i1", "bfloat16": "bf16", "complex64": "complex<f32>", "complex128": "complex<f64>",
    **dict.fromkeys(KEY_WORDS, "ui32"),
}  # fmt: skip
_NUMBER = re.compile(r"(float|uint|int)([0-9]+)_?(.*)")
_LETTERS = {"float": "f", "uint": "ui", "int": "i"}


def check_main(artifact: Artifact) -> list[str]:
    """Return a sentence for each way in which an artifact or its nested VJPs contradict their calling convention.

    The result is empty if all is as documented, for a bare module, which declares no convention, and for a convention
    newer than `NEWEST`. The sentences write the function as `@main`, as in a module. Raises `ArtifactError` if a module
    cannot be read.
    """
    problems: list[str] = []
    levels = artifact.envelope.levels if artifact.envelope is not None else ()
    for module, envelope in zip(artifact.modules, levels, strict=False):
        if is_known(envelope):
            of = f" of the VJP of order {module.vjp_order}" if module.vjp_order else ""
            problems += [text.replace("main", f"@main{of}", 1) for text in _check(module, envelope)]
    return problems


def is_known(envelope: Envelope) -> bool:
    """Return whether an envelope names a calling convention that `check_main` knows: `OLDEST` to `NEWEST`."""
    return OLDEST <= envelope.calling_convention_version <= NEWEST


def dimension_names(avals: Iterable[Aval]) -> tuple[str, ...]:
    """Return the names of the dimension variables in symbolic shapes, in the order of their first use."""
    names: dict[str, None] = {}
    for aval in avals:
        for dim in aval.shape:
            if isinstance(dim, str):
                words = "".join(c if c.isalnum() or c in "_(" else " " for c in dim).replace("(", "( ").split()
                names.update(dict.fromkeys(word for word in words if word.isidentifier()))  # floordiv( is an operation
    return tuple(names)


def dimension_constraints(artifact: Artifact) -> tuple[str, ...]:
    """Return the constraints on symbolic dimensions that the module checks at each call, such as ``b >= 2``.

    The constraints are read from the error texts of the module's checks, since the envelope does not have them.
    """
    found: dict[str, None] = {}
    for module in artifact.modules:
        strings = module.tables.cursor(STRINGS)
        texts = re.findall(_CONSTRAINT, bytes(strings.data[strings.at : strings.end]))
        found.update(dict.fromkeys(text.decode("utf-8", "replace") for text in texts))
    return tuple(found)


def _check(module: Module, envelope: Envelope) -> Iterator[str]:
    main = module.main
    for side in ("in", "out"):
        avals, tree, shardings = (getattr(envelope, f"{side}_{field}") for field in ("avals", "tree", "shardings"))
        for what, number in ((f"leaves of {side}_tree", tree.num_leaves), (f"{side}_shardings", len(shardings))):
            if number != len(avals):
                yield f"main: there are {number} {what}, and {len(avals)} {side}_avals."
    if main is None or main.visibility == "private":
        yield "main: a public function of this name was expected, and the module has none."
        return
    kept = envelope.module_kept_var_idx
    number = len(envelope.in_avals)
    if list(kept) != sorted(set(kept)) or (kept and kept[-1] >= number):
        indices = ", ".join(map(str, kept))
        yield f"main: module_kept_var_idx must be ascending indices of the {number} in_avals, and is {indices}."
        return
    yield from _signature(main, envelope)
    yield from _inner(module, envelope)
    yield from _attributes(module.attributes, envelope)


def _signature(main: Function, envelope: Envelope) -> Iterator[str]:
    version = envelope.calling_convention_version
    tokens = len(envelope.ordered_effects) if version >= TOKENS_SINCE else 0
    inputs = list(main.inputs)
    marks = [attributes.get(CONSTANT) for attributes in main.arg_attrs]
    marks += [None] * (len(inputs) - len(marks))
    platform = bool(inputs) and marks[0] == PLATFORM
    several = len(envelope.platforms) > 1
    if version >= PLATFORMS_SINCE and not envelope.platforms:
        yield f"the envelope of main names no platform, and each calling convention since {PLATFORMS_SINCE} needs one."
    named = ", ".join(envelope.platforms)
    kept = [(f"in_avals[{i}]", envelope.in_avals[i]) for i in envelope.module_kept_var_idx]
    if several and not platform:
        if inputs and inputs[0] in _SCALARS and len(inputs) == 1 + tokens + len(kept):
            platform = True  # the index is there, without the mark, which version 9 introduced
            if version >= TOKENS_SINCE:
                yield f"argument 0 of main is a platform's index that lacks {CONSTANT} = {PLATFORM!r}."
        else:
            yield f"main takes no platform index, and the envelope names {len(envelope.platforms)} platforms ({named})."
    elif platform and not several:
        yield f"main takes a platform index, and the envelope names {'only ' + named if named else 'no platform'}."
    if platform and inputs[0] not in _SCALARS:
        yield f"argument 0 of main is {inputs[0]}, and a platform index is a scalar of i32 or i64."
    for place in range(1 if platform else 0, len(inputs)):
        if marks[place] is not None:
            mark = f"argument {place} of main has {CONSTANT} = {marks[place]!r}"
            yield f"{mark}, which only a platform index may have there."
    yield from _values("argument", inputs, 1 if platform else 0, tokens, kept)
    results = [(f"out_avals[{i}]", aval) for i, aval in enumerate(envelope.out_avals)]
    yield from _values("result", list(main.outputs), 0, tokens, results)


def _values(what: str, types: list[str], start: int, tokens: int, avals: list[tuple[str, Aval]]) -> Iterator[str]:
    """Yield a sentence for each contradiction between the arguments or results of `main` and the envelope.

    Args:
        what: "argument" or "result".
        types: the types of all arguments or results of `main`.
        start: the index of the first argument or result after the platform index.
        tokens: how many tokens the calling convention asks for.
        avals: the abstract values that the envelope declares, each after its name in messages.
    """
    plain = next((i for i, (_, aval) in enumerate(avals) if aval.dtype != "token"), len(avals))
    leading = next((i for i, kind in enumerate(types[start:]) if kind != TOKEN), len(types) - start)
    extra = leading - plain  # tokens of ordered effects come before those that are values themselves
    takes = "takes" if what == "argument" else "returns"
    if extra != tokens:
        yield (
            f"main {takes} {plural(extra, 'token')}, and its calling convention asks for {tokens}: "
            "one for each ordered effect since version 9, none before."
        )
    arrays = types[start + max(extra, 0) :]
    if len(arrays) != len(avals):
        declared = plural(len(avals), "kept argument" if what == "argument" else "result")
        yield f"main {takes} {plural(len(arrays), 'array')}, and the envelope declares {declared}."
        return
    for place, (kind, (name, aval)) in enumerate(zip(arrays, avals, strict=True), len(types) - len(arrays)):
        if not fits(kind, aval):
            yield f"{what} {place} of main is {kind}, and {name} is {aval}, which is {_type(aval)} in a module."


def _inner(module: Module, envelope: Envelope) -> Iterator[str]:
    """Yield a sentence for each contradiction between the envelope and the function that `main` wraps.

    Only modules with symbolic shapes have such a function.

    `main` computes the dimension variables; the wrapped function takes them as arguments, sorted by name.
    """
    if not (names := sorted(dimension_names(envelope.in_avals))):
        return
    tagged = envelope.calling_convention_version >= TOKENS_SINCE
    functions = list(module.functions)
    # jax writes it after main, and appends _0 and so on where the name is taken.
    behind = functions[[f.name for f in functions].index("main") + 1 :]
    inner = next((f for f in behind if f.name == INNER or f.name.startswith(INNER + "_")), None)
    if inner is None:
        if not tagged:
            return
        yield f"main computes dimension variables ({', '.join(names)}) for a function {INNER}, and the module has none."
        return
    expected = ([PLATFORM] if len(envelope.platforms) > 1 else []) + names
    constants = [attributes[CONSTANT] for attributes in inner.arg_attrs if CONSTANT in attributes]
    if constants != expected and (constants or tagged):  # before version 9 the marks are optional
        yield (
            f"the function that main wraps, @{inner.name}, takes as {CONSTANT} "
            f"{', '.join(map(str, constants)) or 'none'}; the in_avals and platforms ask for {', '.join(expected)}."
        )
    elif any(kind not in _SCALARS for kind in inner.inputs[: len(constants)]):
        yield f"the function that main wraps, @{inner.name}, takes global constants that are no scalars of i32 or i64."


def _attributes(attributes: dict[str, Any], envelope: Envelope) -> Iterator[str]:
    if (uses := attributes.get(POLYMORPHISM)) is None:
        if envelope.calling_convention_version >= ATTRIBUTE_SINCE:
            lacks = f"the module of main lacks the attribute {POLYMORPHISM}"
            yield f"{lacks}, and each calling convention since {ATTRIBUTE_SINCE} needs it."
    elif bool(uses) is not envelope.uses_global_constants:
        has = f"the module of main has {POLYMORPHISM} = {bool(uses)}"
        yield f"{has}, and the envelope uses_global_constants = {not uses}."
    needed = len(envelope.platforms) > 1 or bool(dimension_names(envelope.in_avals))
    if needed and not envelope.uses_global_constants:
        yield "main has several platforms or symbolic shapes, and the envelope says uses_global_constants = False."
    partitions, replicas = attributes.get("mhlo.num_partitions"), attributes.get("mhlo.num_replicas", 1)
    if isinstance(partitions, int) and isinstance(replicas, int) and partitions * replicas != envelope.nr_devices:
        yield (
            f"the module of main is for {plural(partitions, 'partition')} × {plural(replicas, 'replica')}, "
            f"and the envelope says nr_devices = {envelope.nr_devices}."
        )


def fits(kind: str, aval: Aval) -> bool:
    """Return whether `kind`, a type in a module such as tensor<2xf32>, is the type of an aval.

    A type that our reader cannot name is accepted, and so is any type for an unknown dtype.
    """
    if "!vhlo" in kind or "<code" in kind:
        return True
    expected = _type(aval)
    kind = kind.partition(", ")[0].removesuffix(">") + ">" if ", " in kind else kind  # without an encoding of bounds
    return kind.startswith(expected.partition("…")[0]) if "…" in expected else kind == expected


def _type(aval: Aval) -> str:
    """Return the type by which a module writes an aval, with … for the element type of an unknown dtype."""
    if aval.dtype == "token":
        return TOKEN
    shape = [*aval.shape, *([KEY_WORDS[aval.dtype]] if aval.dtype in KEY_WORDS else [])]
    return f"tensor<{''.join('?x' if isinstance(dim, str) else f'{dim}x' for dim in shape)}{element_of(aval.dtype)}>"


def element_of(dtype: str) -> str:
    """Return the element type by which a module writes a dtype of jax, such as f8E4M3FN; … for an unknown dtype."""
    number = None if dtype in _ELEMENTS else _NUMBER.fullmatch(dtype)
    return _LETTERS[number[1]] + number[2] + number[3].upper() if number else _ELEMENTS.get(dtype, "…")

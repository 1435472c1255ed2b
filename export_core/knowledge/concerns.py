"""Whether an entry of the knowledge base is about an artifact.

A property of an artifact is computed once, when the first entry asks for it. A function that reads a module raises
`ArtifactError` if the module cannot be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from itertools import chain

from export_core.artifact.artifact import Artifact
from export_core.artifact.audit import belongs, calls_of_devices, calls_of_jax, looked_up
from export_core.artifact.bytecode.element_types import element_types
from export_core.artifact.bytecode.module import Module
from export_core.artifact.bytecode.sections import STRINGS
from export_core.artifact.envelope.fields import NamedSharding
from export_core.base.named_tuple import TYPE_CHECKING
from export_core.base.text import few
from export_core.knowledge.knowledge_base import Entry

if TYPE_CHECKING:
    from typing import Any


WIDE = frozenset({"float64", "int64", "uint64", "complex128"})
# A text, which `re` compiles at its first use: few artifacts need it.
_WIDE_TYPES = r"(?:^|[x<])(?:f64|u?i64|complex<f64>)"
_SPECIAL = frozenset("*?[")
_OF_PATTERNS = frozenset(".^$*+?{}[]()|\\")  # All characters that mean something else in a regular expression.
# Parts of a regular expression that match what is between the types of arguments or results, or depend on the line.
_OF_FUNCTIONS = ("^", "$", ".", "->", ", ", r"\(", r"\)", r"\s", r"\S", r"\W", r"\D")
CALL = "stablehlo.custom_call"
_OF_SHARDY = "sdy."
DONATED = ("jax.buffer_donor", "tf.aliasing_output")


class Uses(tuple[tuple[str, str], ...]):
    """Pairs of a glob for an operation and a regular expression for its element types, indexed for fast lookups."""

    @cached_property
    def by_operation(self) -> Mapping[str, list[tuple[str, str]]]:
        """The pairs whose glob is the plain name of one operation, by this name without ``(body)``."""
        found: dict[str, list[tuple[str, str]]] = {}
        for glob, pattern in self:
            operation, is_plain = _operation_of(glob)
            if is_plain:
                found.setdefault(operation, []).append((glob, pattern))
        return found

    @cached_property
    def of_any_operation(self) -> list[tuple[str, str]]:
        """The pairs whose glob has wildcards, so that it may match any operation."""
        return [(glob, pattern) for glob, pattern in self if not _operation_of(glob)[1]]


class Names(tuple[str, ...]):
    """Names of attributes and types by number, such as ``sdy attribute 12``, and parts of attributes' texts.

    They are indexed for fast lookups.
    """

    @cached_property
    def attribute_codes(self) -> frozenset[tuple[str, int]]:
        """The dialect and the number of each name such as ``sdy attribute 12``."""
        return frozenset(code for name in self if (code := _coded(name, "attribute")) is not None)

    @cached_property
    def type_codes(self) -> frozenset[tuple[str, int]]:
        """The dialect and the number of each name such as ``vhlo type 10``."""
        return frozenset(code for name in self if (code := _coded(name, "type")) is not None)

    @cached_property
    def texts(self) -> list[str]:
        """The names that are a part of an attribute's text."""
        return [name for name in self if _coded(name, "attribute") is None and _coded(name, "type") is None]


class About:
    """The properties of an artifact and its derivatives with which entries of the knowledge base are compared."""

    def __init__(self, artifact: Artifact):
        self.artifact = artifact
        self._looked_up: dict[str, frozenset[str]] = {}  # What `looked_up` returned, by platform.
        # What forecasts keep of an artifact, about which several consumers ask: the entries that may be about it, by
        # consumer, platform and settings; and whether an entry is about it, by the entry's id.
        self.asked: dict[tuple[str, str, tuple[str, ...]], list[Entry]] = {}
        self.concerned: dict[str, bool] = {}
        self._texts: dict[str, bool] = {}  # Whether a module's strings contain a text.
        self._typed: dict[str, bool] = {}  # What `has_type` returned, by its pattern.

    @cached_property
    def calls(self) -> frozenset[str]:
        """The targets of the artifact's custom calls."""
        return frozenset(call.target for call in self.artifact.custom_calls)

    @cached_property
    def calls_of_jax(self) -> tuple[str, ...]:
        """The custom-call targets in the artifact that only jax registers on a CPU, sorted."""
        return calls_of_jax(self.artifact)

    @cached_property
    def calls_of_devices(self) -> tuple[str, ...]:
        """The custom-call targets in the artifact that are kernels of a GPU or a TPU, sorted."""
        return calls_of_devices(self.artifact)

    def looked_up(self, platform: str) -> frozenset[str]:
        """Return the custom-call targets in the artifact that XLA looks up by name on a platform."""
        if not self.calls:
            return self.calls
        if platform not in self._looked_up:
            self._looked_up[platform] = looked_up(self.artifact, platform)
        return self._looked_up[platform]

    def calls_of_others(self, platform: str) -> list[str]:
        """Return the custom-call targets in the artifact that exist only on platforms other than `platform`."""
        return [target for target in self.calls if not belongs(target, platform)]

    @cached_property
    def operations(self) -> frozenset[str]:
        """The names of the artifact's operations, without VHLO's versions, such as ``stablehlo.sort``."""
        names: frozenset[str] = frozenset()  # Not `frozenset[str]()`, which takes 1 µs.
        return names.union(*[module.contents.uses.names for module in self.artifact.modules])

    @cached_property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """The element types of each operation of the artifact, by name; for custom calls, the targets instead."""
        found: dict[str, Set[str]] = {}
        for module in self.artifact.modules:
            for name, types in element_types(module).items():
                found[name] = found[name] | types if name in found else types
        if self.calls:
            found[CALL] = self.calls
        return {name: frozenset(types) for name, types in found.items()}

    @cached_property
    def few_uses(self) -> str:
        """The first operations with their element types, and the number of the others, as text for a message."""
        calls = [f"custom call {target}" for target in sorted(self.uses.get(CALL, ()))]
        uses = {name: types or frozenset(("",)) for name, types in self.uses.items() if name != CALL}
        return few([*named(uses), *calls])

    @cached_property
    def forms(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """The entries of `uses`, grouped by name without body: ``stablehlo.reduce(add)`` is under stablehlo.reduce."""
        found: dict[str, dict[str, frozenset[str]]] = {}
        for name, types in self.uses.items():
            found.setdefault(name.partition("(")[0], {})[name] = types
        return found

    def has_use(self, uses: Iterable[tuple[str, str]]) -> bool:
        """Return whether the artifact has an operation that matches one of `uses`.

        Each is a glob for the name of the operation, and a regular expression for one of its element types. An
        operation without element types counts as having the type "".
        """
        uses = uses if isinstance(uses, Uses) else Uses(uses)
        # Without a walk over the module, for most entries.
        for operation in uses.by_operation.keys() & self.operations:
            for name, types in self.forms.get(operation, {}).items():
                for glob, pattern in uses.by_operation[operation]:
                    if (name == glob or _matches(name, glob)) and _is_found_in_one(pattern, types):
                        return True
        return any(
            _is_found_in_one(pattern, types)
            for glob, pattern in uses.of_any_operation
            if _any_matches(self.operations, (_operation_of(glob)[0],))
            for name, types in self.uses.items()
            if _matches(name, glob)
        )

    def has_operand(self, operands: Iterable[tuple[str, str]]) -> bool:
        """Return whether the artifact has an operation that matches one of `operands`.

        Each is a glob for the name of the operation, and a regular expression for the type of one of its operands.
        """
        for module in self.artifact.modules:
            contents = module.contents
            for (taken, _), kinds in contents.uses.found.items():
                for kind in kinds:
                    name = contents.uses.names[kind] if isinstance(kind, int) else kind
                    for glob, pattern in operands:
                        if _matches(name, glob) and any(
                            _is_found(pattern, contents.values.type(number)) for number in taken if number >= 0
                        ):
                            return True
        return False

    @cached_property
    def types(self) -> str:
        """All types in the artifact's modules, each once, on lines of their own."""
        return "\n".join(dict.fromkeys(kind for module in self.artifact.modules for kind in module.types))

    @cached_property
    def types_of_values(self) -> str:
        """All types in the artifact's modules, a line each, except the long function types, which consist of these."""
        return "\n".join(dict.fromkeys(chain.from_iterable(each.types_of_values for each in self.artifact.modules)))

    def has_type(self, pattern: str) -> bool:
        """Return whether a regular expression is found in one of the artifact's types, with `^` only in the first."""
        if (answer := self._typed.get(pattern)) is None:
            types = self.types if _is_of_functions(pattern) else self.types_of_values
            answer = self._typed[pattern] = _is_found(pattern, types)
        return answer

    def has_in_signature(self, pattern: str) -> bool:
        """Return whether a regular expression is found in the type of an argument or a result of `main`."""
        if not self.has_type(pattern):  # Without looking for `main`, for most artifacts.
            return False
        main = self.artifact.module.main
        return main is not None and any(_is_found(pattern, kind) for kind in (*main.inputs, *main.outputs))

    @cached_property
    def attribute_codes(self) -> list[Set[tuple[str, int]]]:
        """The dialects and numbers of the attributes in each of the artifact's modules."""
        return [module.tables.codes(module.tables.attributes) for module in self.artifact.modules]

    @cached_property
    def type_codes(self) -> list[Set[tuple[str, int]]]:
        """The dialects and numbers of the types in each of the artifact's modules."""
        return [module.tables.codes(module.tables.types) for module in self.artifact.modules]

    @cached_property
    def dialects(self) -> frozenset[str]:
        """The names of the dialects in the artifact's modules."""
        return frozenset[str]().union(*[module.tables.dialects for module in self.artifact.modules])

    @cached_property
    def devices(self) -> int:
        """The number of devices that the artifact needs: the larger of its envelope's number and its largest mesh."""
        if not any("sdy" in module.tables.dialects for module in self.artifact.modules):
            return self.artifact.devices
        meshes = (mesh for module in self.artifact.modules for mesh in module.meshes)
        return max([self.artifact.devices, *(math.prod(mesh.values()) for mesh in meshes)])

    @cached_property
    def is_plain(self) -> bool:
        """Whether the artifact is for one device and makes no custom calls that other runtimes than jaxlib lack.

        Then only its operations decide whether such a runtime runs it. A SavedModel is never plain.
        """
        is_saved = self.artifact.saved_model is not None
        return not (self.calls_of_jax or self.calls_of_devices or self.devices > 1 or is_saved)

    @cached_property
    def has_branches(self) -> bool:
        """Whether the artifact is for several platforms and has branches, of which a platform compiles only its own."""
        envelope = self.artifact.envelope
        return envelope is not None and len(envelope.platforms) > 1 and "stablehlo.case" in self.operations

    @cached_property
    def is_symbolic(self) -> bool:
        """Whether an argument of the artifact has a symbolic dimension."""
        if self.artifact.envelope is None:
            return any("?" in kind for kind in self._inputs)
        return any(isinstance(dim, str) for aval in self.artifact.envelope.in_avals for dim in aval.shape)

    @cached_property
    def is_wide(self) -> bool:
        """Whether an argument of the artifact has a 64-bit dtype, or complex128."""
        if self.artifact.envelope is None:
            return any(re.search(_WIDE_TYPES, kind) for kind in self._inputs)
        return any(aval.dtype in WIDE for aval in self.artifact.envelope.in_avals)

    @cached_property
    def is_unreduced(self) -> bool:
        """Whether an argument or result is unreduced by its sharding: each device has one term of a sum."""
        envelope = self.artifact.envelope
        shardings = (*envelope.in_shardings, *envelope.out_shardings) if envelope is not None else ()
        return any(isinstance(sharding, NamedSharding) and sharding.spec.unreduced for sharding in shardings)

    @cached_property
    def donates(self) -> bool:
        """Whether an argument of the artifact is donated, so that the call may overwrite its buffer."""
        module = self.artifact.module
        if not any(_contains(module, name) for name in DONATED):  # Without reading attributes, for most artifacts.
            return False
        main = module.main
        return main is not None and any(name in attributes for attributes in main.arg_attrs for name in DONATED)

    @property
    def _inputs(self) -> tuple[str, ...]:
        main = self.artifact.module.main
        return main.inputs if main is not None else ()

    def has_one_of(self, names: Iterable[str]) -> bool:
        """Return whether a module of the artifact contains an attribute or type with one of these names.

        A name is a part of an attribute's text, or a dialect, a kind and a number: ``sdy attribute 12``,
        ``vhlo type 10``.
        """
        names = names if isinstance(names, Names) else Names(names)
        if names.type_codes and _has_one(self.type_codes, names.type_codes):
            return True
        if names.attribute_codes and _has_one(self.attribute_codes, names.attribute_codes):
            return True
        return any(map(self._has_text, names.texts))

    def _has_text(self, text: str) -> bool:
        if (answer := self._texts.get(text)) is None:
            answer = self._texts[text] = any(_contains(module, text) for module in self.artifact.modules)
        return answer

    @property
    def converted(self) -> About:
        """The properties that the artifact will have after a conversion for a runtime other than jaxlib."""
        has_shardings = "Sharding" in self.calls or any(name.startswith(_OF_SHARDY) for name in self.operations)
        return AboutConverted(self.artifact) if has_shardings else self


class AboutConverted(About):
    """The properties that an artifact will have after a conversion for another runtime, which removes shardings."""

    @cached_property
    def calls(self) -> frozenset[str]:
        """The targets of the artifact's custom calls, except that of a sharding."""
        return super().calls - {"Sharding"}

    @cached_property
    def operations(self) -> frozenset[str]:
        """The names of the artifact's operations, except Shardy's."""
        return frozenset(name for name in super().operations if not name.startswith(_OF_SHARDY))

    @cached_property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """The element types of each operation of the artifact, except Shardy's operations."""
        kept = {name: types for name, types in super().uses.items() if not name.startswith(_OF_SHARDY)}
        if CALL in kept and not self.calls:
            del kept[CALL]
        return kept


def named(operations: Mapping[str, frozenset[str]]) -> list[str]:
    """Return a text for each operation and each of its element types, such as ``stablehlo.add of f32->f32``."""
    return [f"{name}{f' of {of}' if of else ''}" for name, types in operations.items() for of in sorted(types)]


def _contains(module: Module, text: str) -> bool:
    """Return whether the strings of a module contain a text."""
    strings = module.tables.sections[STRINGS]
    return module.tables.data.find(text.encode(), strings.at, strings.end) >= 0


def _has_one(sets: Iterable[Set[tuple[str, int]]], codes: Set[tuple[str, int]]) -> bool:
    """Return whether any of the sets contains any of the codes."""
    for each in sets:  # noqa: SIM110  # Without `any`, as in `is_concerned`.
        if not codes.isdisjoint(each):
            return True
    return False


def _coded(name: str, kind: str) -> tuple[str, int] | None:
    """Return the dialect and the number in a name such as ``sdy attribute 12``; None if the name has no such form.

    `kind` is "attribute" or "type".
    """
    dialect, middle, code = name.partition(f" {kind} ")
    return (dialect, int(code)) if middle and code.isdecimal() else None


@lru_cache(maxsize=1024)  # of the few hundred in the entries
def _operation_of(glob: str) -> tuple[str, bool]:
    """Return the operation that a glob names, without its body, and whether this part of the glob has no wildcards.

    For ``stablehlo.reduce(add)``, these are ``stablehlo.reduce`` and True.
    """
    operation = glob.partition("(")[0]
    return operation, _SPECIAL.isdisjoint(operation)


def _any_matches(names: Collection[str], globs: Iterable[str]) -> bool:
    """Return whether one of the globs matches one of the names.

    Most globs are plain names, which are looked up without comparing each name.
    """
    if not names:  # Most artifacts have no custom calls.
        return False
    for glob in globs:
        if glob in names if _SPECIAL.isdisjoint(glob) else any(_matches(name, glob) for name in names):
            return True
    return False


def _matches(name: str, glob: str) -> bool:
    """Return whether a glob matches a name.

    Most globs are plain names, or have one star, at the end. They are compared without a regular expression, which
    takes 0.3 ms.
    """
    stem = glob.removesuffix("*")
    if not _SPECIAL.isdisjoint(stem):
        return fnmatchcase(name, glob)
    return name == glob if stem == glob else name.startswith(stem)


def _is_found(pattern: str, text: str) -> bool:
    """Return whether a regular expression is found in a text.

    A pattern without special characters is searched for as a plain text, which is faster.
    """
    return pattern in text if _OF_PATTERNS.isdisjoint(pattern) else re.search(pattern, text) is not None


def _is_found_in_one(pattern: str, types: frozenset[str]) -> bool:
    """Return whether a regular expression is found in one of an operation's element types, or in "" if it has none."""
    for of in types or ("",):  # noqa: SIM110  # Without `any`, as in `is_concerned`.
        if _is_found_again(pattern, of):
            return True
    return False


# The element types of an operation are those of other artifacts too: there are a few hundred.
_is_found_again = lru_cache(maxsize=8192)(_is_found)


@lru_cache(maxsize=256)  # of the dozen in the entries
def _is_of_functions(pattern: str) -> bool:
    """Return whether a regular expression may match in a function type without matching in a type that it contains."""
    return any(part in pattern for part in _OF_FUNCTIONS)


HOLDS: Mapping[str, Callable[[About, Any], bool]] = {
    "operations": lambda about, globs: _any_matches(about.operations, globs),
    "dialects": lambda about, names: any(name in about.dialects for name in names),
    "devices": lambda about, least: about.devices >= least,
    "symbolic": lambda about, wanted: about.is_symbolic is wanted,
    "x64": lambda about, wanted: about.is_wide is wanted,
    "unreduced": lambda about, wanted: about.is_unreduced is wanted,
    "attributes": lambda about, names: about.has_one_of(names),
    "lacks": lambda about, names: not about.has_one_of(names),
    "calls": lambda about, globs: _any_matches(about.calls, globs),
    "donated": lambda about, wanted: about.donates is wanted,
    "types": lambda about, pattern: about.has_type(pattern),
    "signature": lambda about, pattern: about.has_in_signature(pattern),
    "uses": lambda about, uses: about.has_use(uses),
    "operands": lambda about, operands: about.has_operand(operands),
}
"""The check for each key of an entry's `concerns`, the cheapest first: a function of the artifact and the key's value.

The shipped entries have their keys in this order.
"""


def is_concerned(about: About, concerns: Mapping[str, Any]) -> bool:
    """Return whether an artifact has all the properties in `concerns` of an entry of the knowledge base."""
    # Without `all`, which takes half of the time: each forecast comes here often.
    for key, value in concerns.items():  # noqa: SIM110
        if not HOLDS[key](about, value):
            return False
    return True


def concerned_operations(about: About, concerns: Mapping[str, Any]) -> list[str]:
    """Return the operations of an artifact that match `operations` or `uses` in `concerns` of an entry.

    Those that match `uses` are named with their element types.
    """
    globs, uses = concerns.get("operations", ()), concerns.get("uses", ())
    typed = dict[str, frozenset[str]]()
    for name, types in sorted(about.uses.items() if uses else ()):
        patterns = [pattern for glob, pattern in uses if _matches(name, glob)]
        of = frozenset(of for of in types or ("",) if any(_is_found_again(pattern, of) for pattern in patterns))
        typed |= {name: of} if of else {}
    return [*sorted(name for name in about.operations if _any_matches((name,), globs)), *named(typed)]


def prepared(concerns: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `concerns` with its values indexed, so that the checks in `HOLDS` are fast for many artifacts."""
    return {key: _PREPARED[key](value) if key in _PREPARED else value for key, value in concerns.items()}


_PREPARED: Mapping[str, Callable[[Any], Any]] = {"uses": Uses, "attributes": Names, "lacks": Names}


def operations_of(concerns: Mapping[str, Any]) -> frozenset[str]:
    """Return operations without which an artifact cannot have the properties in `concerns`: it needs at least one.

    Empty if `concerns` names no operations, or names them by patterns. For custom calls, it is the operation that makes
    such calls.
    """
    if "calls" in concerns:
        return frozenset((CALL,))
    pairs = concerns.get("uses") or concerns.get("operands") or ()
    globs = concerns.get("operations") or [glob for glob, _ in pairs]
    operations = [_operation_of(glob) for glob in globs]
    return frozenset(name for name, _ in operations) if all(is_plain for _, is_plain in operations) else frozenset()

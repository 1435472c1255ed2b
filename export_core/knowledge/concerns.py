"""Whether an artifact is one that an entry is about. Each question is answered once for an artifact, when it is asked.

Whatever reads a module raises `ArtifactError` where it cannot be read.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import Any

from export_core.artifact.artifact import Artifact
from export_core.artifact.audit import belongs, calls_of_jax, looked_up
from export_core.artifact.bytecode.element_types import element_types
from export_core.artifact.bytecode.sections import STRINGS, Tables
from export_core.knowledge.knowledge_base import Entry

WIDE = frozenset({"float64", "int64", "uint64", "complex128"})
# As text: `re` compiles each when it is first used, which few artifacts ask for.
_WIDE_TYPES = r"(?:^|[x<])(?:f64|u?i64|complex<f64>)"
_SPECIAL = frozenset("*?[")
CALL = "stablehlo.custom_call"
DONATED = ("jax.buffer_donor", "tf.aliasing_output")


class About:
    """The properties of one artifact, its derivatives included, that entries ask about."""

    def __init__(self, artifact: Artifact):
        self.artifact = artifact
        self._looked_up: dict[str, frozenset[str]] = {}  # by platform
        self._concerning: dict[str, bool] = {}  # by the id of an entry
        self.measured: dict[tuple[str, frozenset[int]], tuple[dict[str, frozenset[str]], list[str]]] = {}
        """What `Measured` says of it, by runtime and the places of its releases: many releases share an answer."""

    def is_concerned(self, entry: Entry) -> bool:
        """Return whether an entry is about it."""
        if entry.id not in self._concerning:
            self._concerning[entry.id] = is_concerned(self, entry.concerns)
        return self._concerning[entry.id]

    @cached_property
    def calls(self) -> frozenset[str]:
        """The targets of its custom calls."""
        return frozenset(call.target for call in self.artifact.custom_calls)

    @cached_property
    def calls_of_jax(self) -> tuple[str, ...]:
        """The targets of its custom calls that only jax registers on a CPU."""
        return calls_of_jax(self.artifact)

    def looked_up(self, platform: str) -> frozenset[str]:
        """Return the targets of its custom calls that a platform looks up by name."""
        if platform not in self._looked_up:
            self._looked_up[platform] = looked_up(self.artifact, platform)
        return self._looked_up[platform]

    def calls_of_others(self, platform: str) -> list[str]:
        """Return those of them that other platforms alone have."""
        return [target for target in self.calls if not belongs(target, platform)]

    @cached_property
    def operations(self) -> frozenset[str]:
        """Its operations without the versions of VHLO: ``stablehlo.sort``, ``sdy.mesh``."""
        names = {name for module in self.artifact.modules for name in module.op_names}
        return frozenset(map(_without_version, names))

    @cached_property
    def uses(self) -> Mapping[str, frozenset[str]]:
        """Its operations with their element types, as `element_types` gives them; of custom calls the targets."""
        found: dict[str, set[str]] = {}
        for module in self.artifact.modules:
            for name, types in element_types(module).items():
                found.setdefault(name, set()).update(types)
        return {name: frozenset(types) for name, types in found.items()} | ({CALL: self.calls} if self.calls else {})

    def has_use(self, glob: str, pattern: str) -> bool:
        """Return whether an operation is used with element types in which a regular expression is found."""
        if not _any_matches(self.operations, [glob.partition("(")[0]]):  # without a walk over the module
            return False
        named = [types for name, types in self.uses.items() if _matches(name, glob)]
        return any(_is_found(pattern, of) for types in named for of in types or ("",))

    @cached_property
    def types(self) -> str:
        """Its types, one a line."""
        return "\n".join(dict.fromkeys(kind for module in self.artifact.modules for kind in module.types))

    @cached_property
    def dialects(self) -> frozenset[str]:
        """The dialects in it."""
        return frozenset(name for module in self.artifact.modules for name in module.dialects)

    @cached_property
    def devices(self) -> int:
        """How many devices it needs, of what the envelope and the meshes inside say the most."""
        meshes = (mesh for module in self.artifact.modules if "sdy" in self.dialects for mesh in module.meshes)
        return max([self.artifact.devices, *(math.prod(mesh.values()) for mesh in meshes)])

    @cached_property
    def has_branches(self) -> bool:
        """Whether it has branches for its platforms, of which each compiles its own alone."""
        envelope = self.artifact.envelope
        return envelope is not None and len(envelope.platforms) > 1 and "stablehlo.case" in self.operations

    @cached_property
    def is_symbolic(self) -> bool:
        """Whether an argument has a symbolic dimension."""
        if self.artifact.envelope is None:
            return any("?" in kind for kind in self._inputs)
        return any(isinstance(dim, str) for aval in self.artifact.envelope.in_avals for dim in aval.shape)

    @cached_property
    def is_wide(self) -> bool:
        """Whether an argument is 64 bits wide."""
        if self.artifact.envelope is None:
            return any(re.search(_WIDE_TYPES, kind) for kind in self._inputs)
        return any(aval.dtype in WIDE for aval in self.artifact.envelope.in_avals)

    @cached_property
    def donates(self) -> bool:
        """Whether an argument is donated."""
        main = self.artifact.module.main
        return main is not None and any(name in attributes for attributes in main.arg_attrs for name in DONATED)

    @property
    def _inputs(self) -> tuple[str, ...]:
        main = self.artifact.module.main
        return main.inputs if main is not None else ()

    def names(self, text: str) -> bool:
        """Return whether it has an attribute, by its text or its code: ``sdy attribute 12``, ``vhlo type 10``."""
        return any(_names(module.tables, text) for module in self.artifact.modules)


def _names(tables: Tables, text: str) -> bool:
    if coded := _coded(text):
        dialect, kind, code = coded
        return (dialect, code) in tables.codes(tables.attributes if kind == "attribute" else tables.types)
    strings = tables.sections[STRINGS]
    return tables.data.find(text.encode(), strings.at, strings.end) >= 0


@lru_cache(maxsize=256)
def _coded(text: str) -> tuple[str, str, int] | None:
    """Return the dialect, the kind and the code of ``sdy attribute 12``; None for the text of an attribute."""
    words = text.split(" ")
    is_code = len(words) == 3 and words[1] in ("attribute", "type") and words[2].isdecimal()
    return (words[0], words[1], int(words[2])) if is_code else None


def _without_version(name: str) -> str:
    """Return the name of an operation of VHLO as StableHLO has it: ``stablehlo.sort`` for ``vhlo.sort_v1``."""
    dialect, _, operation = name.partition(".")
    stem, _, version = operation.rpartition("_v")
    return f"stablehlo.{stem}" if dialect == "vhlo" and stem and version.isdigit() else name


def _any_matches(names: Collection[str], globs: Iterable[str]) -> bool:
    """Return whether a glob matches a name.

    Most globs are names: those need no look at each name.
    """
    return any(
        glob in names if _SPECIAL.isdisjoint(glob) else any(_matches(name, glob) for name in names) for glob in globs
    )


def _matches(name: str, glob: str) -> bool:
    """Return whether a glob matches.

    Most are names, or end with a star: those cost no regular expression, 0.3 ms each.
    """
    stem = glob.removesuffix("*")
    if not _SPECIAL.isdisjoint(stem):
        return fnmatchcase(name, glob)
    return name == glob if stem == glob else name.startswith(stem)


def _is_found(pattern: str, text: str) -> bool:
    """Return whether a regular expression is found.

    One of letters and digits alone is a text.
    """
    return pattern in text if not pattern or pattern.isalnum() else re.search(pattern, text) is not None


HOLDS: Mapping[str, Callable[[About, Any], bool]] = {
    "operations": lambda about, globs: _any_matches(about.operations, globs),
    "dialects": lambda about, names: any(name in about.dialects for name in names),
    "devices": lambda about, least: about.devices >= least,
    "symbolic": lambda about, wanted: about.is_symbolic is wanted,
    "x64": lambda about, wanted: about.is_wide is wanted,
    "attributes": lambda about, texts: any(map(about.names, texts)),
    "lacks": lambda about, texts: not any(map(about.names, texts)),
    "calls": lambda about, globs: _any_matches(about.calls, globs),
    "donated": lambda about, wanted: about.donates is wanted,
    "types": lambda about, pattern: re.search(pattern, about.types) is not None,
    "uses": lambda about, uses: any(about.has_use(*use) for use in uses),
}
"""The check of each key of an entry's `concerns`, the cheapest first."""


def is_concerned(about: About, concerns: Mapping[str, Any]) -> bool:
    """Return whether an artifact has all that an entry is about."""
    return all(holds(about, concerns[key]) for key, holds in HOLDS.items() if key in concerns)

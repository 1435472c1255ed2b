"""The facts of a result: plain JSON values by name, which each feature reads and writes by a type of its own.

Values stay plain where their feature is absent, and are written again as they were read.
"""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from export_core.base.feature import FOLDER, features

Value = TypeVar("Value")
Facts = Mapping[str, Any]  # Plain JSON values, by the name of their `Fact`.


@dataclass(frozen=True)
class Fact(Generic[Value]):
    """A fact that a feature adds to a result.

    The feature lists it by its `name`, in the `facts` of its `Feature`.
    """

    name: str  # Its key in the `facts` of a result.
    kind: type[Value]  # The type that the feature reads it as.
    meaning: str  # What it means, for the schema of a result.
    label: str  # What a report calls it.
    lines: Callable[[Value], Sequence[str]]  # The lines of a report about it.

    def of(self, facts: Facts) -> Value | None:
        """Return the value of this fact in the facts of a result; None where they do not have it.

        Raises `msgspec.ValidationError` for a value of another type, which `check_facts` has refused in a file.
        """
        if self.name not in facts:
            return None
        return msgspec.convert(facts[self.name], self.kind)

    def put(self, facts: Facts, value: Value | None) -> dict[str, Any]:
        """Return the facts of a result with this value of this fact; without the fact for None."""
        others = {name: other for name, other in facts.items() if name != self.name}
        return others if value is None else {**others, self.name: msgspec.to_builtins(value)}


def labelled_facts(facts: Facts) -> list[tuple[str, Sequence[str]]]:
    """Return the label and the lines of each fact whose feature is installed, in the order of the features."""
    known = [_fact(*where) for name, where in _registered().items() if name in facts] if facts else []
    return [(fact.label, fact.lines(value)) for fact in known if (value := fact.of(facts)) is not None]


def known_facts() -> Mapping[str, Fact[Any]]:
    """Return the facts of all features by name; the modules of these features are imported."""
    return {name: _fact(feature, where) for name, (feature, where) in _registered().items()}


def check_facts(facts: Facts) -> None:
    """Raise `msgspec.ValidationError` for a fact whose value is not of its feature's type.

    Only the modules of features with facts in this result are imported.
    """
    for name in facts.keys() & _registered().keys():
        try:
            _fact(*_registered()[name]).of(facts)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$")
            raise msgspec.ValidationError(f"{message} - at `$.facts.{name}{path.removesuffix('`')}`") from None


def _registered() -> Mapping[str, tuple[str, str]]:
    """Return where each fact is declared, by the name of the fact: its feature, and the place in it."""
    return {
        name: (feature, where) for feature, registered in features().items() for name, where in registered.facts.items()
    }


def _fact(feature: str, where: str) -> Fact[Any]:
    fact: Fact[Any] = pkgutil.resolve_name(f"{FOLDER}.{feature}.{where}")
    return fact

"""The facts of a result: plain JSON values by name, which each feature reads and writes by a type of its own.

If the feature of a fact is not installed, its value stays plain, and is written again as it was read.
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

    The `facts` of the feature's `Feature` list the fact by its `name`.
    """

    name: str  # The key of the fact in the `facts` of a result.
    kind: type[Value]  # The type as which the feature reads the value.
    meaning: str  # The meaning of the fact, for the schema of a result.
    label: str  # The name of the fact in a report.
    lines: Callable[[Value], Sequence[str]]  # A function that returns the lines of a report about a value.

    def of(self, facts: Facts) -> Value | None:
        """Return the value of this fact among the facts of a result, or None if the result lacks it.

        Raises `msgspec.ValidationError` for a value of a wrong type, which `check_facts` refuses in files.
        """
        if self.name not in facts:
            return None
        return msgspec.convert(facts[self.name], self.kind)

    def put(self, facts: Facts, value: Value | None) -> dict[str, Any]:
        """Return a copy of a result's facts in which this fact has this value, or is missing if the value is None."""
        others = {name: other for name, other in facts.items() if name != self.name}
        return others if value is None else {**others, self.name: msgspec.to_builtins(value)}


def labelled_facts(facts: Facts) -> list[tuple[str, Sequence[str]]]:
    """Return the label and the report lines of each fact of a result, in the order of the features.

    Facts that no feature declares are left out.
    """
    known = [_fact(*where) for name, where in _registered().items() if name in facts] if facts else []
    return [(fact.label, fact.lines(value)) for fact in known if (value := fact.of(facts)) is not None]


def known_facts() -> Mapping[str, Fact[Any]]:
    """Return the facts of all features by name. Imports the modules that declare the facts."""
    return {name: _fact(feature, where) for name, (feature, where) in _registered().items()}


def check_facts(facts: Facts) -> None:
    """Raise `msgspec.ValidationError` if a fact of a result has a value of another type than its feature declares.

    Only the features with facts in this result are imported.
    """
    for name in facts.keys() & _registered().keys():
        try:
            _fact(*_registered()[name]).of(facts)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$")
            raise msgspec.ValidationError(f"{message} - at `$.facts.{name}{path.removesuffix('`')}`") from None


def _registered() -> Mapping[str, tuple[str, str]]:
    """Return, by the name of each fact, the feature that declares it and where: ``module:NAME`` in the feature."""
    return {
        name: (feature, where) for feature, registered in features().items() for name, where in registered.facts.items()
    }


def _fact(feature: str, where: str) -> Fact[Any]:
    fact: Fact[Any] = pkgutil.resolve_name(f"{FOLDER}.{feature}.{where}")
    return fact

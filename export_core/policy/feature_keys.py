"""Keys of the policy that features add: their entries, the rules for these entries, and their keyword in the marker."""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from export_core.base.feature import hooks

Key = tuple[str | int, ...]  # The path to a value: ``("known_failures", 0, "verdict")``.
Problems = Iterator[tuple[Key, str]]  # What is wrong with values: the path to each, and a sentence about it.

Entry = TypeVar("Entry", bound=msgspec.Struct)


@dataclass(frozen=True)
class FeatureKey(Generic[Entry]):
    """A key that a feature adds to the policy by its `policy_key`: a table with entries of a type of its own.

    The type `entry` needs a field `location`, called ``place`` in JSON. Patterns in its fields `cases`, `writers`,
    `readers` and `platforms` that match nothing are reported.
    """

    name: str  # The key in a policy file.
    entry: type[Entry]  # The type of its entries.
    description: str  # What the key is for: the schema has it, and editors show it.
    noun: str  # What an entry is called in the counts of `jaxexport policy check`.
    problems: Callable[[Key, Entry], Problems]
    """A function that yields what is wrong with an entry beside its types; it is given the path to the entry."""
    never_weaker: str  # Why no entry makes a verdict say less: `judge.accepted` asks this of every key.
    in_marker: Collection[str] = ()
    """The fields of an entry that a test's marker may set, by a keyword with the name of this key. The marker's entry
    comes before those of the policy. The `keywords` of the `Feature` explain the keyword."""

    def of(self, policy: object) -> tuple[Entry, ...]:
        """Return the entries that a policy has under this key."""
        entries: tuple[Entry, ...] = getattr(policy, self.name)
        return entries


@functools.cache
def feature_keys() -> tuple[FeatureKey[Any], ...]:
    """Return the keys that features add, in the order of the list of features."""
    return tuple(hooks("policy_key", FeatureKey))


def with_feature_keys(policy: type[Entry]) -> type[Entry]:
    """Return a subclass of the policy's class that also has the keys that features add."""
    added = [
        (key.name, Annotated[tuple[key.entry, ...], Meta(description=key.description)], ())  # type: ignore[name-defined]
        for key in feature_keys()
    ]
    return msgspec.defstruct(  # type: ignore[return-value]  # a subclass
        *(policy.__name__, added),
        bases=(policy,),
        module=policy.__module__,
        namespace={"__doc__": policy.__doc__},
        frozen=True,
        forbid_unknown_fields=True,
    )


def marker_keywords() -> dict[str, FeatureKey[Any]]:
    """Return the policy keys of features that a test's marker can set too, by name, which is also the keyword."""
    return {key.name: key for key in feature_keys() if key.in_marker}


def with_entries(policy: Entry, entries: Mapping[str, Mapping[str, Any]]) -> Entry:
    """Return a policy with the entries that a test's marker sets added before the policy's own entries.

    `entries` has the fields of each added entry, by policy key. The location of an added entry is "marker".
    """
    keys = marker_keywords()
    own = {
        name: (keys[name].entry(**entry, location="marker"), *keys[name].of(policy)) for name, entry in entries.items()
    }
    return msgspec.structs.replace(policy, **own)

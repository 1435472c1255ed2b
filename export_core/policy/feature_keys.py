"""Keys of the policy that features add: their entries, the rules of these, and the keyword that the marker has."""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta

from export_core.base.feature import hooks

Key = tuple[str | int, ...]  # The path to a value: ``("known_failures", 0, "verdict")``.
Problems = Iterator[tuple[Key, str]]  # What is wrong with values, a sentence each, with the paths to them.

Entry = TypeVar("Entry", bound=msgspec.Struct)


@dataclass(frozen=True)
class FeatureKey(Generic[Entry]):
    """A table of the policy that belongs to a feature, which names it as its `policy_key`.

    `entry` is what each entry is. It needs a field `location`, called ``place`` in JSON. The kernel knows what its
    fields `cases`, `writers`, `readers` and `platforms` are: it reports the patterns there that match nothing.
    """

    name: str  # The key, as a policy has it.
    entry: type[Entry]
    description: str  # What it is for: in the schema, which editors show.
    noun: str  # What one entry is called where `jaxexport policy check` counts them.
    problems: Callable[[Key, Entry], Problems]
    """What is wrong with an entry beside its types, each problem with its path, which begins with the given one."""
    never_weaker: str  # Why no entry makes a verdict say less, as `judge.accepted` asks of every key.
    in_marker: Collection[str] = ()
    """The fields of an entry that a test's marker may set, by the keyword of this name; that entry comes before those
    of the policy. Its meaning is in the `keywords` of the `Feature`."""

    def of(self, policy: object) -> tuple[Entry, ...]:
        """Return the entries of a policy."""
        entries: tuple[Entry, ...] = getattr(policy, self.name)
        return entries


@functools.cache
def feature_keys() -> tuple[FeatureKey[Any], ...]:
    """Return the keys that features add, in the order of their list."""
    return tuple(hooks("policy_key", FeatureKey))


def with_feature_keys(policy: type[Entry]) -> type[Entry]:
    """Return the class of a policy with the keys that features add, which they read with `FeatureKey.of`."""
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
    """Return the keys that the marker has a keyword for, by its name."""
    return {key.name: key for key in feature_keys() if key.in_marker}


def with_entries(policy: Entry, entries: Mapping[str, Mapping[str, Any]]) -> Entry:
    """Return the policy of a test whose marker sets these entries, by key.

    They come first, and are located in the marker.
    """
    keys = marker_keywords()
    own = {
        name: (keys[name].entry(**entry, location="marker"), *keys[name].of(policy)) for name, entry in entries.items()
    }
    return msgspec.structs.replace(policy, **own)

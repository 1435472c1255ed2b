"""Effects of our own, as a reader must know them to read an artifact that has them: the golden keeps a copy of this file."""

from __future__ import annotations

from jax._src import effects


class Unordered(effects.Effect):
    """Something happens, in any order."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return type(self).__name__


class Ordered(Unordered):
    """Something happens, one after another: a token goes through."""


class OtherOrdered(Unordered):
    """Something else happens in an order of its own, with a token of its own."""


for kind in (Unordered, Ordered, OtherOrdered):
    effects.lowerable_effects.add_type(kind)
    effects.control_flow_allowed_effects.add_type(kind)
for kind in (Ordered, OtherOrdered):
    effects.ordered_effects.add_type(kind)

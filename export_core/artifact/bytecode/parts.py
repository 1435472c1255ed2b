"""What is known of a module's parts: a custom call, a function, a constant."""

from __future__ import annotations

from export_core.artifact.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from export_core.artifact.bytecode.values import Values


class CustomCall(Record):
    """A custom call: what XLA will run by name, outside StableHLO.

    `api_version` is StableHLO's (1 original, 2 status returning, 3 unified, 4 typed FFI); JAX's FFI calls say 1 too
    and keep their arguments in
    `mhlo.backend_config`, which is then the `backend_config` here. `location` is the name that JAX gave the
    operation. `count` is how often
    it is there with the same configuration and the same location. `vjp_order` is 0 for the function itself.
    """

    target: str
    api_version: int
    has_side_effect: bool
    backend_config: str | bytes | dict[str, Any]
    function: str
    location: str
    count: int = 1
    vjp_order: int = 0

    @property
    def where(self) -> str:
        """The function and the location, for people."""
        place = f"@{self.function}" + (f" at {self.location}" if self.location else "")
        return place if not self.vjp_order else f"{place} (VJP of order {self.vjp_order})"


class Later(Record):
    """Where the attributes of a function's arguments and results are, for when somebody asks; -1 where there are none."""

    values: Values
    arguments: int
    results: int

    def __repr__(self) -> str:
        return "Later()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Later) and all(
            self.dicts(mine) == other.dicts(theirs)
            for mine, theirs in ((self.arguments, other.arguments), (self.results, other.results))
        )

    def __hash__(self) -> int:
        return hash(Later)

    def dicts(self, attribute: int) -> tuple[dict[str, Any], ...]:
        """Return a list of dictionaries."""
        found = self.values.attribute(attribute) if attribute >= 0 else []
        return tuple(x for x in found if isinstance(x, dict)) if isinstance(found, list) else ()


class Function(Record):
    """A function: its name, visibility and the types of its arguments and results, with their attributes."""

    shown: ClassVar[tuple[str, ...]] = ("name", "visibility", "inputs", "outputs", "arg_attrs", "result_attrs")

    name: str
    visibility: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    later: Later

    @property
    def arg_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each argument, decoded when asked. May raise `ArtifactError`."""
        return self.later.dicts(self.later.arguments)

    @property
    def result_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each result, decoded when asked. May raise `ArtifactError`."""
        return self.later.dicts(self.later.results)

    def __str__(self) -> str:
        return f"@{self.name}({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})"


class Constant(Record):
    """A constant: its type, the bytes it takes in the file, and the function it is in. Its content is not copied."""

    type: str
    nbytes: int
    at: int
    function: str

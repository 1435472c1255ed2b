"""The parts of a module: a custom call, a function, a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from export_core.artifact.bytecode.values import Values


class CustomCall(NamedTuple):
    """A custom call: what XLA will run by name, outside StableHLO."""

    target: str
    """The name that XLA looks up."""
    api_version: int
    """StableHLO's number: 1 original, 2 status returning, 3 unified, 4 typed FFI. JAX's FFI calls say 1 too."""
    has_side_effect: bool
    """Whether it may not be left out."""
    backend_config: str | bytes | dict[str, Any]
    """Its configuration; of JAX's FFI calls, the arguments in `mhlo.backend_config`."""
    function: str
    """The function that calls it."""
    location: str
    """The name that JAX gave the operation."""
    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which nothing calls
    """The number of calls with the same configuration and the same location."""
    vjp_order: int = 0
    """0 for the function itself, 1 for its first derivative."""

    @property
    def where(self) -> str:
        """The function and the location, for people."""
        place = f"@{self.function}" + (f" at {self.location}" if self.location else "")
        return place if not self.vjp_order else f"{place} (VJP of order {self.vjp_order})"


class Signature:
    """The types and attributes of a function's arguments and results: where they are, to be decoded when asked for.

    All are numbers in the module's tables: `kind` of a function type, the others of attributes, -1 where there are
    none. Equal where what is decoded is. Each method may raise `ArtifactError`.
    """

    __slots__ = ("arguments", "kind", "results", "values")

    def __init__(self, values: Values, kind: int, arguments: int, results: int):
        self.values = values
        self.kind = kind
        self.arguments = arguments
        self.results = results

    def __repr__(self) -> str:
        return "Signature()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and self._decoded() == other._decoded()

    def __hash__(self) -> int:
        return hash(Signature)  # decoding it for a hash would cost what this class saves

    def _decoded(self) -> tuple[Any, ...]:
        return self.types(), self.argument_attributes(), self.result_attributes()

    def types(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the types of the arguments and of the results."""
        return self.values.function_type(self.kind)

    def argument_attributes(self) -> tuple[dict[str, Any], ...]:
        """Return a dictionary for each argument."""
        return self._dictionaries(self.arguments)

    def result_attributes(self) -> tuple[dict[str, Any], ...]:
        """Return a dictionary for each result."""
        return self._dictionaries(self.results)

    def _dictionaries(self, index: int) -> tuple[dict[str, Any], ...]:
        value = self.values.attribute(index) if index >= 0 else []
        return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


class Function(NamedTuple):
    """A function of the module. Its types and attributes are decoded when asked: each may raise `ArtifactError`."""

    name: str
    """Its name."""
    visibility: str
    """public, or private."""
    signature: Signature
    """Where its types and attributes are."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The types of its arguments."""
        return self.signature.types()[0]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The types of its results."""
        return self.signature.types()[1]

    @property
    def arg_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each argument."""
        return self.signature.argument_attributes()

    @property
    def result_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each result."""
        return self.signature.result_attributes()

    def shown(self) -> tuple[str, ...]:
        """Return the names of what `as_dict` gives."""
        return "name", "visibility", "inputs", "outputs", "arg_attrs", "result_attrs"

    def __str__(self) -> str:
        return f"@{self.name}({', '.join(self.inputs)}) -> ({', '.join(self.outputs)})"


class Constant(NamedTuple):
    """A constant. Its content is not copied."""

    type: str
    """Its type."""
    nbytes: int
    """The bytes that it takes in the file."""
    at: int
    """Its first byte in the file."""
    function: str
    """The function that it is in."""

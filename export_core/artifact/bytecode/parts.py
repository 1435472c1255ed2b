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


class FunctionAttributes:
    """The attributes of a function's arguments and results: where they are, to be decoded when asked for.

    Both are numbers of attributes in the module, -1 where there are none. Equal where the decoded attributes are.
    """

    __slots__ = ("arguments", "results", "values")

    def __init__(self, values: Values, arguments: int, results: int):
        self.values = values
        self.arguments = arguments
        self.results = results

    def __repr__(self) -> str:
        return "FunctionAttributes()"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FunctionAttributes)
            and self.of_arguments() == other.of_arguments()
            and self.of_results() == other.of_results()
        )

    def __hash__(self) -> int:
        return hash(FunctionAttributes)  # decoding them for a hash would cost what this class saves

    def of_arguments(self) -> tuple[dict[str, Any], ...]:
        """Return a dictionary for each argument. May raise `ArtifactError`."""
        return self._decode(self.arguments)

    def of_results(self) -> tuple[dict[str, Any], ...]:
        """Return a dictionary for each result. May raise `ArtifactError`."""
        return self._decode(self.results)

    def _decode(self, index: int) -> tuple[dict[str, Any], ...]:
        value = self.values.attribute(index) if index >= 0 else []
        return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


class Function(NamedTuple):
    """A function of the module."""

    name: str
    """Its name."""
    visibility: str
    """public, or private."""
    inputs: tuple[str, ...]
    """The types of its arguments."""
    outputs: tuple[str, ...]
    """The types of its results."""
    attributes: FunctionAttributes
    """The attributes of both; `arg_attrs` and `result_attrs` decode them."""

    @property
    def arg_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each argument, decoded when asked. May raise `ArtifactError`."""
        return self.attributes.of_arguments()

    @property
    def result_attrs(self) -> tuple[dict[str, Any], ...]:
        """The attributes of each result, decoded when asked. May raise `ArtifactError`."""
        return self.attributes.of_results()

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

"""What the files of this folder share: the error of a refusal, and the operations of a module with their attributes."""

from typing import Any


class NotRewritableError(Exception):
    """An error for a part of the module that cannot be rewritten."""


def operations(module: Any) -> list[Any]:
    """Return all operations of a module, including those in regions."""
    listed: list[Any] = []

    def walk(operation: Any) -> None:
        for region in operation.regions:
            for block in region:
                for inner in block:
                    listed.append(inner.operation)
                    walk(inner.operation)

    walk(module.operation)
    return listed


def attributes(operation: Any) -> dict[str, Any]:
    """Return the attributes of an operation by name, without `value`, which holds a constant's array.

    MLIR's Python bindings have no class for some of those arrays.
    """
    listed = map(operation.attributes.__getitem__, range(len(operation.attributes)))
    return {named.name: named.attr for named in listed if named.name != "value"}

"""The error of the folder export, and how its messages show a value."""

from export_core.base.errors import ExportCompatError


class ExportError(ExportCompatError):
    """An error for a function or an argument that cannot be exported, raised before jax reports it less clearly."""


def value_and_type(value: object) -> str:
    """Return a value as text for messages, cut after 60 characters and followed by its type."""
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}"


def what_to_pass(value: object) -> str:
    """Return advice on what a test should pass in place of an object that is not callable."""
    if hasattr(value, "mlir_module_serialized"):  # of jax's Exported, in each release
        return (
            "Pass the jitted function that was exported: the fixture exports it. For an artifact without its source: "
            "`jaxexport goldens add`."
        )
    return "Pass the function, and its arguments after it."

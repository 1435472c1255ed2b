"""The error of the folder export, and how its messages show a value."""

from export_core.base.errors import ExportCompatError


class ExportError(ExportCompatError):
    """An error for a function or an argument that cannot be exported, raised before jax reports it less clearly."""


def value_and_type(value: object) -> str:
    """Return a value as messages show it, cut after 60 characters, followed by its type."""
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}"

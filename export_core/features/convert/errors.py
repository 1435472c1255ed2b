"""The errors of conversion."""

from export_core.base.errors import ExportCompatError


class ConversionRefused(ExportCompatError):  # noqa: N818 - it names what happened
    """An error for an artifact that cannot be made into one that the reader takes. Nothing is written.

    The message names the part of the artifact that the reader does not take, and why it cannot be rewritten.
    """

    exit_code = 1


class ConversionError(ExportCompatError):
    """An error for bad input of a conversion: files, folders or options."""

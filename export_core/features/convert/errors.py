"""The errors of conversion."""

from export_core.base.errors import ExportCompatError


class ConversionRefused(ExportCompatError):  # noqa: N818 - it names what happened
    """An artifact that cannot be made into one that the reader takes. Nothing is written.

    The message names what in the artifact the reader does not take, and why that cannot be rewritten.
    """

    exit_code = 1


class ConversionError(ExportCompatError):
    """Bad input of a conversion: files, folders or options."""

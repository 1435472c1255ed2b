"""The error of a bad artifact: what was expected, what was found, at which byte, what to do."""

from __future__ import annotations

from export_core.base.errors import ExportCompatError
from export_core.base.named_tuple import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")
DAMAGED = "The file is damaged or is not a serialized jax.export artifact: export it again, or check the copy."
LIMIT = "JAX writes no artifact near this limit: do not trust the source of this file."


class ArtifactError(ExportCompatError):
    """Bytes that cannot be read as an artifact."""

    def __init__(self, expected: str, found: str, at: int | None = None, name: str = "", advice: str = DAMAGED):
        self.expected = expected  # What was expected there.
        self.found = found  # What was found.
        self.at = at  # The byte, counted from the start of the file; None if no single byte is to blame.
        self.name = name  # The name of the artifact in the message, such as its file.
        self.advice = advice  # What to do.
        super().__init__(expected, found, at, name, advice)  # by which it can be pickled

    def message(self) -> str:
        """Return the message: what was expected, what was found, where, and what to do."""
        where = "" if self.at is None else f", at byte {self.at}"
        named = f"{self.name}: " if self.name else ""
        return f"{named}expected {self.expected}, found {self.found}{where}. {self.advice}"


def guarded(read: Callable[[], Result], name: str) -> Result:
    """Call `read` and return its result; turn an unforeseen exception into an `ArtifactError` that asks for a report.

    `name` is the name of the artifact in the message.
    """
    try:
        return read()
    except ArtifactError:
        raise
    except Exception as error:
        found = f"bytes on which the reader failed ({type(error).__name__}: {error})"
        advice = "This is a fault of jaxexport, or damage that it does not recognize: please report it with the file."
        raise ArtifactError("an artifact that can be read", found, name=name, advice=advice) from error

"""How a golden is made: cases are exported and run by the jax of this process. Imports jax."""

from export_core.export.case import Case, ExportOptions, case_id
from export_core.export.errors import ExportError
from export_core.export.golden_checks import MISMATCH, ExtraCall, add_checks, require_values
from export_core.export.produce import (
    LARGE,
    Flags,
    ProducedGolden,
    current_flags,
    export_again,
    free_caches,
    installed_writer,
    outputs_for,
    produce,
)

__all__ = [
    "LARGE",
    "MISMATCH",
    "Case",
    "ExportError",
    "ExportOptions",
    "ExtraCall",
    "Flags",
    "ProducedGolden",
    "add_checks",
    "case_id",
    "current_flags",
    "export_again",
    "free_caches",
    "installed_writer",
    "outputs_for",
    "produce",
    "require_values",
]

"""How it is made: cases, and what jax.export makes of them. Imports jax."""

from export_core.export.case import PLATFORMS, Asked, Case, case_id
from export_core.export.errors import ExportError
from export_core.export.produce import Produced, installed_writer, outputs_for, produce, signature_of
from export_core.export.uses import MISMATCH, Use, with_checks

__all__ = [
    "MISMATCH",
    "PLATFORMS",
    "Asked",
    "Case",
    "ExportError",
    "Produced",
    "Use",
    "case_id",
    "installed_writer",
    "outputs_for",
    "produce",
    "signature_of",
    "with_checks",
]

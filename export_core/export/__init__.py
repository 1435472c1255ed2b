"""How it is made: cases, and what jax.export makes of them. Imports jax."""

from export_core.export.case import PLATFORMS, Case, case_id
from export_core.export.errors import ExportError
from export_core.export.produce import Produced, installed_writer, produce, signature_of

__all__ = ["PLATFORMS", "Case", "ExportError", "Produced", "case_id", "installed_writer", "produce", "signature_of"]

"""The rewriting of modules, in a process of its own where a jaxlib is."""

from __future__ import annotations

from export_core.conversion.convert import ModuleJob, RewrittenModules
from export_core.conversion.errors import ConversionRefused


def no_modules(job: ModuleJob) -> RewrittenModules:
    """Rewrite nothing."""
    raise ConversionRefused(f"its module is not for StableHLO {job.stablehlo}, and only envelopes are rewritten")

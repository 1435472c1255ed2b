"""A module as the installed jaxlib prints it: all of `inspect` that needs a jaxlib."""

import contextlib

from export_core.artifact import Artifact
from export_core.base.errors import ExportCompatError


class TextError(ExportCompatError):
    """An error for a module that the installed jaxlib cannot print as text."""


def module_text(artifact: Artifact) -> str:
    """Return the StableHLO of the function itself, as the installed jaxlib prints it. Nothing is compiled or run.

    Raises:
        ArtifactError: the module cannot be read.
        TextError: no jaxlib is installed, or the one here does not know this module.
    """
    data = artifact.module.serialized()
    # Our own reader walks it first: jaxlib aborts the process on some malformed modules (openxla/stablehlo#2967).
    _ = artifact.module.op_counts
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import chlo, stablehlo
        from jaxlib.version import __version__
    except ImportError as error:
        raise TextError(
            f"{artifact.name}: --mlir: expected a jaxlib that prints modules, found none here ({error}). "
            "Install jaxlib, or leave out --mlir: everything else is shown without it."
        ) from None
    with ir.Context() as context:
        try:
            stablehlo.register_dialect(context)
            chlo.register_dialect(context)
            with contextlib.suppress(ImportError):  # before 0.4.36
                from jaxlib.mlir.dialects import sdy

                sdy.register_dialect(context)
            return str(stablehlo.deserialize_portable_artifact(context, data).operation)
        except Exception as error:  # what it raises differs by release
            reason = " ".join(str(error).split())[:300]
            raise TextError(
                f"{artifact.name}: jaxlib {__version__} cannot read this module: {reason}. "
                f"`jaxexport inspect {artifact.name}` says which releases can."
            ) from None

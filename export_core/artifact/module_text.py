"""A module as text: the only thing about an artifact that needs a jaxlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from export_core.artifact.bytecode.constants import LONG, with_hashes
from export_core.base.errors import ExportCompatError

if TYPE_CHECKING:
    from export_core.artifact import Artifact


class TextError(ExportCompatError):
    """A module that cannot be printed here."""


def module_text(artifact: Artifact, *, spelled: bool = True) -> str:
    """Return the StableHLO of the function itself, as the installed jaxlib prints it. Nothing is compiled or run.

    Args:
        artifact: what to print.
        spelled: with all elements of long constants; otherwise they have a hash, as in module.mlir.

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
            f"{artifact.name}: --mlir expected a jaxlib that prints modules, found none here ({error}). "
            "Install jaxlib, or leave out --mlir: everything else is shown without it."
        ) from None
    with ir.Context() as context:
        try:
            stablehlo.register_dialect(context)
            chlo.register_dialect(context)
            _shardy(context)
            module = stablehlo.deserialize_portable_artifact(context, data).operation
            if spelled:
                return str(module)
            return with_hashes(module.get_asm(large_elements_limit=LONG), artifact.module)
        except Exception as error:  # what it raises differs by release
            reason = " ".join(str(error).split())[:300]
            raise TextError(
                f"{artifact.name}: jaxlib {__version__} cannot read this module: {reason}. "
                f"`jaxexport inspect {artifact.name}` says which releases can."
            ) from None


def _shardy(context: object) -> None:
    """Register Shardy's operations, if this jaxlib has them (0.4.36 and later)."""
    try:
        from jaxlib.mlir.dialects import sdy
    except ImportError:
        return
    sdy.register_dialect(context)

"""The outputs of a case that its writer's platform cannot run: none, where the marker or JAX says why."""

from __future__ import annotations

import re
from collections.abc import Callable

from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.goldens import Leaf

OUTPUTS_ADVICE = (
    "A golden has the outputs of its function, computed where it is written. Give the function an implementation for "
    "{platform} too (jax.lax.platform_dependent), write the golden on a machine that runs it, or say why "
    "it has none: without_outputs='why'. Readers then load, lower and compile it, and compare no numbers."
)

NO_LOWERING = re.compile(r"not found for platform|Only interpret mode is supported on CPU")
"""What JAX says of a primitive, or a Pallas kernel, that it cannot lower for a platform: nothing else can be wrong."""


def check_without_outputs(case: Case) -> None:
    """Raise `ExportError` where the marker asks for no outputs of a function that every reader's machine runs."""
    options = case.options
    if options.without_outputs and ("cpu" in (options.platforms or ("cpu",)) or "platform" in options.disabled_checks):
        raise ExportError(
            f"{case.test}: without_outputs: expected a function that is exported for other platforms than cpu, such as "
            "platforms=['tpu'], and with the check of the platform: on a CPU, each reader runs it and compares its "
            "outputs. Leave without_outputs out, or cpu."
        )


def outputs_if_any(
    case: Case, platform: str, exported_for: tuple[str, ...], compute: Callable[[], tuple[Leaf, ...]]
) -> tuple[tuple[Leaf, ...] | None, str]:
    """What `compute` gives, or None and the reason: this process is not what the case was exported for.

    The reason is the marker's, else that JAX has no lowering for `platform`, which is that of this process.

    Raises `ExportError` where the function does not run here for another reason, and the marker does not say why its
    golden has no outputs. On a platform that it was exported for, its own error is passed on.
    """
    if platform in exported_for:
        return compute(), ""
    options = case.options
    if options.without_outputs:
        return None, options.without_outputs
    try:
        return compute(), ""
    except Exception as error:
        told = _first_line(error)
        # With the check of the platform disabled, readers on a CPU would have to run it.
        if NO_LOWERING.search(told) and "cpu" not in exported_for and "platform" not in options.disabled_checks:
            return None, f"JAX cannot run it on {platform}, where it was written: {told}"
        raise ExportError(
            f"{case.test}: this function was exported for {', '.join(exported_for)}, and does not run on {platform}, "
            f"the platform of this process: {type(error).__name__}: {told}. "
            f"{OUTPUTS_ADVICE.format(platform=platform)}"
        ) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "").rstrip(".")

"""The outputs of a case that its writer's platform cannot run: none, where the marker says why."""

from __future__ import annotations

from collections.abc import Callable

from export_core.export.case import Case
from export_core.export.errors import ExportError
from export_core.goldens import Leaf

OUTPUTS_ADVICE = (
    "A golden has the outputs of its function, computed where it is written. Give the function an implementation for "
    "{platform} too (jax.lax.platform_dependent), write the golden on a machine that runs it, or say why "
    "it has none: without_outputs='why'. Readers then load, lower and compile it, and compare no numbers."
)


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
) -> tuple[Leaf, ...] | None:
    """What `compute` gives; None where this process is not what the case was exported for, and is to run nothing.

    `platform` is that of this process.

    Raises `ExportError` where the function does not run here, it was exported for other platforms, and the marker does
    not say why its golden has no outputs. On a platform that it was exported for, its own error is passed on.
    """
    if platform in exported_for:
        return compute()
    if case.options.without_outputs:
        return None
    try:
        return compute()
    except Exception as error:
        raise ExportError(
            f"{case.test}: this function was exported for {', '.join(exported_for)}, and does not run on {platform}, "
            f"the platform of this process: {type(error).__name__}: {_first_line(error)}. "
            f"{OUTPUTS_ADVICE.format(platform=platform)}"
        ) from error


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "").rstrip(".")

"""The platforms for which jax exports."""

from export_core.base.errors import ExportCompatError
from export_core.base.text import did_you_mean

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


class PlatformError(ExportCompatError):
    """An error for a name that is no platform."""


def similar_platform(name: str) -> str:
    """Return the hint " Did you mean 'cuda'?" for the wrong name of a platform; "" if no platform is similar."""
    # What JAX's own `jax.devices("gpu")` takes; an artifact is exported for one of the two.
    if name.lower() == "gpu":
        return " Did you mean 'cuda' or 'rocm'?"
    return did_you_mean(name.lower(), PLATFORMS)

"""The platforms for which jax exports."""

from export_core.base.errors import ExportCompatError
from export_core.base.text import did_you_mean

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


class PlatformError(ExportCompatError):
    """An error for a name that is not the name of a platform."""


def similar_platform(name: str) -> str:
    """Return a hint such as " Did you mean 'cuda'?" for a misspelled platform; "" if no platform has a similar name."""
    # What JAX's own `jax.devices("gpu")` takes; an artifact is exported for one of the two.
    if name.lower() == "gpu":
        return " Did you mean 'cuda' or 'rocm'?"
    return did_you_mean(name.lower(), PLATFORMS)

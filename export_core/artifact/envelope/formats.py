"""What each jax writes around a module: its serialization format, with the fields and the version number of the wire.

A release surely reads the format that it writes: an artifact is converted to that of its reader.
"""

from export_core.artifact.envelope.schema import FIELDS, OUT_SHARDINGS_IDXS, UNIQUE_AVALS
from export_core.artifact.readers import version_numbers
from export_core.artifact.writers import FIRST_JAX

# The first format that has each of these; of the short number of devices, the last.
WIDE_NR_DEVICES = 5  # the number of devices in 32 bits
MEMORY_SPACES = 5  # of arguments and results
NAMED_SHARDINGS = 6
_SHORT_UNTIL = 6  # the last with the number of devices in 16 bits
ABSTRACT_DEVICES = 8  # meshes say which device they were made for
NO_XLA_SHARDINGS = 9  # beside the named ones
INDICES = 10  # each aval, mesh and sharding once
DEVICE_PLATFORMS = 11  # that device has a platform
_NAMES_JAX = 12  # the jax that wrote it is named, and the version of the format is on the wire

_CONVENTION_10_SINCE = (0, 7, 0)


def format_of(jax: str) -> int:
    """The serialization format that a jax writes; 0 for one that is older than any that is known."""
    numbers = version_numbers(jax)
    return next((number for number, first in FIRST_JAX.items() if numbers >= first), 0)


def fields_of(number: int) -> tuple[str, ...]:
    """The fields of `Exported` that a format has, beside that of a derivative."""
    names = FIELDS["Exported"]
    unique = names[UNIQUE_AVALS : OUT_SHARDINGS_IDXS + 1]
    since = {"nr_devices": WIDE_NR_DEVICES, **dict.fromkeys(unique, INDICES), "jax_version": _NAMES_JAX}
    until = {"nr_devices_short": _SHORT_UNTIL, "vjp": 0}
    return tuple(name for name in names if since.get(name, 1) <= number <= until.get(name, number))


def wire_version(number: int) -> int:
    """What the field `serialization_version` has in a format: before 12, several formats share a number."""
    return number if number >= _NAMES_JAX else 3 if number >= WIDE_NR_DEVICES else min(number, 2)


def newest_convention(jax: str) -> int:
    """The newest calling convention that a jax knows. The oldest that readers here know is 9."""
    return 10 if version_numbers(jax) >= _CONVENTION_10_SINCE else 9

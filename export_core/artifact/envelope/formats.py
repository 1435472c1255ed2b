"""The serialization formats of envelopes: which jax writes which format, and which fields each format has."""

from export_core.artifact.envelope.schema import FIELDS, OUT_SHARDINGS_IDXS, UNIQUE_AVALS
from export_core.releases.names import version_numbers

# The first and the last jax of the serialization formats that the slots tell apart. Source: the releases' own writers.
FIRST_JAX = {12: (0, 11, 1), 11: (0, 10, 1), 10: (0, 10, 0), 8: (0, 9, 2), 6: (0, 9, 0), 5: (0, 8, 2), 2: (0, 4, 24)}
LAST_JAX = {4: (0, 8, 1), 6: (0, 9, 0, 1), 9: (0, 9, 2), 11: (0, 11, 0)}

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


def format_of(jax: str) -> int:
    """Return the number of the serialization format that a jax release writes; 0 before jax 0.4.24."""
    numbers = version_numbers(jax)
    return next((number for number, first in FIRST_JAX.items() if numbers >= first), 0)


def format_in_words(first: int, last: int) -> str:
    """Return the format of an envelope whose fields fit the formats `first` to `last`: ``12``, or ``8 or 9``.

    An envelope has only one format, but before format 12 the file does not state which.
    """
    *most, newest = map(str, range(first, last + 1))
    return f"{', '.join(most)} or {newest}" if most else newest


def fields_of(number: int) -> tuple[str, ...]:
    """Return the names of all fields of `Exported` in the format `number`, except `vjp`."""
    names = FIELDS["Exported"]
    unique = names[UNIQUE_AVALS : OUT_SHARDINGS_IDXS + 1]
    since = {"nr_devices": WIDE_NR_DEVICES, **dict.fromkeys(unique, INDICES), "jax_version": _NAMES_JAX}
    until = {"nr_devices_short": _SHORT_UNTIL, "vjp": 0}
    return tuple(name for name in names if since.get(name, 1) <= number <= until.get(name, number))


def wire_version(number: int) -> int:
    """Return the value that the field `serialization_version` has in the format `number`.

    Before format 12, several formats have the same value.
    """
    return number if number >= _NAMES_JAX else 3 if number >= WIDE_NR_DEVICES else min(number, 2)

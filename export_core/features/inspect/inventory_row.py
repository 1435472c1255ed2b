"""What an inventory says of one file: a line of `jaxexport inspect DIR --json`, a row of `--csv`.

The type is the published schema (schema/inventory.schema.json).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from export_core.artifact import ArtifactError
from export_core.artifact.archive import artifact_in
from export_core.features.inspect.describe import describe

if TYPE_CHECKING:
    from export_core.artifact.archive import Found
    from export_core.features.inspect.facts import Inspection
    from export_core.policy.terms import Terms


class InventoryRow(TypedDict):
    """A file of an archive. Of one that cannot be read, only `file` and `error` are known."""

    file: str
    """The file, below the folder as it was named."""
    error: str | None
    """Why it cannot be read; null for one that was read."""
    kind: str | None
    """What it is: an artifact of jax.export, or bare StableHLO."""
    nbytes: int | None
    """Its size in bytes."""
    sha256: str | None
    """The SHA-256 of the file."""
    function: str | None
    """The name of the function."""
    jax: str | None
    """The jax that the artifact names, null where it names none."""
    writers: list[str]
    """The jaxlibs that can have written it."""
    formats: list[int]
    """The oldest and the newest format that the envelope can have; none for a bare module."""
    platforms: list[str]
    """The platforms that it was exported for."""
    nr_devices: int | None
    """The number of devices; null for a bare module."""
    custom_calls: list[str]
    """The targets of its custom calls."""
    unpromised: list[str]
    """Those that the writer or the newest release does not promise, and parts that are not known."""
    promised_until: str | None
    """The last build date of a jaxlib that is promised to load it, by the oldest possible writer; null if unknown."""
    readers: int
    """How many releases load it."""
    unknown_readers: int
    """For how many releases that is not known."""
    newest_reader: str | None
    """The last built release that loads it; null where none does."""


def read_row(terms: Terms, found: Found) -> InventoryRow | str:
    """The row of a file, or why it is left out."""
    try:
        artifact = artifact_in(found)
        return artifact if isinstance(artifact, str) else _row(describe(artifact, terms, whole=False))
    except ArtifactError as error:
        return _unread(found.path, str(error).removeprefix(f"{found.path}: "))
    except MemoryError:
        return _unread(found.path, "expected memory to read it, found too little.")


def _unread(path: str, error: str) -> InventoryRow:
    return {
        "file": path,
        "error": error,
        "kind": None,
        "nbytes": None,
        "sha256": None,
        "function": None,
        "jax": None,
        "writers": [],
        "formats": [],
        "platforms": [],
        "nr_devices": None,
        "custom_calls": [],
        "unpromised": [],
        "promised_until": None,
        "readers": 0,
        "unknown_readers": 0,
        "newest_reader": None,
    }


def _row(facts: Inspection) -> InventoryRow:
    writer, promise, calls = facts["writer"], facts["promise"], facts["custom_calls"]
    loading = [reader["jaxlib"] for reader in facts["readers"] if reader["loads"]]
    return {
        "file": facts["file"],
        "error": None,
        "kind": facts["kind"],
        "nbytes": facts["nbytes"],
        "sha256": facts["sha256"],
        "function": facts["signature"]["name"],
        "jax": writer["jax"],
        "writers": writer["candidates"],
        "formats": writer["formats"] or [],
        "platforms": facts["platforms"],
        "nr_devices": facts["nr_devices"],
        "custom_calls": [call["target"] for call in calls if call["count"]],
        "unpromised": [call["target"] for call in calls if not call["ok"]],
        "promised_until": promise["until"][0] if promise else None,
        "readers": len(loading),
        "unknown_readers": sum(reader["loads"] is None for reader in facts["readers"]),
        "newest_reader": loading[-1] if loading else None,
    }

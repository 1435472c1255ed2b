"""artifacts.yaml: what a person says of the artifacts of an archive, where file names do not say it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from export_core.base.phrases import schema_problem
from export_core.base.untrusted import LARGEST_TEXT, decode_yaml, read_regular
from export_core.goldens import GoldenError

FILE = "artifacts.yaml"

Size = Annotated[int, msgspec.Meta(ge=1)]


class ListedArtifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One artifact. Paths are relative to the archive's folder, and stay inside it."""

    file: str
    """What `Exported.serialize()` returned."""
    case: str = ""
    """The name of the case; empty for the one that follows from the path."""
    inputs: str | None = None
    """An .npz with its flat arguments. Null: the one that the naming rule names, else they are made."""
    outputs: str | None = None
    """An .npz with its flat results. Null: the one that the naming rule names, else its writer computes them."""
    writer: str | None = None
    """The jaxlib that wrote it, such as `0.9.2` or `0.11.2-jax0.12.0`. Null: the only one that can have."""
    dims: dict[str, Size] = {}
    """Sizes of symbolic dimensions, for inputs that are made."""
    register: tuple[str, ...] = ()
    """Python files that readers import first."""
    mesh: dict[str, Size] = {}
    """The mesh of an artifact for several devices, where the artifact does not say it."""
    in_specs: str = ""
    """How each flat argument is sharded, where the artifact does not say it: `P('data'), None`."""
    nothing_to_compare: str = ""
    """Why this golden is meant although it has no output, only empty ones or nothing but NaN."""
    without_outputs: str = ""
    """Of an artifact for other platforms than cpu: why it has no outputs."""


class ArtifactList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of artifacts.yaml. Artifacts that it does not list are not added."""

    artifacts: tuple[ListedArtifact, ...]
    """The artifacts, in the order in which they are added."""


def read_artifact_list(path: Path) -> ArtifactList:
    """The list in a file. Raises `GoldenError` naming the file and the field."""
    try:
        artifacts: ArtifactList = decode_yaml(read_regular(path, most=LARGEST_TEXT), ArtifactList)
    except OSError as error:
        raise GoldenError(f"{path}: cannot read this list of artifacts: {error.strerror or error}.") from None
    except msgspec.MsgspecError as error:
        raise GoldenError(
            f"{path}: not a list of artifacts: {schema_problem(error)}. schema/artifacts.schema.json describes it."
        ) from None
    return artifacts

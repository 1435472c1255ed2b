"""What is in a serialized jax.export artifact, read without jax, jaxlib or numpy."""

from __future__ import annotations

from export_core.artifact.artifact import Artifact, read, read_bytes
from export_core.artifact.bytecode.module import Module
from export_core.artifact.bytecode.parts import Constant, CustomCall, Function
from export_core.artifact.envelope.fields import (
    AbstractDevice,
    AbstractMesh,
    Aval,
    DisabledCheck,
    Envelope,
    HloSharding,
    NamedSharding,
    PartitionSpec,
    Tree,
    UnknownField,
)
from export_core.artifact.errors import ArtifactError
from export_core.artifact.plain import as_dict

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "Artifact",
    "ArtifactError",
    "Aval",
    "Constant",
    "CustomCall",
    "DisabledCheck",
    "Envelope",
    "Function",
    "HloSharding",
    "Module",
    "NamedSharding",
    "PartitionSpec",
    "Tree",
    "UnknownField",
    "as_dict",
    "read",
    "read_bytes",
]

"""One artifact from any file: a serialized `jax.export.Exported`, a bare StableHLO portable artifact, a SavedModel."""

from __future__ import annotations

import os
from functools import cached_property

from export_core.artifact.bytecode.module import CustomCall, Module
from export_core.artifact.bytecode.sections import MAGIC
from export_core.artifact.envelope.decode import begins_like_one, decode
from export_core.artifact.envelope.fields import Envelope
from export_core.artifact.errors import ArtifactError
from export_core.artifact.protobuf import SPAN, Wire
from export_core.artifact.saved_model import FILE as SAVED_MODEL
from export_core.artifact.saved_model import OPERATION, SavedModel, is_saved_model, read_saved_model
from export_core.artifact.unread import Unread, unread_parts
from export_core.base.named_tuple import TYPE_CHECKING
from export_core.base.quick_hash import sha256_of
from export_core.base.text import plural
from export_core.base.untrusted import UnexpectedFileError, read_regular

if TYPE_CHECKING:
    from typing import Any


def as_dict(value: object) -> Any:
    """Convert named tuples, sequences, sets and dicts to what `json` can write; bytes become hexadecimal digits."""
    # A class may define `shown`: the fields that people see, in place of all of them.
    fields = value.shown() if hasattr(value, "shown") else getattr(value, "_fields", None)
    if fields is not None:
        return {name: as_dict(getattr(value, name)) for name in fields}
    if isinstance(value, dict):
        return {str(key): as_dict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_dict(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(as_dict(item) for item in value)
    return bytes(value).hex() if isinstance(value, (bytes, bytearray)) else value


_OF_TEXT = (
    "Give the serialized artifact: JAX promises nothing for text. To make a portable artifact of it: "
    "`jaxlib.mlir.dialects.stablehlo.serialize_portable_artifact_str(text, version)`."
)
_OF_HLO = (
    "JAX promises nothing for HLO. Give the bytes that Exported.serialize() returned, or export the function again."
)
_OF_PICKLE = (
    "A compiled executable runs in the jaxlib and on the devices that compiled it, and a pickle runs code when it is "
    "loaded: export the function with jax.export."
)
# Files that are often given by mistake, by first bytes that no flatbuffer of jax has: each gets its own advice.
_NOT_ARTIFACTS: tuple[tuple[bytes | tuple[bytes, ...], str, str], ...] = (
    (b"\x1f\x8b", "a gzip file", "Decompress it first."),
    (b"PK\x03\x04", "a zip file (an .npz, or a saved model)", "Give the artifact inside it."),
    (b"\x93NUMPY", "a numpy array", "Give the bytes that Exported.serialize() returned."),
    ((b"module", b"#loc"), "StableHLO as text", _OF_TEXT),
    (b"HloModule", "HLO as text", _OF_HLO),
    (b"version https://git-lfs", "a Git LFS pointer", "Fetch the file with `git lfs pull`."),
)
_TEXT = bytes(range(0x20, 0x7F)) + b"\t\n\r"


class Artifact:
    """The bytes of one artifact and what is in them."""

    def __init__(
        self, name: str, data: bytes | bytearray, envelope: Envelope | None, saved_model: SavedModel | None = None
    ):
        self.name = name  # The name in messages, such as its file.
        self.data = data  # The bytes. A `bytearray` may not be changed afterwards.
        self.envelope = envelope  # What `jax.export` wrote around the module; None for a bare module or a SavedModel.
        self.saved_model = saved_model  # What TensorFlow wrote around the modules; None if this is not a SavedModel.

    def __repr__(self) -> str:
        return f"Artifact({self.name!r}, {len(self.data)} bytes)"

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the whole file, as 64 hexadecimal digits."""
        return sha256_of(self.data)

    @cached_property
    def module(self) -> Module:
        """The StableHLO module of the function itself, without its VJPs. May raise `ArtifactError`."""
        return self.modules[0]

    @property
    def devices(self) -> int:
        """The number of devices that the artifact is for; 1 for a bare module."""
        return self.envelope.nr_devices if self.envelope is not None else 1

    @property
    def is_raw(self) -> bool:
        """Whether this is raw StableHLO bytecode, as MLIR's `write_bytecode()` writes it: without a version."""
        return self.envelope is None and self.saved_model is None and "stablehlo" in self.module.dialects

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """The function's module, then those of its first, second … VJP.

        For a SavedModel, the modules of all functions that jax exported into it.
        """
        if self.saved_model is not None:
            return tuple(Module(self.data, call.at, call.nbytes, self.name) for call in self.saved_model.calls)
        if self.envelope is None:
            return (Module(self.data, 0, len(self.data), self.name),)
        spans = [level.module_source for level in self.envelope.levels]
        return tuple(Module(span.data, span.start, span.length, self.name, order) for order, span in enumerate(spans))

    @cached_property
    def custom_calls(self) -> tuple[CustomCall, ...]:
        """The custom calls of the function and its nested VJPs. May raise `ArtifactError`."""
        return tuple(call for module in self.modules for call in module.custom_calls)

    @cached_property
    def unread(self) -> tuple[tuple[str, Unread], ...]:
        """The parts of the artifact and its nested VJPs that our reader does not know: pairs of a location and a part.

        Empty if all that jaxlib could run has been read. Raises `ArtifactError` if a module cannot be read.
        """
        return tuple(unread_parts(self.modules, self.envelope))


def read(path: str | os.PathLike[str]) -> Artifact:
    """Read the artifact in a file, or the SavedModel in a folder.

    Raises `ArtifactError` if the file cannot be opened, or is not an artifact.
    """
    if not isinstance(path, str | os.PathLike):
        raise _not_a("path", path, "read", "Pass bytes to `read_bytes` instead.")
    name = saved_model_in(os.fspath(path))
    try:
        data = read_regular(name, follow=True)
    except OSError as error:
        raise unreadable(error, name) from None
    return read_bytes(data, name)


def _not_a(what: str, given: object, function: str, advice: str) -> ArtifactError:
    return ArtifactError(f"the {what} of an artifact", type(given).__name__, name=function, advice=advice)


def saved_model_in(path: str) -> str:
    """Return the path of `saved_model.pb` in a folder if it has that file; else `path` itself."""
    inside = os.path.join(path, SAVED_MODEL)  # noqa: PTH118 - pathlib: 5 ms
    return inside if os.path.lexists(inside) else path


def unreadable(error: OSError, name: str) -> ArtifactError:
    """Return the `ArtifactError` for an operating system's error on reading a file; `name` is the file."""
    found = error.found if isinstance(error, UnexpectedFileError) else error.strerror or str(error)
    inside = "Give a file in it, such as the artifact.jaxexport of a golden."
    advice = inside if found == "a folder" else "Check the path."
    return ArtifactError("a file to read", found, name=name, advice=advice)


def read_bytes(data: bytes | bytearray | memoryview, name: str = "<bytes>") -> Artifact:
    """Read an artifact from its bytes without copying them; `name` is its name in messages.

    Raises `ArtifactError` if the bytes are not an artifact.
    """
    if isinstance(data, memoryview):
        data = bytes(data)  # it has no find() and startswith(), which the reader uses
    elif not isinstance(data, bytes | bytearray):
        raise _not_a("bytes", data, "read_bytes", "Pass a path to `read` instead.")
    if data[:4] == MAGIC:
        artifact = Artifact(name, data, None)
        _ = artifact.module.tables  # raises for a damaged one, as the decoder of the envelope does below
        return artifact
    if len(data) < 8:
        raise ArtifactError("an artifact of at least 8 bytes", f"{plural(len(data), 'byte')}", 0, name=name)
    if is_saved_model(data):
        return Artifact(name, data, None, read_saved_model(data, name))
    if mistake := _mistake(data):
        kind, advice = mistake
        raise ArtifactError("a serialized jax.export artifact", kind, 0, name=name, advice=advice)
    return Artifact(name, data, decode(data, name))


def is_of_tensorflow_alone(data: bytes) -> bool:
    """Return whether a file is a SavedModel without any function that jax exported."""
    return is_saved_model(data) and OPERATION.encode() not in data


def what_else(head: bytes) -> str | None:
    """Return the kind of a file that is not an artifact, such as "a gzip file".

    `head` is the first kilobytes of the file. None if the file begins like an artifact.
    """
    if not head:
        return "empty"
    if head[:4] == MAGIC or is_saved_model(head):
        return None
    if mistake := _mistake(head):
        return mistake[0]
    return None if begins_like_one(head) else "of another format"


_PICKLES = tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_MLIR = (b"module", b"builtin.module", b'"builtin.module"', b"func.func", b"#", b"!")
"""The words with which a file of MLIR text may begin, after its comments."""


def is_mlir(data: bytes | bytearray) -> bool:
    """Return whether the first lines of a file show that it is the text of an MLIR module."""
    for line in bytes(data[:4096]).splitlines():
        if (line := line.strip()) and not line.startswith(b"//"):
            return line.startswith(_MLIR) and any(word in data[: 1 << 16] for word in (b"func.func", b"module"))
    return False


def is_hlo(data: bytes | bytearray) -> bool:
    """Return whether a file is XLA's HloModuleProto, or a HloProto that holds one.

    A HloModuleProto begins with the name of the module and the name of its entry computation. Source:
    xla/service/hlo.proto.
    """
    wire, at = Wire(data, "", ""), 0
    try:
        for _ in range(2):
            fields = wire.fields(at, len(data), "HLO")
            name, entry = next(fields), next(fields, None)
            if entry and (name.number, name.wire, entry.number, entry.wire) == (1, SPAN, 2, SPAN):
                names = bytes(data[name.start : min(name.end, name.start + 64)])
                return name.end > name.start and names.translate(None, _TEXT) == b""
            if (name.number, name.wire) != (1, SPAN):
                return False
            at = name.start  # the module in a HloProto
    except (ArtifactError, StopIteration):
        pass
    return False


def _mistake(data: bytes | bytearray) -> tuple[str, str] | None:
    """Return the kind of a file that is often given in place of an artifact, and advice on what to do.

    None for a file of any other kind.
    """
    for start, kind, advice in _NOT_ARTIFACTS:
        if data.startswith(start):
            return kind, advice
    if data[:2] in _PICKLES and not begins_like_one(data):
        return "a Python pickle, as of jax.experimental.serialize_executable", _OF_PICKLE
    if is_hlo(data):
        return "HLO as a protobuf", _OF_HLO
    if is_mlir(data):
        return "MLIR as text", _OF_TEXT
    # Read as the offset of a root table, four letters are 500 MB or more: text is no flatbuffer.
    is_text = data[:64].translate(None, _TEXT) == b""
    return ("text", "Give the bytes that Exported.serialize() returned.") if is_text else None

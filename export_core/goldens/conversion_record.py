"""The record of a conversion: a JSON file beside the converted artifact, with its original and what was verified."""

from pathlib import Path

import msgspec

from export_core.artifact import Artifact
from export_core.base.json_text import decode_json, json_bytes
from export_core.base.untrusted import read_regular
from export_core.goldens.arrays import GoldenError
from export_core.goldens.manifest import ConvertedFrom

SUFFIX = ".converted.json"
MOST_BYTES = 1 << 20
CONVERTED = "converted"
NOT_VERIFIED = "not verified"


class ConversionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `jaxexport convert` made, from which artifact, and whether the reader gave the outputs of the golden."""

    verdict: str
    """`converted` where the reader gave the outputs of the golden; `not verified` where nothing was compared."""
    message: str  # What was verified, or why nothing could be.
    sha256: str  # The SHA-256 of the converted artifact. The record is of no other file.
    converted_from: ConvertedFrom  # The original, and how it was converted.
    why: str  # Why it was converted this way.
    golden: str | None = None  # The golden whose inputs and outputs were used, `case/writer`; null for none.
    custom_calls: tuple[str, ...] = ()
    """The targets of the custom calls in the converted artifact, all of which the reader promises or the project
    allows."""
    max_abs_error: float | None = None  # The largest absolute error of an element; null if nothing was compared.
    max_rel_error: float | None = None  # The largest relative error of an element; null if nothing was compared.
    max_noise_error: float | None = None
    """The largest error in units of the noise that the golden's writer measured; null if it measured none."""
    allowed: str = ""  # The rules by which numbers were compared; empty if none were.
    format: int = 1  # The version of this form.


def read_record(artifact: Artifact) -> ConversionRecord:
    """Return the record of the conversion of an artifact, from the file beside it.

    Raises `GoldenError` for a record that cannot be read, or that is about another file.
    """
    path = f"{artifact.name}{SUFFIX}"
    try:
        record: ConversionRecord = decode_json(read_regular(path, most=MOST_BYTES), ConversionRecord)
    except OSError as error:
        raise GoldenError(f"{path}: cannot read the record of the conversion: {error.strerror or error}") from None
    except msgspec.MsgspecError as error:
        raise GoldenError(f"{path}: not the record of a conversion: {error}") from None
    if record.sha256 != artifact.sha256:
        raise GoldenError(f"{path}: is the record of another file, with SHA-256 {record.sha256[:16]}…")
    return record


def is_record(path: Path) -> bool:
    """Return whether a file is the record of a conversion, no matter of which artifact."""
    try:
        decode_json(read_regular(path, most=MOST_BYTES), ConversionRecord)
    except (OSError, msgspec.MsgspecError):
        return False
    return True


def record_file(artifact: Path) -> Path:
    """Return the path that the record of a converted artifact has, beside the artifact."""
    return artifact.with_name(artifact.name + SUFFIX)


def dump_record(record: ConversionRecord) -> bytes:
    """Return a record as the bytes of its file. Equal records give equal bytes."""
    return msgspec.json.format(json_bytes(record), indent=2) + b"\n"

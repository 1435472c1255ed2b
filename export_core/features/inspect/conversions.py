"""The record that `jaxexport convert` wrote beside an artifact, as `inspect` shows it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from export_core.artifact import Artifact
    from export_core.features.inspect.facts import ConvertedFacts

SUFFIX = ".converted.json"
_MOST_BYTES = 1 << 20


def converted_facts(artifact: Artifact) -> ConvertedFacts | None:
    """What the record beside an artifact says of it; None where there is none."""
    path = f"{artifact.name}{SUFFIX}"
    # Most artifacts have none: what reads one takes longer to import than everything else here.
    if not os.path.lexists(path):
        return None
    import msgspec

    from export_core.base.untrusted import decode_json, open_regular
    from export_core.goldens.conversion_record import ConversionRecord

    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            return _problem(f"{path}: expected the record of a conversion, found more than {_MOST_BYTES} bytes")
        record: ConversionRecord = decode_json(data, ConversionRecord)
    except OSError as error:
        return _problem(f"{path}: cannot read this record: {error.strerror or error}")
    except msgspec.MsgspecError as error:
        return _problem(f"{path}: not the record of a conversion: {error}")
    if record.sha256 != artifact.sha256:
        return _problem(f"{path}: is the record of another file, with SHA-256 {record.sha256[:16]}…")
    origin = record.converted_from
    return {
        "problem": "",
        "verdict": record.verdict,
        "message": record.message,
        "reader": origin.reader,
        "sha256": origin.sha256,
        "way": origin.way,
        "rewrites": list(origin.rewrites),
        "tool": origin.tool,
    }


def is_rewritten(facts: ConvertedFacts | None) -> bool:
    """Whether an artifact is none that its writer exported: JAX promises nothing for it."""
    return facts is not None and not facts["problem"] and facts["way"] != "unchanged"


def _problem(text: str) -> ConvertedFacts:
    return {
        "problem": text,
        "verdict": "",
        "message": "",
        "reader": "",
        "sha256": "",
        "way": "",
        "rewrites": [],
        "tool": "",
    }

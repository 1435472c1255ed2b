"""What `jaxexport inspect` prints, so that it can be had without the command line's library."""

from __future__ import annotations

from export_core.artifact import read
from export_core.inspection.describe import describe
from export_core.inspection.screen import screen
from export_core.releases.dates import shipped_dates


def inspected(file: str, *, as_json: bool) -> str:
    """Return the screen on a file, or everything as one JSON object.

    Raises:
        ArtifactError: it cannot be read.
    """
    facts = describe(read(file), shipped_dates(), whole=as_json)
    if as_json:
        import json

        return json.dumps(facts) + "\n"
    return screen(facts)

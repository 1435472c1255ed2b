"""The text of `jaxexport inspect` on a file, without the library of the command line."""

from __future__ import annotations

from export_core.artifact import read
from export_core.escaping import for_json, without_commands
from export_core.inspection.describe import describe
from export_core.inspection.screen import screen
from export_core.inspection.terms import terms_here


def inspect_text(file: str, *, as_json: bool, policy_file: str | None = None) -> str:
    """Return the screen about a file, or everything as one JSON object, by the terms of the project in this folder.

    Raises:
        ArtifactError: it cannot be read.
        ExportCompatError: the policy, or the project's file of releases, cannot be used.
    """
    facts = describe(read(file), terms_here(policy_file), whole=as_json)
    if as_json:
        import json

        return for_json(json.dumps(facts)) + "\n"
    return without_commands(screen(facts))

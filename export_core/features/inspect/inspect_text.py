"""The text of `jaxexport inspect` on a file, without the library of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from export_core.artifact import read
from export_core.base.escaping import for_json, in_utf8, printable, without_commands
from export_core.features.inspect.describe import describe
from export_core.features.inspect.screen import WIDTH, screen
from export_core.policy.terms import terms_here

if TYPE_CHECKING:
    from export_core.features.inspect.facts import Inspection


def inspect_text(file: str, *, as_json: bool, policy_file: str | None = None) -> str:
    """Return the screen about a file, or everything as one JSON object, by the terms of the project in this folder.

    Raises:
        ArtifactError: it cannot be read.
        ExportCompatError: the policy, or the project's file of releases, cannot be used.
    """
    facts = describe(read(file), terms_here(policy_file), whole=as_json)
    return _json(facts) if as_json else without_commands(screen(facts))


def reader_text(file: str, reader: str, *, as_json: bool, policy_file: str | None) -> tuple[str, bool | None]:
    """Return the same for one jaxlib, with a last line on the screen, and whether it may load the file there.

    Raises:
        ExportCompatError: as `inspect_text`; or there is no such release.
    """
    from export_core.policy.load_check import check_load, find_reader

    artifact, terms = read(file), terms_here(policy_file)
    load = check_load(artifact, terms, find_reader(reader, terms))
    facts = describe(artifact, terms, whole=as_json, reader=reader)
    text = _json(facts) if as_json else without_commands(f"{screen(facts)}{'reader':<{WIDTH}}{printable(str(load))}\n")
    return text, load.ok


def _json(facts: Inspection) -> str:
    import json

    text = json.dumps(facts)
    # Half of a pair of surrogates, which JSON has no text for, is a byte of a file's name.
    return for_json(json.dumps(in_utf8(facts)) if "\\udc" in text else text) + "\n"

"""The text of `jaxexport inspect` on a file, without the library of the command line."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from export_core.artifact import read
from export_core.base.errors import NOBODY_READS
from export_core.base.escaping import for_json, in_utf8, printable, without_commands
from export_core.features.inspect.describe import describe
from export_core.features.inspect.screen import WIDTH, screen
from export_core.policy.terms import terms_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from export_core.features.inspect.facts import Inspection


def quick_start(words: Sequence[str]) -> None:
    """Print what is in a file and end the process, where nothing but ``FILE [--json]`` was typed.

    Raises `ExportCompatError` as `inspect_text` does.
    """
    files = [word for word in words if not word.startswith("-")]
    # An option such as --policy takes a value, which cannot be told from a file here: click does that.
    if len(files) != 1 or set(words) - {*files, "--json"} or os.path.isdir(files[0]):  # noqa: PTH112 - pathlib: 5 ms
        return
    text = inspect_text(files[0], as_json="--json" in words)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # where a terminal cannot show ×
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; Python would complain once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(NOBODY_READS)
    sys.exit()


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

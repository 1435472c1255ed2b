"""golden.yaml, written and read: the same bytes for the same manifest, and one error for a bad file."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml

from export_core.base.phrases import schema_problem
from export_core.base.untrusted import decode_yaml, read_regular
from export_core.goldens.errors import GoldenError
from export_core.goldens.manifest import FORMAT, Manifest
from export_core.goldens.rules import problems

RESTORE = (
    "Restore the golden from version control, or write it again: `pytest --update-goldens` with the installed jaxlib, "
    "`jaxexport backfill` with another."
)


class _Dumper(yaml.SafeDumper):
    """Quotes text with line breaks, so that it reads back unchanged.

    PyYAML folds some of them (U+0085) in other styles.
    """

    def text(self, value: str) -> yaml.ScalarNode:
        """A YAML string."""
        style = None if value.splitlines() in ([], [value]) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _Dumper.text)


def dump_manifest(manifest: Manifest) -> bytes:
    """golden.yaml as bytes, the same for the same manifest: fields in order, `format` first, where readers look."""
    data = msgspec.to_builtins(manifest, builtin_types=(datetime.date,))
    optional = ("factors", "packages", "flattened", "inputs_made", "inputs_rule", "origin", "instruction_set", "noise")
    for field in (*optional, "converted_from"):
        if not data[field]:  # a new field does not change the bytes of goldens without it
            del data[field]
    if manifest.reproducible:  # as nearly all are
        del data["reproducible"]
    ordered = {"format": data.pop("format"), **data}
    return yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120).encode()


def load_manifest(path: Path) -> Manifest:
    """Read a golden.yaml. Raises `GoldenError` naming the file and the field, also where only a rule is broken."""
    try:
        text = read_regular(path)
    except FileNotFoundError:
        raise GoldenError(f"{path}: expected a golden's manifest, found no such file. {RESTORE}") from None
    except OSError as error:
        raise GoldenError(f"{path}: cannot read this manifest: {error.strerror}.") from None
    try:
        fields = decode_yaml(text)  # once: YAML takes most of the time of a matrix with all results cached
        _refuse_newer(path, fields)
        manifest = msgspec.convert(fields, Manifest, builtin_types=(datetime.date,))
    except msgspec.MsgspecError as error:
        raise GoldenError(f"{path}: not a golden's manifest: {schema_problem(error)}. {RESTORE}") from None
    check_manifest(manifest, f"{path}")
    return manifest


def check_manifest(manifest: Manifest, where: str) -> None:
    """Raise `GoldenError` for a manifest that breaks a rule: nobody else has to ask where its names lead."""
    for field, problem in problems(manifest):
        raise GoldenError(f"{where}: {field}: {problem} {RESTORE}")


def refuse_newer_format(path: Path) -> None:
    """Raise `GoldenError` for a manifest that a newer version of this tool wrote.

    A damaged or missing one may be overwritten.
    """
    try:
        _refuse_newer(path, decode_yaml(read_regular(path)))
    except (OSError, msgspec.MsgspecError):
        return


def _refuse_newer(path: Path, fields: Any) -> None:
    # Before the rest is checked: a newer manifest may have fields that would be reported as damage.
    version = msgspec.convert(fields, _Format).format
    if version > FORMAT:
        raise GoldenError(
            f"{path}: manifest format {version}; this pytest-jaxexport reads up to {FORMAT}. Upgrade pytest-jaxexport."
        )


class _Format(msgspec.Struct):
    """The one field that every version of golden.yaml has; unknown ones are allowed here."""

    format: int

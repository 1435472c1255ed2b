"""`jaxexport inspect DIR…`: the inventory of an archive."""

from __future__ import annotations

import csv
import functools
import io
import os
from typing import TYPE_CHECKING, Any

from export_core.base.errors import PREFIX
from export_core.base.escaping import printable
from export_core.cli.options import day_of
from export_core.cli.output import echo, echo_json

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE, NOT_ALL_READ = 0, 2
_FORMULA = ("=", "+", "-", "@")


def show_inventory(
    paths: Sequence[str], *, as_json: bool, as_csv: bool, jobs: int | None, as_of: str | None, policy_file: str | None
) -> int:
    """Print the inventory of files and folders; return the exit code.

    Raises:
        ExportCompatError: there is no artifact, or the policy cannot be used.
    """
    from export_core.artifact.archive import files_of, in_parallel, no_artifacts
    from export_core.features.inspect.inventory import Inventory
    from export_core.features.inspect.inventory_row import InventoryRow, read_row
    from export_core.policy.terms import terms_here

    day = day_of(as_of)
    terms = terms_here(policy_file)
    terms = terms._replace(releases=tuple(release for release in terms.releases if release.built <= str(day)))
    inventory = Inventory(day, terms.releases[-1].jaxlib if terms.releases else "")
    if as_csv:
        echo(_csv_line(InventoryRow.__annotations__), nl=False)
    for row in in_parallel(functools.partial(read_row, terms), files_of(paths), jobs or os.cpu_count() or 1):
        inventory.add(row)
        if isinstance(row, str):
            continue
        if as_json:
            echo_json(row, indent=-1)
        elif as_csv:
            echo(_csv_line(row.values()), nl=False)
        if row["error"] is not None:
            echo(f"{PREFIX}{row['file']}: {row['error']}", err=True)
    if not inventory.artifacts and not inventory.unread:
        raise no_artifacts(paths, inventory.left_out)
    for line in inventory.lines():
        echo(line, err=as_json or as_csv)
    return NOT_ALL_READ if inventory.unread else DONE


def _csv_line(values: Any) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(map(_cell, values))
    return line.getvalue()


def _cell(value: Any) -> str:
    """A value as a cell. What a spreadsheet would run as a formula gets a quote in front."""
    if value is None:
        return ""
    text = printable(" ".join(map(str, value)) if isinstance(value, list) else str(value))
    return f"'{text}" if text.startswith(_FORMULA) else text

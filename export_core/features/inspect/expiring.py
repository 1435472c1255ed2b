"""Which artifacts of an archive leave the window of the promise within some days, or have left it."""

from __future__ import annotations

import datetime
import functools
import os
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact.archive import files_of, in_parallel, no_artifacts
from export_core.features.inspect.inventory_row import read_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from export_core.policy.terms import Terms


class Expiring(NamedTuple):
    """An artifact of an archive, or a file that cannot be read, which has an `error`.

    `promised_until` is the last build date of a jaxlib that is promised to load it: None where that is not known, as
    for an artifact that was converted before.
    """

    file: str
    promised_until: datetime.date | None
    error: str


def expiring(paths: Sequence[str], terms: Terms, last_day: datetime.date) -> Iterator[Expiring]:
    """Yield the artifacts whose last promised day is this day or earlier, and those for which it is not known.

    What is no artifact is left out.

    Raises:
        ArtifactError: there is no artifact: more likely than an empty archive, another folder was meant.
    """
    left_out: Counter[str] = Counter()
    is_empty = True
    for row in in_parallel(functools.partial(read_row, terms), files_of(paths), os.cpu_count() or 1):
        if isinstance(row, str):
            left_out[row] += 1
            continue
        is_empty = False
        until = datetime.date.fromisoformat(row["promised_until"]) if row["promised_until"] else None
        if until is None or until <= last_day:
            yield Expiring(row["file"], until, row["error"] or "")
    if is_empty:
        raise no_artifacts(paths, left_out)

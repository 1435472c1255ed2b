"""Which artifacts of an archive leave the window of the promise within some days, or have left it."""

from __future__ import annotations

import datetime
import functools
import os
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact import ArtifactError
from export_core.artifact.archive import artifact_in, files_of, in_parallel, no_artifacts
from export_core.artifact.writers import find_writer
from export_core.goldens.conversion_record import is_rewritten
from export_core.policy.terms import promised_days

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from export_core.artifact.archive import Found
    from export_core.policy.terms import Terms


class Expiring(NamedTuple):
    """An artifact of an archive, or a file that cannot be read, which has an `error`.

    `promised_until` is the last build date of a jaxlib that is promised to load it: None where that is not known, as
    for an artifact that was converted before.
    """

    file: str
    promised_until: datetime.date | None
    error: str = ""


def expiring(paths: Sequence[str], terms: Terms, last_day: datetime.date) -> Iterator[Expiring]:
    """Yield the artifacts whose last promised day is this day or earlier, and those for which it is not known.

    What is no artifact is left out.

    Raises:
        ArtifactError: there is no artifact: more likely than an empty archive, another folder was meant.
    """
    left_out: Counter[str] = Counter()
    is_empty = True
    for row in in_parallel(functools.partial(_promised, terms), files_of(paths), os.cpu_count() or 1):
        if isinstance(row, str):
            left_out[row] += 1
            continue
        is_empty = False
        if row.promised_until is None or row.promised_until <= last_day:
            yield row
    if is_empty:
        raise no_artifacts(paths, left_out)


def _promised(terms: Terms, found: Found) -> Expiring | str:
    """Until when a file is promised to be read, by its oldest possible writer; or why it is left out."""
    try:
        artifact = artifact_in(found)
        if isinstance(artifact, str):
            return artifact
        for module in artifact.modules:
            _ = module.op_counts  # read whole: a damaged one is named here, and not once it is converted
        days = None
        if artifact.envelope is not None and not is_rewritten(artifact):
            days = promised_days(find_writer(artifact, terms.releases), terms)
    except ArtifactError as error:
        return Expiring(found.path, None, str(error).removeprefix(f"{found.path}: "))
    except MemoryError:
        return Expiring(found.path, None, "expected memory to read it, found too little.")
    return Expiring(found.path, datetime.date.fromisoformat(days.until[0]) if days else None)

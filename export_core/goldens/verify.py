"""The check that the goldens of a store are complete: every file as it was written, every artifact readable."""

from __future__ import annotations

from export_core.artifact import ArtifactError
from export_core.goldens.dates import check_dates
from export_core.goldens.errors import GoldenError
from export_core.goldens.store import Golden, GoldenStore
from export_core.releases import Calendar


def verify_goldens(store: GoldenStore, calendar: Calendar | None = None) -> list[Golden]:
    """Every golden of the store. Raises `GoldenError` naming all that are not complete, or when there is none.

    With a calendar, dates that are not the calendar's are an error too: see `check_dates`.
    """
    goldens = store.goldens()
    if not goldens:
        raise GoldenError(
            f"{store.root}: expected goldens, found none. Mark a test with @pytest.mark.export_compat and run "
            "`pytest --update-goldens`, or name the folder with --goldens."
        )
    problems = []
    for golden in goldens:
        # Hashes show damage since the writing; reading shows an artifact that was damaged before its hash was taken.
        try:
            golden.verify()
            golden.read_artifact()
        except (GoldenError, ArtifactError) as error:
            problems.append(str(error))
    if problems:
        raise GoldenError("\n".join(problems))
    if calendar is not None:
        check_dates(goldens, calendar)
    return goldens

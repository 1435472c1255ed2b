"""The check that the goldens of a store are complete: every file as it was written, every artifact read whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from export_core.artifact import Artifact, ArtifactError
from export_core.artifact.audit import unread_findings
from export_core.goldens.dates import check_bytes, check_dates
from export_core.goldens.errors import GoldenError
from export_core.goldens.store import MANIFEST, Golden, GoldenStore
from export_core.releases import Calendar

MOST = 10
"""Goldens that one error names: in a clone without the files of Git LFS, it would be all."""


def check_read_whole(artifact: Artifact, allow: Mapping[str, str]) -> None:
    """Raise `GoldenError` for an artifact with a part that the reader does not know, unless `allow` gives a reason.

    It may hold a custom call that no audit sees, so it is neither stored nor run.
    """
    problems = [str(finding) for finding in unread_findings(artifact, allow) if not finding.ok]
    if problems:
        raise GoldenError("\n".join(f"{artifact.name}: {problem}" for problem in problems))


def verify_goldens(
    store: GoldenStore,
    calendar: Calendar | None = None,
    allow: Mapping[str, str] | None = None,
    *,
    all_known: bool = True,
) -> list[Golden]:
    """Every golden of the store. Raises `GoldenError` naming those that are not complete, or when there is none.

    With a calendar, what the artifact's bytes contradict is an error too, and a date that is not the calendar's: see
    `check_bytes` and `check_dates`. With the policy's `allow`, also an artifact that is not read whole; a matrix says
    that of each cell itself.
    """
    goldens = store.goldens()
    if not goldens:
        raise GoldenError(no_goldens(store.root))
    problems = []
    for golden in goldens:
        # Hashes show damage since the writing; reading shows an artifact that was damaged before its hash was taken.
        try:
            golden.verify()
            artifact = golden.read_artifact()
            if calendar is not None:
                check_bytes(golden, artifact, calendar)
            if allow is not None:
                check_read_whole(artifact, {**golden.manifest.options.allow, **allow})
        except (GoldenError, ArtifactError) as error:
            problems.append(str(error))
    if problems:
        more = len(problems) - MOST
        raise GoldenError("\n".join([*problems[:MOST], *([f"and {more} more goldens"] if more > 0 else [])]))
    if calendar is not None:
        check_dates(goldens, calendar, all_known=all_known)
    return goldens


def no_goldens(root: Path) -> str:
    """What is said of a folder without goldens, with what to do."""
    expected = f"{root}: expected goldens, found none."
    # The likeliest mistake: the command was run in a subfolder of the project.
    for parent in () if root.is_absolute() else Path.cwd().parents:
        if next((parent / root).glob(f"*/*/{MANIFEST}"), None):
            return f"{expected} There are goldens in {parent / root}: run this command in {parent}."
    return (
        f"{expected} Mark a test with @pytest.mark.export_compat and run `pytest --update-goldens`, or name the folder "
        "with --goldens."
    )

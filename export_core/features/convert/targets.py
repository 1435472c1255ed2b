"""What one command converts, for which readers, and where each converted artifact goes."""

from __future__ import annotations

import datetime
import functools
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from export_core.artifact import Artifact
from export_core.artifact.archive import read_archive
from export_core.artifact.writers import find_writer
from export_core.features.convert.errors import ConversionError
from export_core.goldens.conversion_record import is_rewritten, record_file
from export_core.goldens.store import ARTIFACT, MANIFEST
from export_core.policy.terms import Terms, promised_days


@dataclass(frozen=True)
class Target:
    """A source, one reader, and where its converted artifact goes; `path` of a golden is the folder of goldens."""

    name: str
    reader: str
    path: Path

    @property
    def written(self) -> Path:
        """What is written: a file; of a golden its folder in the folder of goldens, named by its case and writer."""
        source = Path(self.name)
        return self.path.joinpath(*source.resolve().parts[-2:]) if source.is_dir() else self.path


def targets_of(names: Sequence[str], readers: Sequence[str], out: str) -> list[Target]:
    """One target for each source and reader. See `check_targets` for what they may be.

    OUT is the file of a single artifact for a single reader. In every other case it is a folder, with a folder for each
    reader where there are several.
    """
    several = len(names) > 1 or len(readers) > 1 or Path(out).is_dir() or out.endswith(os.sep)
    targets = []
    for reader in readers:
        root = _root(out, reader, readers)
        for name in names:
            is_golden = Path(name).is_dir()
            targets.append(Target(name, reader, root / Path(name).name if several and not is_golden else root))
    return targets


def expiring_targets(
    folders: Sequence[str],
    readers: Sequence[str],
    out: str,
    terms: Terms,
    last_day: datetime.date,
) -> tuple[list[Target], list[str], int]:
    """The targets of what leaves the window by a day, below folders: OUT gets the same folders.

    A golden's artifact stands for its golden. Returns also what is wrong with each file that cannot be read, and the
    number of artifacts whose last promised day is not known.

    Raises:
        ConversionError: a folder is none, or OUT is in it.
        ArtifactError: a folder has no artifact.
    """
    targets: list[Target] = []
    problems: list[str] = []
    unknown = 0
    for folder in folders:
        if not Path(folder).is_dir():
            what = "a file" if Path(folder).exists() else "nothing"
            raise ConversionError(f"{folder}: --expiring expects folders, found {what}.")
        if Path(out).resolve().is_relative_to(Path(folder).resolve()):
            raise ConversionError(f"--output {out}: is in {folder}, whose artifacts are never touched. Name another.")
        files = []
        for file in read_archive(functools.partial(promised_until, terms), [folder], Counter()):
            if file.error:
                problems.append(f"{file.path}: {file.error}")
            elif file.result is None:
                unknown += 1
            elif file.result <= last_day:
                files.append(file.path)
        for reader in readers:
            root = _root(out, reader, readers)
            for name in sorted(files):
                golden = Path(name).parent
                if Path(name).name == ARTIFACT and (golden / MANIFEST).is_file():
                    targets.append(Target(str(golden), reader, root))
                else:
                    targets.append(Target(name, reader, root / Path(name).relative_to(folder)))
    return targets, problems, unknown


def _root(out: str, reader: str, readers: Sequence[str]) -> Path:
    return Path(out) / reader if len(readers) > 1 else Path(out)


def check_targets(targets: Sequence[Target], out: str) -> None:
    """Raise `ConversionError` where two targets have the same file, or one would replace an original or its record."""
    used: dict[Path, str] = {}
    originals = {Path(target.name).resolve() for target in targets}
    for target in targets:
        written = target.written.resolve()
        for file in (written, record_file(target.written).resolve()):
            if file in originals:
                raise ConversionError(f"--output {out}: would replace the original {file}, which is never touched.")
        if other := used.get(written):
            raise ConversionError(
                f"--output {out}: {other} and {target.name} would both be written to {target.written}. Convert them "
                "into two folders."
            )
        used[written] = target.name


def promised_until(terms: Terms, artifact: Artifact) -> datetime.date | None:
    """The last build date of a jaxlib that is promised to load an artifact, by its oldest possible writer.

    None where that is not known, as for one that was converted before. Raises `ArtifactError` for a damaged module.
    """
    for module in artifact.modules:
        _ = module.op_counts  # read whole: a damaged one is named here, and not once it is converted
    if artifact.envelope is None or is_rewritten(artifact):
        return None
    days = promised_days(find_writer(artifact, terms.releases), terms)
    return datetime.date.fromisoformat(days.until[0]) if days else None

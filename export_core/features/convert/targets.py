"""What is converted and where the result goes: an artifact to a file, a golden into a folder of goldens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from export_core.artifact import read
from export_core.features.convert.errors import ConversionError
from export_core.features.convert.run import Source
from export_core.goldens import GoldenStore
from export_core.goldens.conversion_record import record_file
from export_core.goldens.store import ARTIFACT, MANIFEST


@dataclass(frozen=True)
class Target:
    """A source, one reader, and where its converted artifact goes; `path` of a golden is the folder of goldens."""

    name: str
    reader: str
    path: Path


def source_of(name: str) -> Source:
    """The artifact in a file, or the golden in a folder.

    Raises:
        ArtifactError: the file cannot be read.
        GoldenError: the golden cannot be read.
        ConversionError: the folder has no golden.
    """
    path = Path(name)
    if not path.is_dir():
        return Source(read(name))
    folder = path.resolve()
    if not (folder / MANIFEST).is_file():
        raise ConversionError(
            f"{name}: expected an artifact, or the folder of one golden with its {MANIFEST}, found another folder. "
            "Of a folder of artifacts or goldens, --expiring 30d converts those that leave the window."
        )
    for golden in GoldenStore(folder.parents[1]).generations(folder.parent.name):
        if golden.folder == folder:
            return Source(golden.read_artifact(), golden)
    raise ConversionError(f"{name}: expected the folder of a golden, found one with a name that no golden has.")


def targets_of(names: Sequence[str], readers: Sequence[str], out: str) -> list[Target]:
    """One target for each source and reader. See `check_targets` for what they may be.

    OUT is the file of a single artifact for a single reader. In every other case it is a folder, with a folder for each
    reader where there are several.
    """
    several = len(names) > 1 or len(readers) > 1 or Path(out).is_dir() or out.endswith(os.sep)
    targets = []
    for reader in readers:
        root = Path(out) / reader if len(readers) > 1 else Path(out)
        for name in names:
            is_golden = Path(name).is_dir()
            targets.append(Target(name, reader, root / Path(name).name if several and not is_golden else root))
    return targets


def check_targets(targets: Sequence[Target], out: str) -> None:
    """Raise `ConversionError` where two targets have the same file, or one would replace an original or its record."""
    used: dict[Path, str] = {}
    originals = {Path(target.name).resolve() for target in targets}
    for target in targets:
        name = target.name
        # Of a golden the folder in the folder of goldens: its case and its writer.
        is_golden = Path(name).is_dir()
        written = target.path.joinpath(*Path(name).resolve().parts[-2:]) if is_golden else target.path
        for file in (written.resolve(), record_file(written).resolve()):
            if file in originals:
                raise ConversionError(f"--output {out}: would replace the original {file}, which is never touched.")
        if other := used.get(written.resolve()):
            raise ConversionError(
                f"--output {out}: {other} and {name} would both be written to {written}. Convert them into two folders."
            )
        used[written.resolve()] = name


def targets_below(folder: str, files: Sequence[str], readers: Sequence[str], out: str) -> list[Target]:
    """The targets of files below a folder: OUT gets the same folders. A golden's artifact stands for its golden."""
    targets = []
    for reader in readers:
        root = Path(out) / reader if len(readers) > 1 else Path(out)
        for name in files:
            golden = Path(name).parent
            if Path(name).name == ARTIFACT and (golden / MANIFEST).is_file():
                targets.append(Target(str(golden), reader, root))
            else:
                targets.append(Target(name, reader, root / Path(name).relative_to(folder)))
    return targets

"""Conversions from file to file: what is converted, verified in its reader, and written with its record."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from export_core.artifact import Artifact, read
from export_core.base.atomic import write_whole
from export_core.base.untrusted import read_regular
from export_core.features.convert.convert import Converted, RewriteModules, convert, find_reader
from export_core.features.convert.errors import ConversionError, ConversionRefused
from export_core.features.convert.programs import export_again
from export_core.features.convert.proof import (
    Evidence,
    Proof,
    converted_golden,
    evidence_of,
    given_evidence,
    golden_with,
    made_evidence,
    prove,
)
from export_core.goldens import Golden, GoldenStore, Manifest
from export_core.goldens.conversion_record import (
    CONVERTED,
    NOT_VERIFIED,
    SUFFIX,
    ConversionRecord,
    dump_record,
    record_file,
)
from export_core.goldens.manifest import ConvertedFrom
from export_core.goldens.store import ARTIFACT, MANIFEST, sha256
from export_core.judge.judgement import largest_errors
from export_core.matrix.replay_options import ReplayOptions

if TYPE_CHECKING:
    from export_core.artifact.readers import Reader
    from export_core.policy import Policy
    from export_core.releases import Calendar


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


REWRITE, EXPORT, AUTO = VIA = ("rewrite", "export", "auto")
"""The ways: rewrite the artifact, let a release between export it again, or the second where the first is refused."""


@dataclass(frozen=True)
class Source:
    """What is to be converted: an artifact, and the golden that it is part of, where a golden was given."""

    artifact: Artifact
    golden: Golden | None = None


@dataclass(frozen=True)
class Conversions:
    """What is the same for all conversions of one command.

    `goldens` is the folder in which the golden of an artifact is looked for, None for none. `arrays` are inputs and
    outputs that were given beside an artifact that no golden has. `via` is one of `VIA`.
    `notify` is called with a line about what happens beside them.
    """

    policy: Policy
    calendar: Calendar
    rewrite_modules: RewriteModules
    goldens: Path | None
    arrays: tuple[Path, Path] | None
    replace_custom_calls: bool
    via: str
    notify: Callable[[str], None]
    replace: Collection[str] = ()
    """The files, and the goldens as `case/writer`, that may be replaced."""

    def run(self, source: Source, jaxlib: str, target: Path) -> ConversionRecord:
        """Convert one source for a reader and write it: an artifact to a file, a golden into a folder of goldens.

        Raises:
            ConversionRefused: it cannot be made into one that the reader takes. Nothing is written.
            ExportCompatError: bad input.
        """
        evidence = self._evidence(source)
        reader = find_reader(jaxlib, self.calendar)
        refused = ""
        for convert_it in self._ways():
            try:
                converted = convert_it(source.artifact, reader, evidence)
                if refused:
                    why = f"{converted.why}; rewriting was refused: {refused}"
                    converted = replace(converted, why=why)
                return self._verified(source, converted, evidence, target)
            except ConversionRefused as error:
                refused = f"{refused} {error.message()}".strip()
        raise ConversionRefused(refused)

    def _ways(self) -> Sequence[Callable[[Artifact, Reader, Evidence | None], Converted]]:
        return {REWRITE: [self._rewritten], EXPORT: [self._exported], AUTO: [self._rewritten, self._exported]}[self.via]

    def _rewritten(self, artifact: Artifact, reader: Reader, evidence: Evidence | None) -> Converted:
        allow, replace_calls = self._allowed(evidence), self.replace_custom_calls
        return convert(artifact, reader, self.rewrite_modules, replace_custom_calls=replace_calls, allow=allow)

    def _exported(self, artifact: Artifact, reader: Reader, evidence: Evidence | None) -> Converted:
        return export_again(artifact, reader, self.calendar, self._allowed(evidence), self.notify)

    def _allowed(self, evidence: Evidence | None) -> dict[str, str]:
        return {**(evidence.manifest.options.allow if evidence else {}), **self.policy.allow}

    def _verified(
        self, source: Source, converted: Converted, evidence: Evidence | None, target: Path
    ) -> ConversionRecord:
        """Replay it in its reader, then write it. Raises `ConversionRefused` where the reader does not run it."""
        origin = converted.origin(source.artifact.sha256)
        made = converted_golden(evidence, converted, origin) if evidence else None
        if evidence is None or made is None:
            proof = Proof(False, "no golden has this artifact, and no inputs could be made for it")
        else:
            options = ReplayOptions(self.calendar, self.policy)
            proof = prove(*made, evidence, converted, options, self.notify)
        record = _record(converted, origin, proof, evidence)
        if source.golden is None:
            self._check_free(str(target), [target, record_file(target)], converted.artifact)
            _write_artifact(target, converted.artifact, record)
        else:
            assert made is not None
            folder = target / made[0].case / made[0].writer.id
            name = f"{made[0].case}/{made[0].writer.id}"
            self._check_free(name, [folder / ARTIFACT, folder], converted.artifact)
            _write_golden(target, *made, record)
        return record

    def _check_free(self, name: str, written: Sequence[Path], artifact: Artifact) -> None:
        """Raise `ConversionError` where something else is than this artifact, unless it may be replaced by its name.

        `written` are its file and what else is written with it.
        """
        there = [path for path in written if os.path.lexists(path)]
        with contextlib.suppress(OSError):
            if not there or name in self.replace or sha256(read_regular(written[0])) == artifact.sha256:
                return
        raise ConversionError(
            f"{there[0]}: expected nothing there, found another file or golden, which stays. Write elsewhere, or say "
            f"that it may be replaced: --replace {shlex.quote(name)}"
        )

    def _evidence(self, source: Source) -> Evidence | None:
        if source.golden is not None:
            return evidence_of(source.golden)
        if self.arrays is not None:
            return given_evidence(source.artifact, *self.arrays, self.calendar)
        golden = golden_with(source.artifact, self.goldens) if self.goldens else None
        return evidence_of(golden) if golden else made_evidence(source.artifact, self.calendar)


def _record(converted: Converted, origin: ConvertedFrom, proof: Proof, evidence: Evidence | None) -> ConversionRecord:
    difference = proof.difference
    return ConversionRecord(
        verdict=CONVERTED if proof.verified else NOT_VERIFIED,
        message=proof.message,
        sha256=converted.artifact.sha256,
        converted_from=origin,
        why=converted.why,
        golden=evidence.golden if evidence else None,
        custom_calls=tuple(sorted({call.target for call in converted.artifact.custom_calls})),
        **largest_errors(difference),
        allowed=difference.tolerance if difference else "",
    )


def _write_artifact(target: Path, artifact: Artifact, record: ConversionRecord) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The record first: a record without its artifact says nothing, and an artifact without its record hides where
        # it comes from.
        write_whole(record_file(target), [dump_record(record)])
        write_whole(target, [bytes(artifact.data)])
    except OSError as error:
        raise ConversionError(f"{target}: cannot write there: {error.strerror or error}.") from error


def _write_golden(root: Path, manifest: Manifest, files: Mapping[str, bytes], record: ConversionRecord) -> None:
    if manifest.converted_from is None:  # nothing was changed: it is the golden itself
        GoldenStore(root).write(manifest, files)
        return
    name, content = f"{ARTIFACT}{SUFFIX}", dump_record(record)
    listed = structs.replace(manifest, files={**manifest.files, name: sha256(content)})
    GoldenStore(root).write(listed, {**files, name: content})

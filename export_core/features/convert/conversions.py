"""Conversions from file to file: what is converted, verified in its reader, and written with its record."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from export_core.features.convert.targets import Target
from export_core.goldens import Golden, GoldenStore, Manifest
from export_core.goldens.conversion_record import (
    CONVERTED,
    NOT_VERIFIED,
    SUFFIX,
    ConversionRecord,
    dump_record,
    record_file,
)
from export_core.goldens.store import ARTIFACT, MANIFEST, sha256
from export_core.judge.judgement import largest_errors
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import Policy
from export_core.releases import Calendar


@dataclass(frozen=True)
class Conversions:
    """What is the same for all conversions of one command.

    `goldens` is the folder in which the golden of an artifact is looked for, None for none. `arrays` are inputs and
    outputs that were given beside an artifact that no golden has. `via` says how: `rewrite` the artifact, let a release
    between `export` it again, or `auto`, the second where the first is refused. `replace` has the files, and the
    goldens as `case/writer`, that may be replaced. `notify` is called with a line about what happens beside them.
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

    def run(self, target: Target) -> ConversionRecord:
        """Convert one source for a reader and write it: an artifact to a file, a golden into a folder of goldens.

        Raises:
            ConversionRefused: it cannot be made into one that the reader takes. Nothing is written.
            ExportCompatError: bad input.
        """
        golden = golden_in(target.name) if Path(target.name).is_dir() else None
        artifact = golden.read_artifact() if golden else read(target.name)
        evidence = self._evidence(artifact, golden)
        reader = find_reader(target.reader, self.calendar)
        allow = {**(evidence.manifest.options.allow if evidence else {}), **self.policy.allow}
        refusals: list[str] = []
        for way in ("rewrite", "export"):
            if self.via not in (way, "auto"):
                continue
            try:
                if way == "rewrite":
                    calls = self.replace_custom_calls
                    converted = convert(artifact, reader, self.rewrite_modules, replace_custom_calls=calls, allow=allow)
                else:
                    converted = export_again(artifact, reader, self.calendar, allow, self.notify)
                if refusals:
                    converted = replace(converted, why=f"{converted.why}; rewriting was refused: {refusals[0]}")
                return self._verified(artifact, converted, evidence, target, is_golden=golden is not None)
            except ConversionRefused as error:
                refusals.append(error.message())
        raise ConversionRefused(" ".join(refusals))

    def _evidence(self, artifact: Artifact, golden: Golden | None) -> Evidence | None:
        if golden is None and self.arrays is not None:
            return given_evidence(artifact, *self.arrays, self.calendar)
        if golden is None and self.goldens is not None:
            golden = golden_with(artifact, self.goldens)
        return evidence_of(golden) if golden else made_evidence(artifact, self.calendar)

    def _verified(
        self, artifact: Artifact, converted: Converted, evidence: Evidence | None, target: Target, *, is_golden: bool
    ) -> ConversionRecord:
        """Replay it in its reader, then write it. Raises `ConversionRefused` where the reader does not run it."""
        made = converted_golden(evidence, converted) if evidence else None
        if evidence is None or made is None:
            proof = Proof(False, "no golden has this artifact, and no inputs could be made for it")
        else:
            proof = prove(*made, evidence, converted, ReplayOptions(self.calendar, self.policy), self.notify)
        difference = proof.difference
        record = ConversionRecord(
            verdict=CONVERTED if proof.verified else NOT_VERIFIED,
            message=proof.message,
            sha256=converted.artifact.sha256,
            converted_from=converted.origin(artifact.sha256),
            why=converted.why,
            golden=evidence.golden if evidence else None,
            custom_calls=tuple(sorted({call.target for call in converted.artifact.custom_calls})),
            **largest_errors(difference),
            allowed=difference.tolerance if difference else "",
        )
        if made and is_golden:
            name = f"{made[0].case}/{made[0].writer.id}"
            folder = target.path / name
            self._check_free(name, [folder / ARTIFACT, folder], converted.artifact)
            _write_golden(target.path, *made, record)
        else:
            self._check_free(str(target.path), [target.path, record_file(target.path)], converted.artifact)
            _write_artifact(target.path, converted.artifact, record)
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


def golden_in(name: str) -> Golden:
    """The golden in a folder.

    Raises:
        GoldenError: it cannot be read.
        ConversionError: the folder has none.
    """
    folder = Path(name).resolve()
    if not (folder / MANIFEST).is_file():
        raise ConversionError(
            f"{name}: expected an artifact, or the folder of one golden with its {MANIFEST}, found another folder. "
            "Of a folder of artifacts or goldens, --expiring 30d converts those that leave the window."
        )
    for golden in GoldenStore(folder.parents[1]).generations(folder.parent.name):
        if golden.folder == folder:
            return golden
    raise ConversionError(f"{name}: expected the folder of a golden, found one with a name that no golden has.")


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
    if manifest.converted_from is not None:  # else nothing was changed: it is the golden itself
        name, content = f"{ARTIFACT}{SUFFIX}", dump_record(record)
        manifest = structs.replace(manifest, files={**manifest.files, name: sha256(content)})
        files = {**files, name: content}
    GoldenStore(root).write(manifest, files)

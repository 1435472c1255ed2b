"""Conversions from file to file: each artifact is converted, verified in its reader, and written with a record."""

import contextlib
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec import structs

from export_core.artifact import Artifact, read
from export_core.artifact.folders import is_archive
from export_core.base.atomic import write_whole
from export_core.base.errors import InfrastructureFault
from export_core.base.untrusted import read_regular
from export_core.features.convert import proof
from export_core.features.convert.convert import Converted, ModuleJob, RewrittenModules, convert, find_reader
from export_core.features.convert.errors import ConversionError, ConversionRefused
from export_core.features.convert.programs import ModuleRewriter, export_again, exporting_releases
from export_core.goldens import Golden, GoldenStore, Manifest, conversion_record
from export_core.goldens.conversion_record import SUFFIX, ConversionRecord, dump_record, is_record, record_file
from export_core.goldens.store import ARTIFACT, MANIFEST, golden_around, sha256
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import Policy
from export_core.releases import Calendar
from export_core.run.named_outputs import check_output


@dataclass(frozen=True)
class ConversionTarget:
    """A source, the reader to convert it for, and where the result goes.

    The source `name` is a file, or the folder of a golden. `path` is the file to write, or for a golden the folder of
    goldens.
    """

    name: str
    reader: str
    path: Path

    @property
    def is_golden(self) -> bool:
        """Whether the source is the folder of a golden."""
        return is_archive(self.name)

    @property
    def written(self) -> Path:
        """The path that is written: the file, or the golden's own folder, ``path/CASE/WRITER``."""
        return self.path.joinpath(*Path(self.name).resolve().parts[-2:]) if self.is_golden else self.path


class ConversionOutcome(msgspec.Struct, frozen=True):
    """Why a conversion failed or would fail, or that nothing known is in its way."""

    file: str  # The file or the folder of a golden, as it was named.
    reader: str  # The reader to convert it for.
    exit_code: int  # 0 if nothing known is in its way, 1 refused, 2 bad input, 3 nothing is known.
    error: str | None = None  # Why it failed or would fail; null if nothing known is in its way.


def targets_of(names: Sequence[str], readers: Sequence[str], out: str) -> list[ConversionTarget]:
    """Return a target for each source and reader; `check_targets` checks them.

    `out`, the value of `--output`, is the file of the artifact if there is one source and one reader. Otherwise it is a
    folder, with a folder for each reader if there are several.
    """
    several = len(names) > 1 or len(readers) > 1 or Path(out).is_dir() or out.endswith(os.sep)
    targets = []
    for reader in readers:
        root = Path(out) / reader if len(readers) > 1 else Path(out)
        for name in names:
            target = ConversionTarget(name, reader, root)
            targets.append(replace(target, path=root / Path(name).name) if several and not target.is_golden else target)
    return targets


def check_targets(targets: Sequence[ConversionTarget], out: str) -> None:
    """Check that no two targets have the same path, and that none would replace what it must not.

    Raises:
        ConversionError: Two targets have the same path; or a target would replace an original or a file that is not the
            record of a conversion, or is inside a golden.
        RunError: A target is a link, or has the place of a file of a golden, of a policy or of a run.
    """
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
        if not target.is_golden:
            for file in (target.path, beside := record_file(target.path)):
                check_output(file)
            if os.path.lexists(beside) and not is_record(beside):
                raise ConversionError(
                    f"{beside}: expected the record of a conversion, found another file, which is not replaced. Choose "
                    "another --output."
                )
        elif golden := golden_around(target.path):
            raise ConversionError(
                f"--output {out}: expected a path outside goldens, which are never changed, found one in {golden}. "
                "Name another path."
            )


@dataclass(frozen=True)
class Conversions:
    """The settings that all conversions of one command share.

    Args:
        policy: The policy.
        notify: Gets a line about what happens.
        goldens: The folder in which the golden of an artifact is looked for, or None.
        arrays: The files of inputs and outputs that were given for an artifact that no golden has, or empty.
        replace_custom_calls: Whether custom calls that the reader does not take are replaced.
        via: `rewrite` the artifact, `export` it again with another release, or `auto`: export if rewriting is refused.
        replace: Files, and goldens as `case/writer`, that may be replaced.
    """

    policy: Policy
    notify: Callable[[str], None]
    goldens: Path | None
    arrays: Sequence[Path]
    replace_custom_calls: bool
    via: str
    replace: Collection[str] = ()

    @cached_property
    def calendar(self) -> Calendar:
        """The releases that the policy knows."""
        return self.policy.calendar()

    @cached_property
    def rewrite_modules(self) -> ModuleRewriter:
        """The rewriter of modules: all conversions share its environment."""
        return ModuleRewriter(self.calendar, self.notify)

    def run(self, target: ConversionTarget) -> ConversionRecord:
        """Convert a source for its reader, verify the result, write it, and return its record.

        An artifact is written to a file, a golden into a folder of goldens.

        Raises:
            ConversionRefused: The source cannot be converted for the reader; nothing is written.
            InfrastructureFault: It is not known whether the source can be converted; nothing is written.
            ExportCompatError: The input is bad.
        """
        golden, artifact = _source(target)
        evidence = self._evidence(artifact, golden)
        reader = find_reader(target.reader, self.calendar)
        allow = self._allowed(evidence)
        refusals: list[ConversionRefused | InfrastructureFault] = []
        for way in self._ways:
            try:
                if way == "rewrite":
                    calls = self.replace_custom_calls
                    converted = convert(artifact, reader, self.rewrite_modules, replace_custom_calls=calls, allow=allow)
                else:
                    converted = export_again(artifact, reader, self.calendar, allow, self.notify)
                if refusals:
                    ended = "was refused" if isinstance(refusals[0], ConversionRefused) else "failed"
                    converted = replace(converted, why=f"{converted.why}; rewriting {ended}: {refusals[0].message()}")
                return self._verified(artifact, converted, evidence, target)
            except (ConversionRefused, InfrastructureFault) as error:
                refusals.append(error)
        faults = [error for error in refusals if isinstance(error, InfrastructureFault)]
        raise type([*faults, *refusals][0])(" ".join(error.message() for error in refusals))

    def check(self, target: ConversionTarget) -> None:
        """Check whether a conversion can succeed, as far as this is known without starting another release.

        Raises:
            ConversionRefused: The bytes of the artifact show that it cannot be converted for the reader.
            ExportCompatError: The input is bad.
        """
        golden, artifact = _source(target)
        evidence = self._evidence(artifact, golden)
        reader = find_reader(target.reader, self.calendar)
        allow, calls = self._allowed(evidence), self.replace_custom_calls
        refusals: list[ConversionRefused] = []
        for way in self._ways:
            try:
                if way == "export":
                    exporting_releases(artifact, reader, self.calendar)
                else:
                    with contextlib.suppress(_NeedsRelease):
                        convert(artifact, reader, _not_started, replace_custom_calls=calls, allow=allow)
                return
            except ConversionRefused as error:
                refusals.append(error)
        raise ConversionRefused(" ".join(error.message() for error in refusals))

    @property
    def _ways(self) -> tuple[str, ...]:
        """The ways to convert, in the order in which they are tried."""
        return ("rewrite", "export") if self.via == "auto" else (self.via,)

    def _allowed(self, evidence: proof.ProofEvidence | None) -> dict[str, str]:
        """Return the custom-call targets that the golden or the policy allows, each with its reason."""
        return {**(evidence.manifest.options.allow if evidence else {}), **self.policy.allow}

    def _evidence(self, artifact: Artifact, golden: Golden | None) -> proof.ProofEvidence | None:
        if golden is None and self.arrays:
            inputs, outputs = self.arrays
            return proof.given_evidence(artifact, inputs, outputs, self.calendar)
        if golden is None and self.goldens is not None:
            golden = GoldenStore(self.goldens).with_artifact(artifact.sha256)
        return proof.evidence_of(golden) if golden else proof.made_evidence(artifact, self.calendar)

    def _verified(
        self, artifact: Artifact, converted: Converted, evidence: proof.ProofEvidence | None, target: ConversionTarget
    ) -> ConversionRecord:
        """Replay the converted artifact in its reader, then write it, and return its record.

        Raises `ConversionRefused` if the reader does not run it.
        """
        made = proof.converted_golden(evidence, converted) if evidence else None
        if evidence is None or made is None:
            proved = proof.Proof(False, "no golden has this artifact, and no inputs could be made for it")
        else:
            options = ReplayOptions(self.calendar, self.policy)
            proved = proof.prove(*made, evidence, converted, options, self.notify)
        compared = ("max_abs_error", "max_rel_error", "max_noise_error", "allowed") if proved.outcome else ()
        record = ConversionRecord(
            verdict=conversion_record.CONVERTED if proved.verified else conversion_record.NOT_VERIFIED,
            message=proved.message,
            sha256=converted.artifact.sha256,
            converted_from=converted.origin(artifact.sha256),
            why=converted.why,
            golden=evidence.golden if evidence else None,
            custom_calls=tuple(sorted({call.target for call in converted.artifact.custom_calls})),
            **{name: getattr(proved.outcome, name) for name in compared},
        )
        if made and target.is_golden:
            store, content = GoldenStore(target.path), _with_record(*made, record)
            name = f"{made[0].case}/{made[0].writer.id}"
            if os.path.lexists(target.path / name) and name not in self.replace and not store.holds(*content):
                raise _taken(target.path / name, name)
            store.write(*content)
        else:
            self._check_free(target.path, converted.artifact)
            _write_artifact(target.path, converted.artifact, record)
        return record

    def _check_free(self, path: Path, artifact: Artifact) -> None:
        """Raise `ConversionError` if there is a different file at `path` that may not be replaced."""
        with contextlib.suppress(OSError):
            if str(path) in self.replace or not os.path.lexists(path) or sha256(read_regular(path)) == artifact.sha256:
                return
        raise _taken(path, str(path))


class _NeedsRelease(Exception):  # noqa: N818 - it says what is needed, and is no error
    """The signal that a conversion has to rewrite modules, for which a release of jaxlib must be started."""


def _not_started(job: ModuleJob) -> RewrittenModules:
    """Raise `_NeedsRelease` in place of rewriting the modules of a job."""
    raise _NeedsRelease


def _source(target: ConversionTarget) -> tuple[Golden | None, Artifact]:
    """Return the golden, if the source is one, and the artifact of a target.

    Raises:
        ConversionRefused: The source is a SavedModel.
        ExportCompatError: The source cannot be read.
    """
    golden = golden_in(target.name) if target.is_golden else None
    artifact = golden.read_artifact() if golden else read(target.name)
    if artifact.saved_model is not None:  # before all goldens are read, since no conversion writes one
        raise ConversionRefused(
            f"{artifact.name}: not converted: it is a SavedModel of TensorFlow. `jaxexport goldens add` makes an "
            "artifact of each function in it: convert those, and write a SavedModel of what you get."
        )
    return golden, artifact


def _taken(path: Path, name: str) -> ConversionError:
    return ConversionError(
        f"{path}: expected nothing there, found another file or golden. Choose another --output, or allow that "
        f"it is replaced: --replace {shlex.quote(name)}"
    )


def golden_in(name: str) -> Golden:
    """Return the golden in a folder.

    Raises:
        GoldenError: The golden cannot be read.
        ConversionError: The folder has no golden.
    """
    folder = Path(name).resolve()
    if not (folder / MANIFEST).is_file():
        raise ConversionError(
            f"{name}: expected an artifact, or the folder of one golden with its {MANIFEST}, found another folder."
        )
    for golden in GoldenStore(folder.parents[1]).generations(folder.parent.name):
        if golden.folder == folder:
            return golden
    raise ConversionError(
        f"{name}: expected the folder of a golden, CASE/WRITER; the name of this folder is not that of a golden."
    )


def _write_artifact(target: Path, artifact: Artifact, record: ConversionRecord) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The record first: a record without its artifact is harmless, and an artifact without its record hides where
        # it comes from.
        write_whole(record_file(target), [dump_record(record)])
        write_whole(target, [bytes(artifact.data)])
    except OSError as error:
        raise ConversionError(f"{target}: cannot write there: {error.strerror or error}.") from error


def _with_record(
    manifest: Manifest, files: Mapping[str, bytes], record: ConversionRecord
) -> tuple[Manifest, Mapping[str, bytes]]:
    """Return the manifest and the files of a golden, with the record of its conversion added if it was converted."""
    if manifest.converted_from is not None:  # an unchanged artifact is the golden itself
        name, content = f"{ARTIFACT}{SUFFIX}", dump_record(record)
        manifest = structs.replace(manifest, files={**manifest.files, name: sha256(content)})
        files = {**files, name: content}
    return manifest, files

"""The facts of an artifact: what is in it, and what the calendar and the lists of stable targets say about it.

Screen, difference and inventory are made of them, and `jaxexport inspect --json` prints them as they are: the types are
the published schema (schema/inspect.schema.json).
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from export_core.artifact import Artifact, Module, as_dict
from export_core.artifact.audit import DISABLED, AuditFinding, Foreseen, calls_of_jax, foreseen_everywhere
from export_core.artifact.main_check import check_main, dimension_constraints, dimension_names, is_known
from export_core.artifact.readers import Needs, Reader, needs, readers_of, readers_of_runtime, without_advice_on
from export_core.artifact.saved_model import SavedModel
from export_core.artifact.writers import WrittenBy, audit_calls, find_writer, is_rewritten
from export_core.base.leaf_names import numbered, path_at
from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple
from export_core.base.quick_hash import sha256_of
from export_core.knowledge import NO, Forecast, forecasts
from export_core.policy.terms import PromisedDays, Terms, promised_days
from export_core.releases.calendar_entries import CalendarEntry, shipped_runtimes
from export_core.releases.names import title_of

if TYPE_CHECKING:
    from typing import Any


FORMAT = 1
EXPORTED = "serialized jax.export.Exported"
BARE = "StableHLO portable artifact"
SAVED_MODEL = "TensorFlow SavedModel"
RAW = "raw StableHLO bytecode, no portable artifact"
STABLEHLO_YEARS = (5, 2)  # Backward and forward. Source: docs/compatibility.md of StableHLO, "Guarantees".


class SignatureFacts(NamedTuple):
    """The types of arguments and results as jax prints them, flat and in order; of a SavedModel only the name."""

    name: str  # The name of the function; of a SavedModel the names of its signatures.
    inputs: tuple[str, ...]  # The types of the arguments.
    outputs: tuple[str, ...]  # The types of the results.
    in_tree: str | None  # The tree of the arguments, null for a bare module.
    out_tree: str | None  # The tree of the results, null for a bare module.
    kept: tuple[int, ...] | None  # The arguments that the module uses, by number; null for a bare module.
    dimensions: tuple[str, ...]  # The names of symbolic dimensions.
    constraints: tuple[str, ...]  # What each call checks of them, such as `b >= 2`.
    unused: tuple[str, ...] = ()  # The arguments that the module does not use, by number and path in the tree.


class ConstantFacts(NamedTuple):
    """A constant of 256 bytes or more."""

    type: str  # The type of the constant.
    nbytes: int  # The bytes it takes.
    at: int  # Its first byte in the file.
    function: str  # The function that it is in.
    sha256: str  # The SHA-256 of its bytes.


class ModuleFacts(NamedTuple):
    """A StableHLO module: the function's own (order 0), or that of a derivative."""

    vjp_order: int  # The order of the derivative, 0 for the function itself.
    nbytes: int  # Its size in bytes.
    producer: str  # What wrote the bytecode, as its header says.
    bytecode_version: int  # The version of MLIR bytecode.
    operations: int  # How many operations.
    op_counts: dict[str, int]  # How many operations of each kind, by name.
    functions: tuple[str, ...]  # Its functions with their types.
    attributes: dict[str, Any]  # The attributes of the module.
    constants: tuple[ConstantFacts, ...]  # Its large constants.
    needs: Needs  # What a reader needs to read it.


class ReaderFacts(NamedTuple):
    """Whether a release of jaxlib loads and runs the artifact."""

    release: CalendarEntry  # The release.
    loads: bool | None  # Whether it loads the artifact; null if that is not known.
    reasons: tuple[str, ...]  # Why not.
    compiles: str  # Whether it compiles the artifact, as far as is known: yes, `yes, but`, unknown or no.
    runs: str  # Whether it runs the artifact, with the same answers.
    numbers: str  # Whether it gives the writer's results, with the same answers.
    known: tuple[str, ...]  # The reasons for the first of these answers that is not yes, with the ids of entries.

    @property
    def jaxlib(self) -> str:
        """The jaxlib version of the release."""
        return self.release.jaxlib

    @property
    def jax(self) -> str:
        """The jax version of the release."""
        return self.release.jax

    @property
    def built(self) -> str:
        """The day on which the jaxlib was built."""
        return self.release.built

    def shown(self) -> tuple[str, ...]:
        """Return the names of the fields that `as_dict` writes."""
        return "jaxlib", "jax", "built", "loads", "reasons", "compiles", "runs", "numbers", "known"


class RuntimeFacts(NamedTuple):
    """Which releases of a runtime other than jaxlib read the artifact, by build date."""

    runtime: str  # The name of the runtime.
    reads: dict[str, bool | None]  # Whether each release reads it; null if that is not known.
    reasons: dict[str, tuple[str, ...]]  # For each release that does not read it, or may not: why, and what to do.
    runs: dict[str, str]  # Whether each release runs it, as far as is known: yes, `yes, but`, unknown or no.
    known: dict[str, tuple[str, ...]]  # For each release that reads it: why it does not run it, or on which condition.
    custom_calls: tuple[str, ...]  # The custom calls that it does not compile, since only jax registers them.


class StableHloPromise(NamedTuple):
    """StableHLO's own promise for a bare module, between the builds of the StableHLO that writes and reads."""

    backward_years: int  # Years backward.
    forward_years: int  # Years forward.
    written_for: str  # The version that the module was written for; its writer had that version or a newer one.


class MainFacts(NamedTuple):
    """Whether `main` takes and returns what the envelope says."""

    checked: bool  # Whether it was checked; false if its calling convention is not known here.
    problems: tuple[str, ...]  # What is wrong, a sentence each.


class ConvertedFacts(NamedTuple):
    """What the record beside a converted artifact says (schema/converted.schema.json)."""

    problem: str  # Why the record is not used: it cannot be read, or is of another file; empty if it is used.
    verdict: str = ""  # `converted` if the reader gave the outputs of the golden, else `not verified`.
    message: str = ""  # What was verified, or why nothing could be verified.
    reader: str = ""  # What it was made for: a jaxlib, or another runtime, such as `tensorflow==2.18.1`.
    sha256: str = ""  # The SHA-256 of the original artifact.
    way: str = ""  # How: `unchanged`, `rewritten`, or `exported again`.
    rewrites: tuple[str, ...] = ()  # Everything that differs from the original, in words.
    tool: str = ""  # What made it.

    @property
    def in_words(self) -> str:
        """For which reader it was converted, and by what, in words, with the version of the converter."""
        return f"for {title_of(self.reader)} by {self.tool}"

    @property
    def differs_from_original(self) -> bool:
        """Whether the conversion changed the artifact, as its record says: JAX promises nothing for it then."""
        return not self.problem and self.way != "unchanged"


class Inspection(NamedTuple):
    """What `jaxexport inspect --json` prints."""

    format: int  # The version of this form.
    file: str  # The file, as it was named.
    kind: str  # What it is: an artifact of jax.export, bare StableHLO, or a SavedModel.
    nbytes: int  # Its size in bytes.
    sha256: str  # The SHA-256 of the file.
    signature: SignatureFacts  # The types of arguments and results.
    custom_calls: tuple[AuditFinding, ...]  # Its custom calls.
    foreseen: tuple[Foreseen, ...]  # What is foreseen for each platform.
    modules: tuple[ModuleFacts, ...]  # The function's module, and those of its derivatives.
    writer: WrittenBy  # Who wrote it.
    readers: tuple[ReaderFacts, ...]  # Which releases load it.
    runtimes: tuple[RuntimeFacts, ...]  # Which other runtimes read and run it.
    stablehlo_promise: StableHloPromise | None  # What StableHLO promises; null unless it is a portable artifact.
    converted: ConvertedFacts | None  # The record of `jaxexport convert` beside the file; null if there is none.
    rewritten: bool = False  # Whether its bytes show that it was changed after its export, as a conversion does.
    platforms: tuple[str, ...] = ()  # The platforms that it was exported for.
    nr_devices: int | None = None  # The number of devices; null for a bare module.
    in_shardings: tuple[str | None, ...] = ()  # The sharding of each argument, null for none.
    out_shardings: tuple[str | None, ...] = ()  # The sharding of each result, null for none.
    ordered_effects: tuple[str, ...] = ()  # The names of ordered effects.
    unordered_effects: tuple[str, ...] = ()  # The names of unordered effects.
    vjp_order: int = 0  # How many orders of derivatives it has.
    calling_convention_version: int | None = None  # The version of its calling convention; null for a bare module.
    derivative_conventions: tuple[int, ...] = ()  # The calling conventions of its derivatives, by order.
    main: MainFacts | None = None  # The check of `main`; null for a bare module.
    disabled_checks: tuple[str, ...] = ()  # Safety checks that jax.export left out.
    unknown_fields: tuple[str, ...] = ()  # Fields of the envelope that this reader does not know.
    promise: PromisedDays | None = None  # What JAX promises; null if nothing, or if no writer is known.
    saved_model: SavedModel | None = None
    """What a SavedModel says of its functions, each of which has a module, in order; null for other artifacts."""
    envelope: dict[str, Any] | None = None
    """The fields of jax.export.Exported as they are in the file; null for a bare module."""

    @property
    def is_changed(self) -> bool:
        """Whether the artifact was changed after its export, as its bytes or the record beside it say."""
        return self.rewritten or (self.converted is not None and self.converted.differs_from_original)


def describe(
    artifact: Artifact,
    terms: Terms,
    *,
    whole: bool = True,
    readers: Sequence[Reader] = (),
    runtimes: bool = True,
    writer: WrittenBy | None = None,
) -> Inspection:
    """Return all facts about an artifact that `jaxexport inspect` shows or writes as JSON.

    Args:
        artifact: The artifact.
        terms: The releases and the allowed calls.
        whole: Whether to include the fields of the envelope, which only the JSON shows.
        readers: The readers. Custom calls are judged for the jaxlibs among these, or for the newest release if there
            are none.
        runtimes: Whether to also find the releases of other runtimes that load the artifact. This doubles the time.
        writer: The writer, if it is known; if not, it is found from the bytes of the artifact.

    Raises:
        ArtifactError: A module of the artifact cannot be read.
    """
    envelope, releases = artifact.envelope, terms.releases
    writer = writer or find_writer(artifact, releases)
    # A target that the newest release has dropped is reported too. If no writer is known, no list applies at all.
    newest = [release.jaxlib for release in releases[-1:]]
    jaxlibs = jaxlibs_of(readers)
    findings = audit_for(artifact, writer, terms.allow, jaxlibs or (newest if writer.candidates else ()))
    converted = converted_facts(artifact)
    modules = tuple(_module(module, artifact.data) for module in artifact.modules)
    jaxlib, others = [*readers_of(releases).values()], [*_readers_of_runtimes(terms)] if runtimes else []
    known = [*forecasts(artifact, (*jaxlib, *others))]  # Asked once: what is read of the artifact serves all readers.
    # How to export it otherwise is known for what jax.export wrote.
    rewritten = is_rewritten(artifact, writer, releases)
    advised = not (rewritten or (converted is not None and converted.differs_from_original))
    facts = Inspection(
        format=FORMAT,
        file=artifact.name,
        kind=_kind(artifact),
        nbytes=len(artifact.data),
        sha256=artifact.sha256,
        signature=_signature(artifact),
        custom_calls=tuple(finding for finding in findings if finding.standing != DISABLED),
        foreseen=foreseen_everywhere(
            artifact, next(iter((*jaxlibs, *newest)), None), of_known_writer=bool(writer.possible)
        ),
        modules=modules,
        writer=writer,
        readers=tuple(_reader(one, advised=advised) for one in known[: len(jaxlib)]),
        runtimes=tuple(_runtimes(artifact, known[len(jaxlib) :], advised=advised)),
        stablehlo_promise=stablehlo_promise(artifact),
        converted=converted,
        rewritten=rewritten,
        saved_model=artifact.saved_model,
    )
    if envelope is None:
        return facts
    unknown = [field for level in envelope.levels for field in level.unknown_fields]
    return facts._replace(
        platforms=envelope.platforms,
        nr_devices=envelope.nr_devices,
        in_shardings=tuple(None if x is None else str(x) for x in envelope.in_shardings),
        out_shardings=tuple(None if x is None else str(x) for x in envelope.out_shardings),
        ordered_effects=envelope.ordered_effects,
        unordered_effects=envelope.unordered_effects,
        vjp_order=envelope.vjp_order,
        calling_convention_version=envelope.calling_convention_version,
        derivative_conventions=tuple(level.calling_convention_version for level in envelope.levels[1:]),
        main=MainFacts(is_known(envelope), tuple(check_main(artifact))),
        disabled_checks=tuple(map(str, envelope.disabled_checks)),
        unknown_fields=tuple(f"{field.table}[{field.index}]" for field in unknown),
        promise=None if converted is not None and converted.differs_from_original else promised_days(writer, terms),
        envelope=as_dict(envelope) if whole else None,
    )


def _kind(artifact: Artifact) -> str:
    if artifact.envelope is not None:
        return EXPORTED
    if artifact.saved_model is not None:
        return SAVED_MODEL
    return RAW if artifact.is_raw else BARE


def jaxlibs_of(readers: Sequence[Reader]) -> tuple[str, ...]:
    """Return the jaxlibs among these readers."""
    return tuple(reader.release.jaxlib for reader in readers if not reader.release.runtime)


def audit_for(
    artifact: Artifact, writer: WrittenBy, allow: Mapping[str, str], jaxlibs: Sequence[str]
) -> tuple[AuditFinding, ...]:
    """Audit an artifact for several readers: a call is fine if its writer and all of these jaxlibs promise it.

    Raises `ArtifactError` for a module that cannot be read.
    """
    return worst_findings([audit_calls(artifact, writer, allow, jaxlib) for jaxlib in jaxlibs or (None,)])


def worst_findings(audited: Sequence[Sequence[AuditFinding]]) -> tuple[AuditFinding, ...]:
    """Return one finding for each target or part, from several audits of the same artifact.

    It is the first finding that is not ok, or the first of all if each is ok.
    """
    return tuple(next((x for x in alike if not x.ok), alike[0]) for alike in zip(*audited, strict=True))


def _reader(known: Forecast, *, advised: bool) -> ReaderFacts:
    """Return the forecast for a reader, with advice to export or convert otherwise only if `advised`."""
    load = known.load if advised else without_advice_on(known.load)
    if load.ok is False:
        return ReaderFacts(load.reader.release, load.ok, load.reasons, NO, NO, NO, ())
    reasons = tuple(map(str, known.doubts))
    return ReaderFacts(
        release=load.reader.release,
        loads=load.ok,
        reasons=load.reasons,
        compiles=known.compiles.answer,
        runs=known.runs.answer,
        numbers=known.numbers.answer,
        known=reasons,
    )


def _readers_of_runtimes(terms: Terms) -> Iterator[Reader]:
    """Yield every known release of each runtime other than jaxlib as a reader, grouped by runtime."""
    runtimes = shipped_runtimes()
    for name in runtimes:
        yield from readers_of_runtime(name, runtimes, terms.releases)


def _runtimes(artifact: Artifact, foreseen: Sequence[Forecast], *, advised: bool) -> Iterator[RuntimeFacts]:
    calls = calls_of_jax(artifact)
    for name, alike in groupby(foreseen, lambda known: known.reader.release.family):
        by = {known.reader.release.version: _reader(known, advised=advised) for known in alike}
        yield RuntimeFacts(
            name,
            {version: facts.loads for version, facts in by.items()},
            {version: facts.reasons for version, facts in by.items() if facts.reasons},
            {version: facts.runs for version, facts in by.items()},
            {version: facts.known for version, facts in by.items() if facts.known},
            calls,
        )


def _signature(artifact: Artifact) -> SignatureFacts:
    if artifact.saved_model is not None:
        return SignatureFacts(", ".join(artifact.saved_model.signatures), (), (), None, None, None, (), ())
    envelope, main = artifact.envelope, artifact.module.main
    if envelope is not None:
        kept = {*envelope.module_kept_var_idx}
        unused = [number for number in range(len(envelope.in_avals)) if number not in kept]
        paths = envelope.argument_paths if unused else ()
        return SignatureFacts(
            envelope.fun_name,
            tuple(map(str, envelope.in_avals)),
            tuple(map(str, envelope.out_avals)),
            str(envelope.in_tree),
            str(envelope.out_tree),
            envelope.module_kept_var_idx,
            (names := tuple(dimension_names(envelope.in_avals))),
            dimension_constraints(artifact) if names else (),
            tuple(numbered(number, path_at(paths, number)) for number in unused),
        )
    if main is None:
        return SignatureFacts("", (), (), None, None, None, (), ())
    return SignatureFacts("main", main.inputs, main.outputs, None, None, None, (), ())


def _module(module: Module, data: bytes | bytearray) -> ModuleFacts:
    view = memoryview(data)  # hashed in place: a constant of 50 MB is not copied
    return ModuleFacts(
        module.vjp_order,
        module.nbytes,
        module.producer,
        module.bytecode_version,
        module.num_operations,
        module.op_counts,
        tuple(map(str, module.functions)),
        as_dict(module.attributes),
        tuple(
            ConstantFacts(*constant, sha256_of(view[constant.at : constant.at + constant.nbytes]))
            for constant in module.constants
        ),
        needs(module),
    )


def stablehlo_promise(artifact: Artifact) -> StableHloPromise | None:
    """Return StableHLO's compatibility promise for a bare module.

    None for raw bytecode, and for an artifact of jax.export or a SavedModel, which have promises of their own.
    """
    written_for = artifact.module.stablehlo_version
    if artifact.envelope is not None or artifact.saved_model is not None or written_for is None:
        return None
    return StableHloPromise(*STABLEHLO_YEARS, written_for)


def converted_facts(artifact: Artifact) -> ConvertedFacts | None:
    """Return what the record beside a converted artifact says; None if there is no record."""
    # Most artifacts have no record: what reads one takes longer to import than everything else here.
    if not os.path.lexists(f"{artifact.name}.converted.json"):
        return None
    from export_core.goldens import GoldenError
    from export_core.goldens.conversion_record import read_record

    try:
        record = read_record(artifact)
    except GoldenError as error:
        return ConvertedFacts(str(error))
    by = record.converted_from
    return ConvertedFacts("", record.verdict, record.message, by.reader, by.sha256, by.way, by.rewrites, by.tool)

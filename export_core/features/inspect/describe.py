"""The facts of an artifact: its own, and what the calendar and the lists of stable targets say about it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from export_core.artifact import as_dict
from export_core.artifact.audit import DISABLED, PLATFORMS, AuditFinding, Foreseen, audit, foreseen
from export_core.artifact.main_check import check_main, dimension_names, is_known
from export_core.artifact.readers import loads, needs, readers_of
from export_core.artifact.writers import writers
from export_core.features.inspect.conversions import converted_facts, is_rewritten
from export_core.releases.stable_targets import stable_targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from export_core.artifact import Artifact, Envelope, Module, UnknownField
    from export_core.artifact.envelope.fields import Sharding
    from export_core.features.inspect import facts
    from export_core.policy.terms import Terms
    from export_core.releases.entries import CalendarEntry

FORMAT = 1
EXPORTED = "serialized jax.export.Exported"
BARE = "StableHLO portable artifact"
RAW = "raw StableHLO bytecode, no portable artifact"
STABLEHLO_YEARS = (5, 2)
"""Backward and forward. Source: docs/compatibility.md of StableHLO, "Guarantees"."""


def describe(artifact: Artifact, terms: Terms, *, whole: bool = True, reader: str | None = None) -> facts.Inspection:
    """Return everything that is known of an artifact.

    The envelope field by field only when `whole`, since no screen shows it. Custom calls are judged for the jaxlib
    `reader`, or for the newest release.

    Raises:
        ArtifactError: a module of it cannot be read.
    """
    envelope, releases = artifact.envelope, terms.releases
    writer = find_writer(artifact, releases)
    # A target that the newest release has dropped is reported too. If no writer is known, no list applies at all.
    newest = releases[-1].jaxlib if releases else None
    converted = converted_facts(artifact)
    findings = audit_calls(artifact, writer, terms.allow, reader or (newest if writer["candidates"] else None))
    return {
        "format": FORMAT,
        "file": artifact.name,
        "kind": EXPORTED if envelope is not None else RAW if artifact.is_raw else BARE,
        "nbytes": len(artifact.data),
        "sha256": artifact.sha256,
        "signature": _signature(artifact),
        "platforms": [] if envelope is None else list(envelope.platforms),
        "nr_devices": None if envelope is None else envelope.nr_devices,
        "in_shardings": [] if envelope is None else _shardings(envelope.in_shardings),
        "out_shardings": [] if envelope is None else _shardings(envelope.out_shardings),
        "ordered_effects": [] if envelope is None else list(envelope.ordered_effects),
        "unordered_effects": [] if envelope is None else list(envelope.unordered_effects),
        "vjp_order": 0 if envelope is None else envelope.vjp_order,
        "calling_convention_version": None if envelope is None else envelope.calling_convention_version,
        "main": None if envelope is None else {"checked": is_known(envelope), "problems": check_main(artifact)},
        "disabled_checks": [] if envelope is None else list(map(str, envelope.disabled_checks)),
        "unknown_fields": [] if envelope is None else [f"{x.table}[{x.index}]" for x in _unknown(envelope)],
        "custom_calls": [_custom_call(finding) for finding in findings if finding.standing != DISABLED],
        "foreseen": _foreseen(artifact, reader or newest),
        "modules": [_module(module, artifact.data) for module in artifact.modules],
        "writer": writer,
        "readers": _readers(artifact, releases),
        "promise": None if envelope is None or is_rewritten(converted) else promised_days(writer, terms),
        "stablehlo_promise": stablehlo_promise(artifact),
        "converted": converted,
        "envelope": as_dict(envelope) if envelope is not None and whole else None,
    }


def find_writer(artifact: Artifact, releases: Sequence[CalendarEntry]) -> facts.WriterFacts:
    """Return who wrote it, as far as its format, its StableHLO version and the jax that it names show.

    Its jaxlib is known where only one fits: a jax works on each jaxlib from its minimum to its own number.

    Raises:
        ArtifactError: the module's header cannot be read.
    """
    envelope = artifact.envelope
    all_jax = {release.jaxlib: release.all_jax for release in releases}
    candidates = list(writers(artifact, {release.jaxlib: release.stablehlo for release in releases}, all_jax))
    jax = envelope.jax_version if envelope is not None else None
    if jax is not None:
        candidates = _working_with(jax, candidates, all_jax)
    return {
        "jax": jax,
        "jaxlib": candidates[0] if len(candidates) == 1 and envelope is not None else None,
        "candidates": candidates,
        "producer": artifact.module.producer,
        "serialization_version": None if envelope is None else envelope.serialization_version,
        "formats": None if envelope is None else list(envelope.format_range),
    }


def _working_with(jax: str, candidates: Sequence[str], all_jax: Mapping[str, Sequence[str]]) -> list[str]:
    """The jaxlibs that this jax works on. Of a jax that the calendar lacks: those that are not newer."""
    if any(jax in known for known in all_jax.values()):
        return [version for version in candidates if jax in all_jax[version]]
    try:
        number = Version(jax).release  # the artifact names its jax, so that this may be any text
    except InvalidVersion:
        return []
    return [version for version in candidates if Version(version).release <= number]


def audit_calls(
    artifact: Artifact, writer: facts.WriterFacts, allow: Mapping[str, str], reader: str | None = None
) -> tuple[AuditFinding, ...]:
    """Audit an artifact against what its writer promised; if several can have written it, against what all did.

    `reader` is a jaxlib that must promise them too, None where there is none to consider.

    Raises:
        ArtifactError: a module cannot be read.
    """
    who = [writer["jaxlib"]] if writer["jaxlib"] else writer["candidates"]
    # The list is in jax, which newer artifacts name.
    lists = [stable_targets(version) for version in ([writer["jax"]] if writer["jax"] and who else who) if version]
    return audit(
        artifact,
        frozenset.intersection(*lists) if lists else None,
        None if reader is None else stable_targets(reader),
        allow=allow,
        writer=f"jaxlib {who[0]}" if len(who) == 1 else f"all of the {len(who)} releases that can have written it",
        reader=f"jaxlib {reader}",
    )


def foreseen_in(artifact: Artifact, reader: str) -> list[Foreseen]:
    """Return what is foreseen for every platform in a release, by its list of stable targets.

    Raises:
        ArtifactError: a module cannot be read.
    """
    return [foreseen(artifact, name, stable_targets(reader), f"jaxlib {reader}") for name in PLATFORMS]


def _foreseen(artifact: Artifact, reader: str | None) -> list[facts.ForeseenFacts]:
    return [
        {
            "platform": platform.platform,
            "exported": platform.exported,
            "targets": list(platform.targets),
            "unpromised": list(platform.unpromised),
            "note": platform.note,
        }
        for platform in (foreseen_in(artifact, reader) if reader else ())
    ]


def _signature(artifact: Artifact) -> facts.SignatureFacts:
    envelope = artifact.envelope
    if envelope is None:
        main = artifact.module.main
        return {
            "name": "main" if main else "",
            "inputs": list(main.inputs) if main else [],
            "outputs": list(main.outputs) if main else [],
            "in_tree": None,
            "out_tree": None,
            "kept": None,
            "dimensions": [],
        }
    return {
        "name": envelope.fun_name,
        "inputs": list(map(str, envelope.in_avals)),
        "outputs": list(map(str, envelope.out_avals)),
        "in_tree": str(envelope.in_tree),
        "out_tree": str(envelope.out_tree),
        "kept": list(envelope.module_kept_var_idx),
        "dimensions": list(dimension_names(envelope.in_avals)),
    }


def _shardings(shardings: Sequence[Sharding]) -> list[str | None]:
    return [None if sharding is None else str(sharding) for sharding in shardings]


def _unknown(envelope: Envelope) -> list[UnknownField]:
    return [*envelope.unknown_fields, *(_unknown(envelope.vjp) if envelope.vjp is not None else ())]


def _custom_call(finding: AuditFinding) -> facts.CustomCallFacts:
    return {
        "target": finding.target,
        "standing": finding.standing,
        "ok": finding.ok,
        "what": finding.payload.kind,
        "payload_version": finding.payload.version,
        "count": finding.count,
        "where": list(finding.places),
        "message": finding.message,
        "advice": finding.advice,
    }


def _module(module: Module, data: bytes | bytearray) -> facts.ModuleFacts:
    import hashlib

    need = needs(module)
    view = memoryview(data)  # hashed in place: a constant of 50 MB is not copied
    return {
        "vjp_order": module.vjp_order,
        "nbytes": module.nbytes,
        "producer": module.producer,
        "bytecode_version": module.bytecode_version,
        "operations": module.num_operations,
        "op_counts": module.op_counts,
        "functions": list(map(str, module.functions)),
        "attributes": as_dict(module.attributes),
        "constants": [
            {
                "type": constant.type,
                "nbytes": constant.nbytes,
                "at": constant.at,
                "function": constant.function,
                "sha256": hashlib.sha256(view[constant.at : constant.at + constant.nbytes]).hexdigest(),
            }
            for constant in module.constants
        ],
        "needs": {
            "stablehlo": ".".join(map(str, need.stablehlo)),
            "exact": need.exact,
            "set_by": list(need.set_by),
            "unknown": list(need.unknown),
            "dialects": list(need.dialects),
            "range_locations": need.range_locations,
        },
    }


def _readers(artifact: Artifact, releases: Sequence[CalendarEntry]) -> list[facts.ReaderFacts]:
    built = {release.jaxlib: release.built for release in releases}
    stablehlo = {release.jaxlib: release.stablehlo for release in releases}
    readers = readers_of(stablehlo, {release.jaxlib: release.jax for release in releases})
    return [
        {
            "jaxlib": load.reader.jaxlib,
            "jax": load.reader.jax,
            "built": built[load.reader.jaxlib],
            "loads": load.ok,
            "reasons": list(load.reasons),
        }
        for load in loads(artifact, readers)
    ]


def stablehlo_promise(artifact: Artifact) -> facts.StableHloPromiseFacts | None:
    """What StableHLO promises of a bare module; None for raw bytecode, and where JAX's own promise counts."""
    written_for = artifact.module.stablehlo_version
    if artifact.envelope is not None or written_for is None:
        return None
    backward, forward = STABLEHLO_YEARS
    return {"backward_years": backward, "forward_years": forward, "written_for": written_for}


def promises_in_words(by_stablehlo: facts.StableHloPromiseFacts | None) -> tuple[str, str]:
    """Who promises what of a module without an envelope, a line for JAX and one for StableHLO."""
    by_jax = "nothing by JAX, whose windows are for what jax.export wrote"
    if by_stablehlo is None:
        return by_jax, "nothing by StableHLO: only the build that wrote raw bytecode is sure to read it"
    return by_jax, (
        f"by StableHLO {by_stablehlo['backward_years']} years backward and {by_stablehlo['forward_years']} forward, "
        "between the builds of StableHLO that wrote and read it; custom calls aside"
    )


def promised_days(writer: facts.WriterFacts, terms: Terms) -> facts.PromiseFacts | None:
    """The build dates of readers that are promised to read it; None where no writer is known."""
    writers = [writer["jaxlib"]] if writer["jaxlib"] else writer["candidates"]
    built = sorted(date.fromisoformat(release.built) for release in terms.releases if release.jaxlib in writers)
    if not built:
        return None
    ends = (built[0], built[-1])  # with several possible writers the promise is a range
    return {
        "backward_days": terms.backward_days,
        "forward_days": terms.forward_days,
        "since": [str(day - timedelta(days=terms.forward_days)) for day in ends],
        "until": [str(day + timedelta(days=terms.backward_days)) for day in ends],
    }

"""How the facts of an artifact are found: its own, and what the calendar and the lists of stable targets say of it."""

from __future__ import annotations

import datetime

from export_core.artifact import as_dict
from export_core.artifact.audit import Finding, audit
from export_core.artifact.foreseen import PLATFORMS, Foreseen, foreseen
from export_core.artifact.main_check import check_main, dimension_names, is_known
from export_core.artifact.readers import loads, readers_of
from export_core.artifact.vhlo_needs import needs
from export_core.artifact.writers import writers
from export_core.releases.dates import version_key
from export_core.releases.stable_targets import stable_targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from export_core.artifact import Artifact, Envelope, Module, UnknownField
    from export_core.artifact.envelope.fields import Sharding
    from export_core.inspection import facts
    from export_core.releases.dates import Dated

FORMAT = 1
EXPORTED = "serialized jax.export.Exported"
BARE = "StableHLO portable artifact"
BACKWARD_DAYS, FORWARD_DAYS = 180, 21


def describe(artifact: Artifact, releases: Sequence[Dated], *, whole: bool = True) -> facts.Inspection:
    """Find everything that is to be told of an artifact; the envelope field by field only when `whole`, since no screen shows it.

    Raises:
        ArtifactError: a module of it cannot be read.
    """
    envelope = artifact.envelope
    writer = find_writer(artifact, releases)
    newest = releases[-1].jaxlib if releases and writer["candidates"] else None
    return {
        "format": FORMAT,
        "file": artifact.name,
        "kind": BARE if envelope is None else EXPORTED,
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
        "custom_calls": [_custom(finding) for finding in audit_by(artifact, writer, reader=newest) if finding.count],
        "foreseen": _foreseen(artifact, releases),
        "modules": [_module(module, artifact.data) for module in artifact.modules],
        "writer": writer,
        "readers": _readers(artifact, releases),
        "promise": _promise(writer, releases),
        "envelope": as_dict(envelope) if envelope is not None and whole else None,
    }


def find_writer(artifact: Artifact, releases: Sequence[Dated]) -> facts.WriterFacts:
    """Say who wrote it, as far as its format, its StableHLO and its own word tell.

    Raises:
        ArtifactError: the module's header cannot be read.
    """
    envelope = artifact.envelope
    found = list(writers(artifact, {dated.jaxlib: dated.stablehlo for dated in releases}))
    jax = envelope.jax_version if envelope is not None else None
    if jax is not None:  # no jax works with a jaxlib of a higher number
        found = [version for version in found if version_key(version) <= version_key(jax)]
    if jax is not None and jax in found:  # who installs both gets them of one number
        jaxlib: str | None = jax
    else:
        jaxlib = found[0] if len(found) == 1 else None
    return {
        "jax": jax,
        "jaxlib": jaxlib,
        "candidates": found,
        "producer": artifact.module.producer,
        "serialization_version": None if envelope is None else envelope.serialization_version,
        "formats": None if envelope is None else list(envelope.format_range),
    }


def audit_by(
    artifact: Artifact, writer: facts.WriterFacts, allow: Mapping[str, str] | None = None, reader: str | None = None
) -> tuple[Finding, ...]:
    """Audit the custom calls against what the writer promised; where several can have written it, against what all of them did.

    `reader` is a jaxlib that must promise them too, None where nobody asks.

    Raises:
        ArtifactError: a module cannot be read.
    """
    who = [writer["jaxlib"]] if writer["jaxlib"] else writer["candidates"]
    lists = [stable_targets(version) for version in who if version]
    return audit(
        artifact.custom_calls,
        frozenset.intersection(*lists) if lists else None,
        None if reader is None else stable_targets(reader),
        allow=allow,
        disabled_checks=() if artifact.envelope is None else artifact.envelope.disabled_checks,
        writer=f"jaxlib {who[0]}" if len(who) == 1 else f"all of the {len(who)} releases that can have written it",
        reader=f"jaxlib {reader}",
    )


def foreseen_in(artifact: Artifact, reader: str) -> list[Foreseen]:
    """Foresee every platform in a release, by its list of stable targets.

    Raises:
        ArtifactError: a module cannot be read.
    """
    return [foreseen(artifact, name, stable_targets(reader), f"jaxlib {reader}") for name in PLATFORMS]


def _foreseen(artifact: Artifact, releases: Sequence[Dated]) -> list[facts.ForeseenFacts]:
    return [
        {
            "platform": each.platform,
            "exported": each.exported,
            "targets": list(each.targets),
            "unpromised": list(each.unpromised),
            "note": each.note,
        }
        for each in (foreseen_in(artifact, releases[-1].jaxlib) if releases else ())
    ]


def _signature(artifact: Artifact) -> facts.Signature:
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


def _custom(finding: Finding) -> facts.Custom:
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
    view = memoryview(data)
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


def _readers(artifact: Artifact, releases: Sequence[Dated]) -> list[facts.ReaderFacts]:
    dated = {each.jaxlib: each for each in releases}
    known = readers_of({each.jaxlib: each.stablehlo for each in releases}, {each.jaxlib: each.jax for each in releases})
    return [
        {
            "jaxlib": load.reader.jaxlib,
            "jax": load.reader.jax,
            "built": dated[load.reader.jaxlib].built,
            "loads": load.ok,
            "reasons": list(load.reasons),
        }
        for load in loads(artifact, known)
    ]


def _promise(writer: facts.WriterFacts, releases: Sequence[Dated]) -> facts.PromiseFacts | None:
    who = [writer["jaxlib"]] if writer["jaxlib"] else writer["candidates"]
    built = sorted(datetime.date.fromisoformat(each.built) for each in releases if each.jaxlib in who)
    if not built:
        return None
    ends = (built[0], built[-1])
    return {
        "backward_days": BACKWARD_DAYS,
        "forward_days": FORWARD_DAYS,
        "since": [str(day - datetime.timedelta(days=FORWARD_DAYS)) for day in ends],
        "until": [str(day + datetime.timedelta(days=BACKWARD_DAYS)) for day in ends],
    }

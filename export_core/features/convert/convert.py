"""One artifact made into one that a reader takes: what is rewritten, in which order, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from export_core.artifact import read_bytes
from export_core.artifact.audit import belongs, judge_calls, unread_findings
from export_core.artifact.envelope import formats
from export_core.artifact.envelope.fields import NamedSharding
from export_core.artifact.main_check import check_main
from export_core.artifact.numerics import LAPACK
from export_core.artifact.readers import Reader, loads, module_reasons, version_numbers
from export_core.features.convert.envelope import rewrite_envelope
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens.conversion_record import tool_name
from export_core.goldens.manifest import ConvertedFrom
from export_core.policy import load_check
from export_core.policy.terms import Terms
from export_core.releases.entries import calendar_entries
from export_core.releases.errors import ReleaseError
from export_core.releases.stable_targets import stable_targets

if TYPE_CHECKING:
    from export_core.artifact import Artifact, CustomCall
    from export_core.artifact.readers import Reader
    from export_core.releases import Calendar


UNCHANGED, REWRITTEN, EXPORTED_AGAIN = "unchanged", "rewritten", "exported again"
BYPASS = "JAX_EXPORT_DESERIALIZE_EXPIRED_VERSIONS=1"
BYPASS_SINCE = "0.11.1"


class ModuleJob(msgspec.Struct, frozen=True):
    """What is to be done with the modules of one artifact: see `rewrite_modules`.

    `stablehlo` is the version to write; `shardy` whether the reader parses Shardy's dialect; `replace` the targets of
    custom calls to replace, `platform` the platform whose lowering replaces them.
    """

    modules: tuple[bytes, ...]
    stablehlo: str
    shardy: bool
    replace: tuple[str, ...] = ()
    platform: str = ""


@dataclass(frozen=True)
class RewrittenModules:
    """The modules again, what was rewritten in words, and the jaxlib that did it."""

    modules: tuple[bytes, ...]
    rewrites: tuple[str, ...]
    by: str


RewriteModules = Callable[[ModuleJob], RewrittenModules]
"""Does a `ModuleJob` where a jaxlib is. Raises `ConversionRefused`, or `InfrastructureFault`."""


@dataclass(frozen=True)
class Converted:
    """An artifact that a reader takes, read again.

    `rewrites` is empty where the reader takes the original. `way` says how it was made and `why` for what reason;
    `module_by` is the jaxlib that rewrote its modules, empty where they are the original's. `replaced` has the targets
    of custom calls that were replaced.
    """

    artifact: Artifact
    reader: Reader
    way: str
    why: str
    rewrites: tuple[str, ...] = ()
    module_by: str = ""
    replaced: tuple[str, ...] = ()

    def origin(self, original: str) -> ConvertedFrom:
        """What it was made of, and how, as a golden and a record say it; `original` is the SHA-256 of the original."""
        return ConvertedFrom(original, self.reader.jaxlib, self.way, self.rewrites, tool_name(), self.module_by)


def convert(
    artifact: Artifact,
    reader: Reader,
    rewrite_modules: RewriteModules,
    *,
    replace_custom_calls: bool = False,
    allow: Mapping[str, str] | None = None,
) -> Converted:
    """Rewrite an artifact for a reader: its envelope, and its modules where they are in the way.

    Args:
        artifact: what was read. It is not changed.
        reader: the release that is to take it.
        rewrite_modules: called where a module has to be rewritten, which needs a jaxlib.
        replace_custom_calls: replace the custom calls that the reader does not take.
        allow: custom-call targets that the project accepts, each with its reason.

    Raises:
        ConversionRefused: it cannot be made into one that the reader takes.
        ArtifactError: it cannot be read.
    """
    allow = allow or {}
    envelope = artifact.envelope
    if envelope is None:
        raise ConversionRefused(
            f"{artifact.name}: not converted: it is a bare StableHLO module, without the envelope that says how it is "
            "called. Export the function again."
        )
    if not_read := parts_not_read(artifact, allow):
        raise ConversionRefused(f"{artifact.name}: not converted: {' '.join(not_read)}")
    calls = calls_not_taken(artifact, reader, allow)
    if calls and not replace_custom_calls:
        raise ConversionRefused(
            f"{artifact.name}: not converted for jaxlib {reader.jaxlib}: {' '.join(calls.values())} "
            "--replace-custom-calls replaces those of LAPACK."
        )
    (load,) = loads(artifact, [reader])
    if load.ok and not calls and not _misses_shardings(artifact, reader):
        return Converted(artifact, reader, UNCHANGED, f"jaxlib {reader.jaxlib} takes the original")
    try:
        in_the_way = [text for module in artifact.modules for text in module_reasons(module, reader)]
        modules: Sequence[bytes] = [module.serialized() for module in artifact.modules]
        by = ""
        rewrites: tuple[str, ...] = ()
        if in_the_way or calls:
            if reader.stablehlo is None:
                raise ConversionRefused(f"the StableHLO of jaxlib {reader.jaxlib} is not known")
            done = rewrite_modules(_job(modules, reader, tuple(calls)))
            modules, by, rewrites = done.modules, done.by, done.rewrites
        data, outside = rewrite_envelope(artifact, reader, modules)
        converted = read_bytes(data, f"{artifact.name} for jaxlib {reader.jaxlib}")
        check_converted(artifact, converted, reader, allow)
    except ConversionRefused as refused:
        raise ConversionRefused(
            f"{artifact.name}: not converted for jaxlib {reader.jaxlib}: {refused.message().rstrip('.')}."
            f"{_bypass(load.reasons, reader)}"
        ) from None
    why = "; ".join((*load.reasons, *calls)) or f"jaxlib {reader.jaxlib} would miss its shardings"
    return Converted(converted, reader, REWRITTEN, why, (*outside, *rewrites), by, tuple(calls))


def find_reader(jaxlib: str, calendar: Calendar) -> Reader:
    """The release of that number.

    Raises:
        ReleaseError: there is none.
    """
    try:
        return load_check.find_reader(jaxlib, Terms(calendar_entries(calendar)))
    except ReleaseError as error:
        raise ReleaseError(f"--for: {error}") from None


def _job(modules: Sequence[bytes], reader: Reader, replace: tuple[str, ...]) -> ModuleJob:
    assert reader.stablehlo is not None
    return ModuleJob(
        tuple(modules),
        reader.stablehlo,
        reader.knows_shardy,
        replace,
        # Readers that do not initialize LAPACK get what XLA expands itself, which is how jax lowers for TPUs.
        "cpu" if version_numbers(reader.jaxlib) >= INITIALIZED_SINCE else "tpu",
    )


def _misses_shardings(artifact: Artifact, reader: Reader) -> bool:
    """Whether a reader loads an artifact without its shardings: named ones, with none of XLA's beside them."""
    if artifact.envelope is None or formats.format_of(reader.jax) >= formats.NAMED_SHARDINGS:
        return False
    return any(
        isinstance(sharding, NamedSharding) and sharding.hlo_sharding_proto is None
        for level in artifact.envelope.levels
        for sharding in level.shardings
    )


def check_converted(original: Artifact, converted: Artifact, reader: Reader, allow: Mapping[str, str]) -> None:
    """Read what was made as any other artifact. Raises `ConversionRefused` for what the reader still refuses."""
    if _signature(original) != _signature(converted):
        raise ConversionRefused("it no longer takes and gives what the original does")
    (load,) = loads(converted, [reader])
    problems = [*load.reasons, *calls_not_taken(converted, reader, allow).values(), *parts_not_read(converted, allow)]
    if not load.ok or problems:
        raise ConversionRefused("; ".join(problems) or "it is not known whether the reader takes it")
    if new := [text for text in check_main(converted) if text not in check_main(original)]:
        raise ConversionRefused(f"the module no longer has the arguments that the envelope says: {' '.join(new)}")


def _signature(artifact: Artifact) -> list[object]:
    """The trees and types of arguments and results. The text of a symbolic dimension may differ by release."""
    envelope = artifact.envelope
    assert envelope is not None
    avals = [(aval.dtype, len(aval.shape)) for aval in (*envelope.in_avals, *envelope.out_avals)]
    return [envelope.in_tree, envelope.out_tree, envelope.platforms, envelope.vjp_order, avals]


def _bypass(reasons: Sequence[str], reader: Reader) -> str:
    """What JAX's own way is worth, where a reader calls an artifact expired."""
    if not any("expired" in reason for reason in reasons):
        return ""
    return (
        f" JAX's own bypass, {BYPASS} in the environment of the reader (jax {BYPASS_SINCE} and later), reads expired "
        "formats. It does not cover XLA's shardings from jax 0.12.0 on, nor custom calls that are gone."
    )


INITIALIZED_SINCE = (0, 10, 0)
"""The first jaxlib that initializes LAPACK for an artifact: https://github.com/jax-ml/jax/issues/29610."""


def calls_not_taken(artifact: Artifact, reader: Reader, allow: Mapping[str, str]) -> dict[str, str]:
    """Each target that the reader does not take, with the reason; empty where it takes all of them.

    It must promise the target, or the project allow it. A call for the CPU must not be one of those that end its
    process, which is worse than a refusal.

    Raises:
        ArtifactError: a module cannot be read.
    """
    promised = stable_targets(reader.jax)
    findings = judge_calls(artifact.custom_calls, promised, None, allow, f"jaxlib {reader.jaxlib}")
    problems = {finding.target: finding.message for finding in findings if not finding.ok}
    for call in artifact.custom_calls:
        if dies_cold(call, artifact, reader):
            problems[call.target] = (
                f"{call.target} ends a process of jaxlib {reader.jaxlib} by signal 11 where jax has called no linear "
                f"algebra before, until {'.'.join(map(str, INITIALIZED_SINCE))} fixed it "
                "(https://github.com/jax-ml/jax/issues/29610)."
            )
    return problems


def parts_not_read(artifact: Artifact, allow: Mapping[str, str]) -> list[str]:
    """Each part of an artifact that is not known here, in a sentence: what it does cannot be rewritten.

    Raises:
        ArtifactError: a module cannot be read.
    """
    return [finding.message for finding in unread_findings(artifact, allow) if not finding.ok]


def dies_cold(call: CustomCall, artifact: Artifact, reader: Reader) -> bool:
    """Whether a call ends the process of a reader in which nothing has initialized LAPACK."""
    if not call.target.startswith(LAPACK) or version_numbers(reader.jaxlib) >= INITIALIZED_SINCE:
        return False
    envelope = artifact.envelope
    return (
        envelope is None
        or "cpu" in envelope.platforms
        or any(check.kind == "platform" for check in envelope.disabled_checks)
    ) and belongs(call.target, "cpu")

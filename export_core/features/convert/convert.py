"""The conversion of one artifact for a reader: what is rewritten, in which order, and what is refused."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version

import msgspec

from export_core.artifact import Artifact, Envelope, read_bytes
from export_core.artifact.audit import LAPACK, WITH_XLA, belongs, calls_of_jax, judge_calls, only_jax, unread_findings
from export_core.artifact.envelope.fields import NamedSharding
from export_core.artifact.envelope.formats import NAMED_SHARDINGS, format_of
from export_core.artifact.main_check import check_main
from export_core.artifact.readers import CONVERT, LoadResult, Reader, module_problems, needs, without_advice
from export_core.base.errors import InfrastructureFault
from export_core.features.convert.envelope import rewrite_envelope, shardings_of
from export_core.features.convert.errors import ConversionRefused
from export_core.goldens.manifest import ConvertedFrom
from export_core.knowledge import NO, forecast, has_removable_shardings, shardings_in_the_way
from export_core.knowledge.replaced_calls import INITIALIZED_SINCE, initializes_lapack, why_not_replaced
from export_core.policy import load_check
from export_core.policy.terms import Terms
from export_core.readers.cell import FOR_ONE_DEVICE
from export_core.releases import Calendar, ReleaseError
from export_core.releases.calendar_entries import calendar_entries
from export_core.releases.names import version_numbers
from export_core.releases.stable_targets import stable_targets

UNCHANGED, REWRITTEN = "unchanged", "rewritten"  # The third way is `EXPORTED_AGAIN`.

DOTS_CRASH = re.compile(r"(tensorflow|savedmodel)==2\.18\..*")
"""Releases that a dot with an algorithm crashes: five algorithms crashed 2.18.1; the one tried in 2.19.1 ran."""


class ModuleJob(msgspec.Struct, frozen=True):
    """The work on the modules of one artifact.

    `stablehlo` is the version to write. `shardy` is whether the reader parses Shardy's dialect. `replace` has the
    custom-call targets to replace, `platform` the platform whose lowering replaces them. `plain` is whether XLA's
    shardings are removed, which have no effect on one device.
    """

    modules: tuple[bytes, ...]
    stablehlo: str
    shardy: bool
    replace: tuple[str, ...] = ()
    platform: str = ""
    plain: bool = False


class RewrittenModules(msgspec.Struct, frozen=True):
    """The rewritten modules, the rewrites in words, and the jaxlib that did it (`by`); or why it was refused."""

    modules: tuple[bytes, ...] = ()
    rewrites: tuple[str, ...] = ()
    by: str = ""
    refused: str = ""


RewriteModules = Callable[[ModuleJob], RewrittenModules]
"""A function that does a `ModuleJob` with a jaxlib.

It may raise `ConversionRefused` or `InfrastructureFault`.
"""


@dataclass(frozen=True)
class Converted:
    """An artifact that a reader takes, and how it was made.

    `way` is how: unchanged, rewritten, or exported again. `why` is the reason, and `rewrites` says what was rewritten.
    `module_by` is the jaxlib that rewrote the modules, empty if they are the original's. `replaced` has the custom-call
    targets that were replaced.
    """

    artifact: Artifact
    reader: Reader
    way: str
    why: str
    rewrites: tuple[str, ...] = ()
    module_by: str = ""
    replaced: tuple[str, ...] = ()

    def origin(self, original: str) -> ConvertedFrom:
        """Return what a golden or a record states about this conversion; `original` is the original's SHA-256."""
        tool = f"pytest-jaxexport {version('pytest-jaxexport')}"
        return ConvertedFrom(original, self.reader.release.name, self.way, self.rewrites, tool, self.module_by)


def find_reader(name: str, calendar: Calendar) -> Reader:
    """Return the reader that `--for` names: a version of jaxlib, or a release of another runtime.

    Raises `ReleaseError` if there is no such release.
    """
    try:
        return load_check.find_reader(name, Terms(calendar_entries(calendar)), calendar)
    except ReleaseError as error:
        raise ReleaseError(f"--for: {error}") from None


def convert(
    artifact: Artifact,
    reader: Reader,
    rewrite_modules: RewriteModules,
    *,
    replace_custom_calls: bool = False,
    allow: Mapping[str, str] = {},
) -> Converted:
    """Convert an artifact or a bare module for a reader, and check the result.

    The envelope is rewritten, and the modules only if the reader does not take them as they are.

    Args:
        artifact: The original.
        reader: The reader to convert it for.
        rewrite_modules: Called if a module has to be rewritten, which needs a jaxlib.
        replace_custom_calls: Whether custom calls that the reader does not take are replaced.
        allow: Custom-call targets that the project accepts, each with its reason.

    Raises:
        ConversionRefused: No artifact that the reader takes can be made of the original.
        InfrastructureFault: What rewrites modules could not be started: it is not known whether one can be made.
        ArtifactError: The original cannot be read.
    """
    envelope, title = artifact.envelope, reader.release.title
    calls = _calls_to_replace(artifact, reader, allow, replace_custom_calls=replace_custom_calls)
    known = forecast(artifact, reader)
    load = known.load
    in_the_way = shardings_in_the_way(artifact, reader)
    if load.ok and not calls and not in_the_way and not _misses_shardings(envelope, reader):
        reasons = "; ".join(map(str, known.spoiled.reasons))
        fails = f", and {known.in_words}: {reasons}" if known.spoiled.answer == NO else ""
        return Converted(artifact, reader, UNCHANGED, f"{title} takes the original{fails}")
    plain = has_removable_shardings(artifact, reader)  # A module that is rewritten loses them anyway.
    try:
        done = RewrittenModules(tuple(module.serialized() for module in artifact.modules))
        if calls or plain or any(any(module_problems(module, needs(module), reader)) for module in artifact.modules):
            done = rewrite_modules(_job(reader, done.modules, tuple(calls), plain=plain))
        data, outside = rewrite_envelope(artifact, reader, done.modules) if envelope else (done.modules[0], ())
        converted = read_bytes(data, f"{artifact.name} for {title}")
        check_converted(artifact, converted, reader, allow)
    except ConversionRefused as refused:
        other_way = _other_way(load, reader, has_calls=bool(calls))
        problem = f"{artifact.name}: not converted for {title}: {refused.message().rstrip('.')}.{other_way}"
        raise ConversionRefused(problem) from None
    except InfrastructureFault as fault:
        raise type(fault)(f"{artifact.name}: not converted for {title}: {fault.message()}") from None
    why = "; ".join((*_reasons(load), *calls)) or f"{title} would {'not run' if plain else 'miss'} its shardings"
    return Converted(converted, reader, REWRITTEN, why, (*outside, *done.rewrites), done.by, tuple(calls))


def _calls_to_replace(
    artifact: Artifact, reader: Reader, allow: Mapping[str, str], *, replace_custom_calls: bool
) -> dict[str, str]:
    """Return the custom-call targets that the reader does not take, each with the reason.

    Raises `ConversionRefused` for what no conversion can change: parts that are not known, several devices, and what
    crashes the reader. Custom calls are refused too unless `replace_custom_calls` is true.
    """
    refusal, release = f"{artifact.name}: not converted", reader.release
    if not_read := _parts_not_read(artifact, allow):
        raise ConversionRefused(f"{refusal}: {' '.join(not_read)}")
    refusal += f" for {release.title}"
    if release.runtime and artifact.devices > 1:
        raise ConversionRefused(
            f"{refusal}: the artifact is for {artifact.devices} devices, and {release.title} is called with one. "
            f"{FOR_ONE_DEVICE}"
        )
    if DOTS_CRASH.fullmatch(release.runtime) and any(module.has_dot_algorithms for module in artifact.modules):
        raise ConversionRefused(
            f"{refusal}: a dot with an algorithm crashes {release.title} by signal 11, which 2.19 fixed. Export with "
            "`precision=` in place of `jax.lax.DotAlgorithmPreset`, or use 2.19 or later."
        )
    calls = calls_not_taken(artifact, reader, allow)
    if calls and not replace_custom_calls:
        why = f"{only_jax(calls)}." if release.runtime else " ".join(calls.values())
        raise ConversionRefused(f"{refusal}: {why}{_about_replacing(calls, reader)}")
    if why := why_not_replaced(calls, release):
        raise ConversionRefused(f"{refusal}: {why}.")
    return calls


def _about_replacing(calls: Iterable[str], reader: Reader) -> str:
    """Return what `--replace-custom-calls` would do with these calls; empty if it replaces none of them."""
    of_lapack = [target for target in calls if target.startswith(LAPACK)]
    if not of_lapack:
        return ""
    if why := why_not_replaced(of_lapack, reader.release):
        return f" --replace-custom-calls does not help: {why}."
    if not reader.release.runtime or reader.release.family in WITH_XLA:
        return " --replace-custom-calls replaces those of LAPACK."
    return f" --replace-custom-calls seldom helps: {reader.release.title} lacks most of what replaces those of LAPACK."


def _misses_shardings(envelope: Envelope | None, reader: Reader) -> bool:
    """Return whether the reader needs shardings in XLA's form, and the artifact has only named ones.

    Such a reader would load the artifact without its shardings.
    """
    if envelope is None or not reader.release.jax or format_of(reader.release.jax) >= NAMED_SHARDINGS:
        return False
    named = [sharding for sharding in shardings_of(envelope) if isinstance(sharding, NamedSharding)]
    return any(sharding.hlo_sharding_proto is None for sharding in named)


def _job(reader: Reader, modules: tuple[bytes, ...], calls: tuple[str, ...], *, plain: bool) -> ModuleJob:
    """Return what has to be done to the modules of an artifact so that a reader takes them.

    Raises `ConversionRefused` if the reader's StableHLO version is not known.
    """
    if reader.stablehlo is None:
        raise ConversionRefused(f"the StableHLO version of {reader.release.title} is not known")
    # Readers that do not initialize LAPACK get what XLA expands itself, which is how jax lowers for TPUs.
    platform = "cpu" if initializes_lapack(reader.release) else "tpu"
    stablehlo = ".".join(map(str, (*version_numbers(reader.stablehlo), 0)[:3]))  # IREE's is known as 1.12
    return ModuleJob(modules, stablehlo, reader.knows_shardy and not plain, calls, platform, plain)


def _other_way(load: LoadResult, reader: Reader, *, has_calls: bool) -> str:
    """Return advice for a refused conversion: JAX's own bypass, or another export; empty if neither helps.

    `has_calls` is whether custom calls would have to be replaced.
    """
    advice = [reason.partition(CONVERT)[0].rpartition(": ")[2] for reason in load.reasons]
    exports = [text for text in advice if text.startswith("export ")]
    if reader.release.runtime and exports and not has_calls:  # else the calls are in the way of such an export, too
        return f" Instead, {' and '.join(exports)}."
    if any("expired" in reason for reason in load.reasons):
        return (
            " JAX's own bypass, JAX_EXPORT_DESERIALIZE_EXPIRED_VERSIONS=1 in the environment of the reader "
            "(jax 0.11.1 and later), reads expired formats. It does not cover XLA's shardings from jax 0.12.0 on, "
            "nor custom calls that are gone."
        )
    return ""


def _reasons(load: LoadResult) -> list[str]:
    """Return why a reader refuses an artifact, without the advice on how to export for that reader."""
    return [without_advice(reason) for reason in load.reasons]


def check_converted(original: Artifact, converted: Artifact, reader: Reader, allow: Mapping[str, str]) -> None:
    """Check that the reader takes a converted artifact, and that its arguments and results are unchanged.

    Raises `ConversionRefused` otherwise.
    """
    if _signature(original) != _signature(converted):
        raise ConversionRefused("the converted artifact has other arguments or results than the original")
    load = forecast(converted, reader).load
    problems = [
        *_reasons(load),
        *calls_not_taken(converted, reader, allow).values(),
        *_parts_not_read(converted, allow),
    ]
    if not load.ok or problems:
        raise ConversionRefused("; ".join(problems) or "it is not known whether the reader takes it")
    if new := [text for text in check_main(converted) if text not in check_main(original)]:
        raise ConversionRefused(f"the converted artifact's module does not match its envelope: {' '.join(new)}")


def _signature(artifact: Artifact) -> list[object]:
    """Return the trees, dtypes and ranks of arguments and results; of a bare module, the types of its main.

    Symbolic dimensions are not compared, since their text may differ by release.
    """
    envelope = artifact.envelope
    if envelope is None:
        main = artifact.module.main
        return [main.inputs, main.outputs] if main else []
    avals = [(aval.dtype, len(aval.shape)) for aval in (*envelope.in_avals, *envelope.out_avals)]
    return [envelope.in_tree, envelope.out_tree, envelope.platforms, envelope.vjp_order, avals]


def calls_not_taken(artifact: Artifact, reader: Reader, allow: Mapping[str, str]) -> dict[str, str]:
    """Return each custom-call target that the reader does not take, with the reason.

    A reader takes a target if the release promises it or the project allows it. A call for the CPU that crashes the
    reader is not taken either.

    Raises `ArtifactError` for a module that cannot be read.
    """
    release = reader.release
    if release.runtime:
        return {target: f"{only_jax([target])}." for target in calls_of_jax(artifact) if target not in allow}
    promised = stable_targets(release.jax)
    findings = judge_calls(artifact.custom_calls, promised, None, allow, f"jaxlib {release.jaxlib}")
    problems = {finding.target: finding.message for finding in findings if not finding.ok}
    envelope = artifact.envelope
    runs_on_cpu = (
        envelope is None
        or "cpu" in envelope.platforms
        or any(check.kind == "platform" for check in envelope.disabled_checks)
    )
    if runs_on_cpu and not initializes_lapack(release):
        for target in (call.target for call in artifact.custom_calls):
            if target.startswith(LAPACK) and belongs(target, "cpu"):
                problems[target] = (
                    f"{target} crashes jaxlib {release.jaxlib} by signal 11 if jax has not called linear algebra "
                    f"before, which jaxlib {'.'.join(map(str, INITIALIZED_SINCE))} fixed "
                    "(https://github.com/jax-ml/jax/issues/29610)."
                )
    return problems


def _parts_not_read(artifact: Artifact, allow: Mapping[str, str]) -> list[str]:
    """Return a sentence for each part of an artifact that is not known here, and so cannot be rewritten."""
    return [finding.message for finding in unread_findings(artifact, allow) if not finding.ok]

"""The audit of an artifact: whether it is read whole, and whether each custom-call target is allowed.

A target is allowed by the writer's list of stable targets, or by the policy. Here are also the kinds of custom calls,
and what to expect on each platform. A function that takes an artifact raises `ArtifactError` if a module of it cannot
be read.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterable, Mapping, Set

from export_core.artifact.artifact import Artifact
from export_core.artifact.bytecode.module import CustomCall
from export_core.artifact.bytecode.sections import MAGIC, Tables
from export_core.artifact.bytecode.values import Values
from export_core.artifact.errors import ArtifactError
from export_core.artifact.unread import Unread
from export_core.base.named_tuple import TYPE_CHECKING, NamedTuple
from export_core.base.platforms import PLATFORMS
from export_core.releases.stable_targets import stable_targets

if TYPE_CHECKING:
    from typing import Any


STABLE = "stable"  # listed by the writer's release, and by the reader's if there is a reader to consider
ALLOWED = "allowed"  # not listed, and the policy allows it with a reason
DROPPED = "dropped"  # listed by the writer's release, gone in the reader's
UNLISTED = "unlisted"  # the writer's release promised nothing; or it is not known, and the reader promises nothing
UNCHECKED = "unchecked"  # the writer's release is not known; the reader's, if there is one to consider, lists it
SERIALIZER = "serializer"  # written by jaxlib's own serializer, after jax.export had checked its list
DISABLED = "disabled check"  # not a call: a check that the exporter switched off

MAX_PLACES = 20

# What jaxlib's serializer writes itself. Shardy, for readers that do not know its dialect (all targets in the libraries
# of jaxlib 0.6.2 to 0.12.0.1 that start with xla.sdy.); and until 0.8 some CHLO operations, which XLA reads back: no
# function is looked up by these names. Seen in artifacts of 0.4.30, 0.6.2 and 0.8.1, gone in 0.9.2 (composites).
_SHARDY = {
    *("xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"),
    *("xla.sdy.PropagationBarrier", "xla.sdy.ShardingGroup"),
}
_CHLO = {f"mhlo.{name}" for name in ["acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan", "topk"]}


class AuditFinding(NamedTuple):
    """A finding of the audit about a custom-call target, a disabled check, or an unknown part of the file."""

    target: str  # The custom-call target, the target or kind of a disabled check, or the name of the unknown part.
    standing: str
    """stable, allowed, dropped, unlisted, unchecked, serializer or disabled check; of a part of the file unknown,
    foreign or conflict."""
    ok: bool
    """Whether the audit accepts it: false for an unlisted, unchecked or dropped target that no policy allows."""
    what: str  # The kind of the custom call or of the unknown part, in words.
    payload_version: int | None  # The version of the call's payload, null if it has none.
    count: int  # type: ignore[assignment]  # hides tuple.count, which nothing calls
    """The number of calls of the target; 0 for a disabled check or an unknown part."""
    where: tuple[str, ...]  # Functions and locations of the first 20 calls.
    message: str  # What the audit says about it, as a sentence.
    advice: str = ""  # What to do; empty if there is nothing to do.

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".rstrip()


def audit(
    artifact: Artifact,
    writer_stable: Set[str] | None,
    reader_stable: Set[str] | None = None,
    allow: Mapping[str, str] | None = None,
    writer: str = "the writer's release",
    reader: str = "the reader's release",
) -> tuple[AuditFinding, ...]:
    """Judge an artifact: first its unknown parts, then every custom-call target by name, then its disabled checks.

    This alone decides whether an artifact may be stored, compiled and run. `unread_findings` judges the unknown parts,
    `judge_calls` the custom-call targets.

    Args:
        artifact: an artifact, which is judged with its nested VJPs.
        writer_stable: the targets that the writer's release guarantees; None if the writer is not known.
        reader_stable: the targets that the reader's release guarantees; None if there is no reader to consider.
        allow: the targets that the policy allows, with their reasons. If the reader's release dropped one of these
            targets, it is accepted, and still reported as dropped.
        writer: the name of the writer in messages.
        reader: the name of the reader in messages.
    """
    bare = artifact.envelope is None
    checks = () if artifact.envelope is None else artifact.envelope.disabled_checks
    shown = "The exporter switched off the check {}; the audit does not rely on this check."
    safety = Payload("safety check")
    return (
        *unread_findings(artifact, allow or {}),
        *judge_calls(artifact.custom_calls, writer_stable, reader_stable, allow, writer, reader, bare=bare),
        *(AuditFinding(c.target or c.kind, DISABLED, True, *safety, 0, (), shown.format(c)) for c in checks),
    )


def unread_findings(artifact: Artifact, allow: Mapping[str, str]) -> tuple[AuditFinding, ...]:
    """Return an audit finding for each part of an artifact that our reader does not know.

    A part that `allow` names with a reason is accepted, unless parts of its kind may never be allowed. The finding for
    any other part is not `ok`, so that the artifact is refused.
    """
    by_part: dict[Unread, list[str]] = {}
    for place, part in artifact.unread:
        by_part.setdefault(part, []).append(place)
    findings = []
    for part, places in by_part.items():
        reason = allow.get(part.name) if part.can_be_allowed else None
        advice = "jax.export writes no such artifact: do not run it, and export the function again."
        if reason is not None:
            advice = f"Allowed: {reason}"
        elif part.can_be_allowed:
            advice = (
                "If a newer release wrote it, update pytest-jaxexport, or allow it with a reason: "
                f"`allow: {{{part.name}: why it may be run}}`. Otherwise do not run it."
            )
        message = f"{part.name} ({part.kind}) {part.why}; found in {places[0]}."
        what = part.name, part.standing, reason is not None, *Payload(part.kind)
        findings.append(AuditFinding(*what, 0, tuple(places[:MAX_PLACES]), message, advice))
    return tuple(findings)


def judge_calls(
    calls: Iterable[CustomCall],
    writer_stable: Set[str] | None,
    reader_stable: Set[str] | None = None,
    allow: Mapping[str, str] | None = None,
    writer: str = "the writer's release",
    reader: str = "the reader's release",
    *,
    bare: bool = False,
) -> tuple[AuditFinding, ...]:
    """Return an audit finding for each target of the custom calls `calls`.

    If `bare` is true, jax.export did not write the module of the calls, and the lists of stable targets guarantee
    nothing. The other arguments are as in `audit`.
    """
    reasons = allow or {}

    def judge(target: str, name: str, place: str) -> tuple[str, bool, str, str]:
        """Return the standing of a target (such as stable), whether it is acceptable, the message and the advice."""
        listed = all(target in stable for stable in (writer_stable, reader_stable) if stable is not None)
        if listed and writer_stable is not None:
            of_a_bare_module = "listed as stable, which counts for artifacts of jax.export only"
            return STABLE, True, f"{name} is {of_a_bare_module if bare else 'guaranteed stable'}.", ""
        # Before `allow`: a reader that dropped a promised target is reported even if the policy accepts it.
        if writer_stable is not None and target in writer_stable:
            message = f"{name} was guaranteed by {writer}, and {reader} no longer guarantees it; called in {place}."
            if target in reasons:
                return DROPPED, True, message, f"Allowed: {reasons[target]}"
            advice = f"Export the function again with a release that {reader} can read, or test exactly this pair."
            return DROPPED, False, message, advice
        if target in _SHARDY or target in _CHLO:
            message = f"{name} is written by jaxlib's own serializer, and read back by XLA itself."
            return SERIALIZER, True, message, ""
        if target in reasons:
            return ALLOWED, True, f"{name} is guaranteed by no release; allowed: {reasons[target]}", ""
        if listed:  # by the reader alone, whose list says nothing of a writer
            message = f"{name} was not checked, since its writer is not known; called in {place}."
            return UNCHECKED, False, message, "Name the release that wrote it."
        release = writer if writer_stable is not None else reader
        allowing = f"`allow: {{{target}: why its behaviour is pinned}}`"
        advice = f"Avoid it when exporting, or allow it with a reason: {allowing}."
        return UNLISTED, False, f"{name} is not guaranteed stable by {release}; called in {place}.", advice

    by_target: dict[str, list[CustomCall]] = {}
    for call in calls:
        by_target.setdefault(call.target, []).append(call)
    findings = []
    for target, group in sorted(by_target.items()):
        payload = describe(group[0])
        places = tuple(dict.fromkeys(call.where for call in group))[:MAX_PLACES]
        standing, ok, *text = judge(target, f"{target} ({payload})", places[0])
        number = sum(call.count for call in group)
        findings.append(AuditFinding(target, standing, ok, *payload, number, places, *text))
    return tuple(findings)


LAPACK = ("lapack_", "blas_")  # how the targets of calls of LAPACK on a CPU begin

_PREFIXES = {
    "cpu": LAPACK,
    "cuda": ("cusolver_", "cusparse_", "cublas_", "cudnn_", "cu_", "__cu", "__gpu$", "mosaic_gpu"),
    "rocm": ("hipsolver_", "hipsparse_", "hipblas_", "hip_", "__hip", "__gpu$"),
    "tpu": ("tpu_custom_call",),
}
# Targets of the TPU compiler, which have no prefix. ApproxTopK is none of them: XLA replaces it by a sort elsewhere.
_TPU = frozenset({"Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors", "Qr"})


class Foreseen(NamedTuple):
    """The forecast of what an artifact does on one platform in one release."""

    platform: str  # The platform, one of `PLATFORMS`.
    exported: bool  # Whether the artifact was exported for that platform.
    targets: tuple[str, ...]  # The custom-call targets of this platform, or of no particular one, that it calls.
    unpromised: tuple[str, ...]  # Those of `targets` that the release does not promise.
    note: str  # The forecast in words.


def foreseen(
    artifact: Artifact, platform: str, promised: Set[str], reader: str, *, of_known_writer: bool = True
) -> Foreseen:
    """Foresee what an artifact does in a reader on a platform, one of `PLATFORMS`.

    `promised` are the custom-call targets that the reader promises, and `reader` is the name of the reader in the note.
    If the writer is not known, for example because the artifact was changed after its export, the note says that these
    targets are listed, not that they are promised.
    """
    envelope = artifact.envelope
    platforms = PLATFORMS if envelope is None else envelope.platforms
    # With jax's check of platforms off, jax runs it anywhere, as its first platform.
    lifted = envelope is not None and any(check.kind == "platform" for check in envelope.disabled_checks)
    called = {call.target for call in artifact.custom_calls}
    targets = tuple(sorted(target for target in called if belongs(target, platform)))
    calls = [call for call in artifact.custom_calls if call.target in targets]
    unpromised = tuple(finding.target for finding in judge_calls(calls, promised) if not finding.ok)
    exported = platform in platforms
    also = "" if exported else "not exported for it, and the check is off; "
    if not exported and not lifted:
        note = f"refused: it was exported for {', '.join(platforms)}"
    elif artifact.unread:
        note = f"{also}not known: parts of it are not read"
    elif unpromised:
        note = f"{also}calls {', '.join(unpromised)}, which {reader} does not promise to have"
    elif targets:
        promise = "promised by" if envelope is not None and of_known_writer else "on the stable list of"
        note = f"{also}calls {', '.join(targets)}, all {promise} {reader}"
    else:
        note = f"{also}makes no custom call"
    return Foreseen(platform, exported, targets, unpromised, note)


def foreseen_everywhere(
    artifact: Artifact, reader: str | None, *, of_known_writer: bool = True
) -> tuple[Foreseen, ...]:
    """Foresee what an artifact does on each platform in one jaxlib, by that release's list of stable targets.

    `reader` is the version of that jaxlib; if it is None, the result is empty. `of_known_writer` is as in `foreseen`.
    """
    if reader is None:
        return ()
    stable, name = stable_targets(reader), f"jaxlib {reader}"
    return tuple(foreseen(artifact, place, stable, name, of_known_writer=of_known_writer) for place in PLATFORMS)


def belongs(target: str, platform: str) -> bool:
    """Return whether a custom-call target may be called on a platform, since it belongs to this or to no platform."""
    owners = {name for name, prefixes in _PREFIXES.items() if target.startswith(prefixes)}
    owners |= {"tpu"} if target in _TPU else set()
    return not owners or platform in owners


def looked_up(artifact: Artifact, platform: str) -> frozenset[str]:
    """Return the custom-call targets that XLA looks up by name on a platform.

    Targets that jaxlib's serializer writes are left out, since XLA itself reads them back.
    """
    targets = {call.target for call in artifact.custom_calls}
    return frozenset(target for target in targets - _SHARDY - _CHLO if belongs(target, platform))


WITH_XLA = ("tensorflow", "savedmodel", "pjrt")
"""Runtimes that compile by XLA: it removes shardings for one device, and expands what jax lowers for TPUs."""


def only_jax(targets: Iterable[str]) -> str:
    """Return why only jaxlib can compile the custom calls `targets`, which `calls_of_jax` returned, and what to do."""
    named = list(targets)
    kinds = {"Python callbacks" if "callback" in target else "LAPACK" for target in named}
    none = " or ".join(sorted(kinds))  # Not by jax.lax: jax.lax.linalg calls LAPACK, too.
    return f"only jax registers {', '.join(named)}; compute with operations that need no {none}"


def calls_of_jax(artifact: Artifact) -> tuple[str, ...]:
    """Return the custom-call targets of an artifact that only jax registers on CPU: LAPACK and Python callbacks.

    No other runtime can compile them.
    """
    return targets_of_jax(call.target for call in artifact.custom_calls)


def targets_of_jax(targets: Iterable[str]) -> tuple[str, ...]:
    """Return the custom-call targets among `targets` that only jax registers on CPU, sorted."""
    return tuple(sorted({x for x in targets if x.startswith(_PREFIXES["cpu"]) or "cpu_callback" in x}))


_DEVICE_PREFIXES = tuple(start for name, starts in _PREFIXES.items() if name != "cpu" for start in starts)
OF_DEVICES = "only the plugin of a GPU or a TPU has {}"


def calls_of_devices(artifact: Artifact) -> tuple[str, ...]:
    """Return the custom-call targets of an artifact that are kernels of a GPU or a TPU.

    No runtime for a CPU has them.
    """
    return tuple(sorted({call.target for call in artifact.custom_calls if call.target.startswith(_DEVICE_PREFIXES)}))


MAX_PAYLOAD = 64 << 20  # bytes of a payload that is decoded to find its version
MAX_ATTRIBUTES = 4096  # of such a payload, that are looked at

_STARTS = (
    ("lapack_", "LAPACK routine"), ("blas_", "BLAS routine"), ("cusolver_", "cuSOLVER routine"),
    ("cusparse_", "cuSPARSE routine"), ("cublas_", "cuBLAS routine"), ("hipsolver_", "hipSOLVER routine"),
    ("hipblas_", "hipBLAS routine"), ("cu_", "CUDA kernel of jaxlib"), ("hip_", "ROCm kernel of jaxlib"),
    ("__cudnn$", "cuDNN call"), ("__cublas$", "cuBLAS call"),
    (("__gpu$xla.gpu.triton", "triton_kernel_call"), "Triton kernel"),
    ("tpu_custom_call", "Mosaic TPU kernel (Pallas)"), ("mosaic_gpu", "Mosaic GPU kernel (Pallas)"),
    ("tf.call_tf_function", "TensorFlow function"), ("stablehlo.", "StableHLO extension"),
    ("shape_assertion", "check of a symbolic shape"), (("Sharding", "xla.sdy.", "SPMD"), "sharding annotation"),
    ("mhlo.", "CHLO operation"), ("AllocateBuffer", "uninitialized buffer"),
    ("annotate_device_placement", "memory placement annotation"),
)  # fmt: skip
_WORDS = (("callback", "Python callback"), ("ragged_all_to_all", "collective"), ("nccl", "collective"))


class Payload(NamedTuple):
    """The kind of a custom call in words, with the version of its payload's own format."""

    kind: str  # The kind, such as "LAPACK routine".
    version: int | None = None  # The version of Mosaic in its payload; None if the call is not of Mosaic.

    def __str__(self) -> str:
        return self.kind if self.version is None else f"{self.kind}, payload version {self.version}"


def describe(call: CustomCall) -> Payload:
    """Return the kind of a custom call, such as "Python callback", and the version of its payload.

    The call is not run, and the pointer of a callback is not followed.
    """
    kinds = [words for start, words in _STARTS if call.target.startswith(start)]
    kind = next(iter(kinds + [words for word, words in _WORDS if word in call.target]), "custom call")
    version = _mosaic_version(call.backend_config) if kind.startswith("Mosaic") else None
    return Payload(kind, version)


def _mosaic_version(config: Any) -> int | None:
    """Return the Mosaic version that the MLIR module in a custom call's configuration names; None if none is found."""
    # Mosaic for GPUs is a typed FFI call with the module among its arguments; Mosaic for TPUs has JSON with base64.
    body: Any = None
    try:
        if isinstance(config, dict):
            body = config.get("module", config.get("body"))
        elif isinstance(config, (str, bytes)) and config[:1] in ("{", b"{") and len(config) <= MAX_PAYLOAD:
            body = json.loads(config)["custom_call_config"]["body"]
        if isinstance(body, str):
            is_module = body.startswith("ML")
            body = body.encode("utf-8", "surrogateescape") if is_module else binascii.a2b_base64(body, strict_mode=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(body, bytes) or body[:4] != MAGIC or len(body) > MAX_PAYLOAD:
        return None
    try:
        values = Values(Tables(body, 0, len(body), "the payload"))
        for index in range(min(len(values.tables.attributes), MAX_ATTRIBUTES)):
            dialect, code, _ = values.attribute_entry(index)
            if (dialect, code) == ("builtin", 1):
                for name, value in values.attribute(index).items():
                    if "mosaic" in name and name.endswith(".version") and isinstance(value, int):
                        return value
    except ArtifactError:  # the payload is not checked here: without a version it is still the same kind of call
        return None
    return None

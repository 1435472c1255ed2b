"""The audit of an artifact: is it read whole, and is each custom-call target on the writer's list or the policy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact.payloads import Payload, describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from export_core.artifact.artifact import Artifact
    from export_core.artifact.bytecode.parts import CustomCall
    from export_core.artifact.envelope.fields import DisabledCheck
    from export_core.artifact.unread import Unread

STABLE = "stable"  # listed by the writer's and by the reader's release, or by all that are known
ALLOWED = "allowed"  # not listed, and the policy allows it with a reason
DROPPED = "dropped"  # listed by the writer's release, gone in the reader's
UNLISTED = "unlisted"  # the writer's release promised nothing
SERIALIZER = "serializer"  # written by jaxlib's own serializer, after jax.export had checked its list
DISABLED = "disabled check"  # not a call: a check that the exporter switched off

MAX_PLACES = 20

# What jaxlib's serializer writes itself. Shardy, for readers that do not know its dialect (all targets in the libraries
# of jaxlib 0.6.2 to 0.12.0.1 that start with xla.sdy.); and until 0.8 some CHLO operations, which XLA reads back: no
# function is looked up by these names. Seen in artifacts of 0.4.30, 0.6.2 and 0.8.1, gone in 0.9.2 (composites).
_SHARDY = frozenset(
    f"xla.sdy.{name}"
    for name in (
        "FuncResultSharding",
        "GlobalToLocalShape",
        "LocalToGlobalShape",
        "PropagationBarrier",
        "ShardingGroup",
    )
)
_CHLO = frozenset(
    f"mhlo.{name}" for name in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan", "topk")
)


class AuditFinding(NamedTuple):
    """A custom-call target, or with a count of 0 a part of the artifact that this reader does not know."""

    target: str
    """The target."""
    standing: str
    """Its standing in the lists of the possible writers."""
    ok: bool
    """Whether the audit accepts it: not where it is unlisted or dropped."""
    what: str
    """What its payload is."""
    payload_version: int | None
    """The version of that payload, null where it has none."""
    count: int  # type: ignore[assignment]  # hides tuple.count, which nothing calls
    """How many calls."""
    where: tuple[str, ...]
    """Functions and locations of the first 20 calls."""
    message: str
    """What is wrong with it; empty for nothing."""
    advice: str = ""
    """What to do; empty for nothing."""

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
    """Judge an artifact: parts that are not known, every custom-call target by name, then disabled checks.

    This is the one decision whether an artifact may be stored, compiled and run. `unread_findings` is its first part,
    `judge_calls` its second.

    Args:
        artifact: what was read; its nested VJPs count.
        writer_stable: targets that the writer's release guarantees; None where the writer is not known.
        reader_stable: targets that the reader's release guarantees; None where there is no reader to consider.
        allow: the policy's own targets with their reasons; an allowed one is fine, and still reported as dropped or
            unlisted.
        writer: what to call the writer in messages.
        reader: what to call the reader in messages.

    Raises:
        ArtifactError: a module cannot be read.
    """
    bare = artifact.envelope is None
    checks = () if artifact.envelope is None else artifact.envelope.disabled_checks
    return (
        *unread_findings(artifact, allow or {}),
        *judge_calls(artifact.custom_calls, writer_stable, reader_stable, allow, writer, reader, bare=bare),
        *map(_disabled, checks),
    )


def unread_findings(artifact: Artifact, allow: Mapping[str, str]) -> tuple[AuditFinding, ...]:
    """Return a finding for each part of an artifact that this reader does not know. One that is not ok stops it.

    Raises:
        ArtifactError: a module cannot be read.
    """
    places: dict[Unread, list[str]] = {}
    for place, part in artifact.unread:
        places.setdefault(part, []).append(place)
    return tuple(_unread(part, found, allow) for part, found in places.items())


def _unread(part: Unread, places: list[str], allow: Mapping[str, str]) -> AuditFinding:
    payload = Payload(part.kind)
    message = f"{part.name} ({payload}) {part.why}; found in {places[0]}."
    reason = allow.get(part.name) if part.can_be_allowed else None
    if reason is not None:
        advice = f"Allowed: {reason}"
    elif part.can_be_allowed:
        advice = (
            "If a newer release wrote it, update pytest-jaxexport, or allow it with a reason: "
            f"`allow: {{{part.name}: why it may be run}}`. Otherwise do not run it."
        )
    else:
        advice = "jax.export writes no such artifact: do not run it, and export the function again."
    return AuditFinding(
        part.name, part.standing, reason is not None, *payload, 0, tuple(places[:MAX_PLACES]), message, advice
    )


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
    """Judge custom-call targets alone, as `audit` does. It does not show whether these are all that an artifact has.

    `bare`: they are of a module that jax.export has not written, for which the lists are no guarantee.
    """
    lists = _Lists(writer_stable, reader_stable, allow or {}, writer, reader, bare)
    by_target: dict[str, list[CustomCall]] = {}
    for call in calls:
        by_target.setdefault(call.target, []).append(call)
    return tuple(_finding(target, group, lists) for target, group in sorted(by_target.items()))


def _finding(target: str, calls: list[CustomCall], lists: _Lists) -> AuditFinding:
    payload = describe(calls[0])
    places = tuple(dict.fromkeys(call.where for call in calls))[:MAX_PLACES]
    standing, ok, message, advice = lists.judge(target, f"{target} ({payload})", places[0])
    return AuditFinding(target, standing, ok, *payload, sum(call.count for call in calls), places, message, advice)


class _Lists(NamedTuple):
    """What targets are checked against, and what to call the releases in messages."""

    writer_stable: Set[str] | None
    reader_stable: Set[str] | None
    allow: Mapping[str, str]
    writer: str
    reader: str
    bare: bool

    def judge(self, target: str, name: str, place: str) -> tuple[str, bool, str, str]:
        """Return the standing of a target, whether that is acceptable, the message and the advice."""
        known = [stable for stable in (self.writer_stable, self.reader_stable) if stable is not None]
        if known and all(target in stable for stable in known):
            of_a_bare_module = "listed as stable, which counts for artifacts of jax.export only"
            return STABLE, True, f"{name} is {of_a_bare_module if self.bare else 'guaranteed stable'}.", ""
        # Before `allow`: a reader that dropped a promised target is reported even if the policy accepts it.
        if self.writer_stable is not None and target in self.writer_stable:
            message = (
                f"{name} was guaranteed by {self.writer}, and {self.reader} no longer guarantees it; called in {place}."
            )
            if target in self.allow:
                return DROPPED, True, message, f"Allowed: {self.allow[target]}"
            advice = f"Export it again with a release that {self.reader} can read, or test exactly this pair."
            return DROPPED, False, message, advice
        if target in _SHARDY or target in _CHLO:
            message = f"{name} is written by jaxlib's own serializer, and read back by XLA itself."
            return SERIALIZER, True, message, ""
        if target in self.allow:
            return ALLOWED, True, f"{name} is guaranteed by no release; allowed: {self.allow[target]}", ""
        if not known:
            message = f"{name} was checked against no list; called in {place}."
            return UNLISTED, False, message, "Name the release that wrote it."
        release = self.writer if self.writer_stable is not None else self.reader
        advice = (
            f"Avoid it when exporting, or allow it with a reason: `allow: {{{target}: why its behaviour is pinned}}`."
        )
        return UNLISTED, False, f"{name} is not guaranteed stable by {release}; called in {place}.", advice


def _disabled(check: DisabledCheck) -> AuditFinding:
    message = f"The exporter switched off the check {check}; it is shown here and not trusted."
    return AuditFinding(check.target or check.kind, DISABLED, True, *Payload("safety check"), 0, (), message)

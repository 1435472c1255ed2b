"""The audit of custom calls: each target against the writer's list, the reader's and the policy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from export_core.artifact.payloads import Payload, describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from export_core.artifact.bytecode.parts import CustomCall
    from export_core.artifact.envelope.fields import DisabledCheck

STABLE = "stable"  # listed by the writer's and by the reader's release, or by all that are known
ALLOWED = "allowed"  # not listed, and the policy allows it with a reason
DROPPED = "dropped"  # listed by the writer's release, gone in the reader's
UNLISTED = "unlisted"  # the writer's release promised nothing
SERIALIZER = "serializer"  # written by jaxlib's own serializer, after jax.export had checked its list
DISABLED = "disabled check"  # not a call: a check that the exporter switched off

MAX_PLACES = 20

# What jaxlib's serializer writes itself. Shardy, for readers that do not know its dialect; and until 0.8 some CHLO
# operations, which XLA reads back: no function is looked up by these names. Seen in artifacts of 0.4.30, 0.6.2 and
# 0.8.1, gone in 0.9.2 (composites).
_SHARDY = "xla.sdy."
_CHLO = frozenset(
    f"mhlo.{name}" for name in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan", "topk")
)


class AuditFinding(NamedTuple):
    """The result of the audit for one target: its standing, whether that is acceptable, its places, what to do.

    `ok` is False for unlisted and for dropped targets. `count` counts calls, `places` are the first 20 of their places.
    """

    target: str
    standing: str
    ok: bool
    payload: Payload
    count: int  # type: ignore[assignment]  # hides tuple.count, which nothing calls
    places: tuple[str, ...]
    message: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".rstrip()


def audit(
    calls: Iterable[CustomCall],
    writer_stable: Set[str] | None,
    reader_stable: Set[str] | None = None,
    allow: Mapping[str, str] | None = None,
    disabled_checks: Iterable[DisabledCheck] = (),
    writer: str = "the writer's release",
    reader: str = "the reader's release",
) -> tuple[AuditFinding, ...]:
    """Judge every custom-call target, in the order of their names; disabled checks follow.

    Args:
        calls: `Artifact.custom_calls`, nested VJPs included.
        writer_stable: targets that the writer's release guarantees; None where the writer is not known.
        reader_stable: targets that the reader's release guarantees; None where there is no reader to consider.
        allow: the policy's own targets with their reasons; an allowed one is fine, and still reported as dropped or
            unlisted.
        disabled_checks: what the exporter switched off: shown, never trusted.
        writer: what to call the writer in messages.
        reader: what to call the reader in messages.
    """
    lists = _Lists(writer_stable, reader_stable, allow or {}, writer, reader)
    by_target: dict[str, list[CustomCall]] = {}
    for call in calls:
        by_target.setdefault(call.target, []).append(call)
    findings = [_finding(target, group, lists) for target, group in sorted(by_target.items())]
    return (*findings, *map(_disabled, disabled_checks))


def _finding(target: str, calls: list[CustomCall], lists: _Lists) -> AuditFinding:
    payload = describe(calls[0])
    places = tuple(dict.fromkeys(call.where for call in calls))[:MAX_PLACES]
    standing, ok, message, advice = lists.judge(target, f"{target} ({payload})", places[0])
    return AuditFinding(target, standing, ok, payload, sum(call.count for call in calls), places, message, advice)


class _Lists(NamedTuple):
    """What targets are checked against, and what to call the releases in messages."""

    writer_stable: Set[str] | None
    reader_stable: Set[str] | None
    allow: Mapping[str, str]
    writer: str
    reader: str

    def judge(self, target: str, name: str, place: str) -> tuple[str, bool, str, str]:
        """Return the standing of a target, whether that is acceptable, the message and the advice."""
        known = [stable for stable in (self.writer_stable, self.reader_stable) if stable is not None]
        if known and all(target in stable for stable in known):
            return STABLE, True, f"{name} is guaranteed stable.", ""
        # Before `allow`: a reader that dropped a promised target is reported even if the policy accepts it.
        if self.writer_stable is not None and target in self.writer_stable:
            message = (
                f"{name} was guaranteed by {self.writer}, and {self.reader} no longer guarantees it; called in {place}."
            )
            if target in self.allow:
                return DROPPED, True, message, f"Allowed: {self.allow[target]}"
            advice = f"Export it again with a release that {self.reader} can read, or test exactly this pair."
            return DROPPED, False, message, advice
        if target.startswith(_SHARDY) or target in _CHLO:
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
    return AuditFinding(check.target or check.kind, DISABLED, True, Payload("safety check"), 0, (), message)

"""Which custom calls did somebody promise to keep? Each target in the writer's list, the reader's, the policy's."""

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

# What jaxlib's serializer writes itself. Shardy, for readers that do not know its dialect; and until 0.8 some CHLO operations, which XLA
# reads back: no function is looked up by these names. Seen in artifacts of 0.4.30, 0.6.2 and 0.8.1, gone in 0.9.2 (composites).
_SHARDY = "xla.sdy."
_CHLO = frozenset(
    f"mhlo.{name}" for name in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan", "topk")
)


class AuditFinding(NamedTuple):
    """What the audit says of one target: its standing, whether that is fine, where it is called and what to do.

    `ok` is False for unlisted and for dropped targets. `count` counts calls, `places` are the first 20 of their places.
    """

    target: str
    standing: str
    ok: bool
    payload: Payload
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of it
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
        reader_stable: targets that the reader's release guarantees; None where no reader is asked about.
        allow: the policy's own targets with their reasons; an allowed one is fine, and still said to be dropped or
        unlisted.
        disabled_checks: what the exporter switched off: shown, never trusted.
        writer: what to call the writer in messages.
        reader: what to call the reader in messages.
    """
    allow = allow or {}
    by_target: dict[str, list[CustomCall]] = {}
    for call in calls:
        by_target.setdefault(call.target, []).append(call)
    found = []
    for target, group in sorted(by_target.items()):
        payload = describe(group[0])
        count = sum(call.count for call in group)
        places = tuple(dict.fromkeys(call.where for call in group))[:MAX_PLACES]
        standing, ok, message, advice = _judge(
            target, payload, places, writer_stable, reader_stable, allow, writer, reader
        )
        found.append(AuditFinding(target, standing, ok, payload, count, places, message, advice))
    return (*found, *map(_disabled, disabled_checks))


def _judge(
    target: str,
    payload: Payload,
    places: tuple[str, ...],
    writer_stable: Set[str] | None,
    reader_stable: Set[str] | None,
    allow: Mapping[str, str],
    writer: str,
    reader: str,
) -> tuple[str, bool, str, str]:
    what = f"{target} ({payload})"
    lists = [stable for stable in (writer_stable, reader_stable) if stable is not None]
    if lists and all(target in stable for stable in lists):
        return STABLE, True, f"{what} is guaranteed stable.", ""
    if writer_stable is not None and target in writer_stable:
        advice = f"Export it again with a release that {reader} can read, or test exactly this pair."
        message = f"{what} was guaranteed by {writer}, and {reader} guarantees it no more; called in {places[0]}."
        if target in allow:
            return DROPPED, True, message, f"Allowed: {allow[target]}"
        return DROPPED, False, message, advice
    if target.startswith(_SHARDY) or target in _CHLO:
        return SERIALIZER, True, f"{what} is written by jaxlib's own serializer, and read back by XLA itself.", ""
    if target in allow:
        return ALLOWED, True, f"{what} is guaranteed by no release; allowed: {allow[target]}", ""
    if writer_stable is None and reader_stable is None:
        return (
            UNLISTED,
            False,
            f"{what} was compared with no list; called in {places[0]}.",
            "Name the release that wrote it.",
        )
    who = writer if writer_stable is not None else reader
    advice = f"Avoid it when exporting, or allow it with a reason: `allow: {{{target}: why its behaviour is pinned}}`."
    return UNLISTED, False, f"{what} is not guaranteed stable by {who}; called in {places[0]}.", advice


def _disabled(check: DisabledCheck) -> AuditFinding:
    message = f"Whoever exported it switched off the check {check}; that is shown and not trusted."
    return AuditFinding(check.target or check.kind, DISABLED, True, Payload("safety check"), 0, (), message)

"""What was let through on purpose, and why: allowed custom calls and safety checks that jax.export was told to leave out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from export_core.goldens import Manifest
from export_core.matrix.quirks import quirks_of, relaxation
from export_core.policy import Quirk


class Accepted(msgspec.Struct, frozen=True):
    """One thing with one reason, and the cases whose goldens have it."""

    what: str
    reason: str
    cases: tuple[str, ...]


def accepted_in(manifests: Iterable[Manifest], quirks: Sequence[Quirk] = ()) -> list[Accepted]:
    """Everything that these goldens were let through with, in order; `quirks` are the policy's."""
    return joined(_of(manifest, quirks_of(manifest, quirks)) for manifest in manifests)


def _of(manifest: Manifest, quirks: Sequence[Quirk]) -> list[Accepted]:
    options = manifest.options
    told = [(f"custom call {target}", reason) for target, reason in options.allow.items()]
    told += [(_left_out(check), reason) for check, reason in options.disabled_checks.items()]
    accepted = [Accepted(what, reason, (manifest.case,)) for what, reason in told]
    golden = f"{manifest.case}/{manifest.writer.id}"
    return accepted + [Accepted(f"quirk: {relaxation(quirk)}", _why(quirk), (golden,)) for quirk in quirks]


def _why(quirk: Quirk) -> str:
    until = f"until {quirk.expires}" if quirk.expires else f"for good, approved by {quirk.approver}"
    return f"{quirk.reason}; owner {quirk.owner}, {quirk.issue}, {until}"


def joined(parts: Iterable[Iterable[Accepted]]) -> list[Accepted]:
    """What the parts of one run were let through with, together."""
    found: dict[tuple[str, str], set[str]] = {}
    for each in (each for part in parts for each in part):
        found.setdefault((each.what, each.reason), set()).update(each.cases)
    return [Accepted(what, reason, tuple(sorted(cases))) for (what, reason), cases in sorted(found.items())]


def _left_out(check: str) -> str:
    if check == "platform":
        return "no check of the platform"
    return "no check of any custom call" if check == "ALL" else f"no check of the custom call {check}"

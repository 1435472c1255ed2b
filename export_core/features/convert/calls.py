"""The custom calls of an artifact that its reader does not take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from export_core.artifact.audit import belongs, judge_calls, unread_findings
from export_core.artifact.numerics import LAPACK
from export_core.artifact.readers import version_numbers
from export_core.releases.stable_targets import stable_targets

if TYPE_CHECKING:
    from export_core.artifact import Artifact, CustomCall
    from export_core.artifact.readers import Reader

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

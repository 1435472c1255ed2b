"""Which known upstream issue a failing cell shows, if any."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from export_core.artifact import Artifact, ArtifactError, read
from export_core.base.untrusted import found_in
from export_core.judge.result import Result
from export_core.policy.entries import matches
from export_core.policy.known_issues import KnownIssue
from export_core.releases import load_calendar


def upstream_of(result: Result, artifact: Path, issues: Iterable[KnownIssue]) -> str:
    """The id of the first issue that a failing cell shows; empty where it shows none.

    `artifact` is the file of its golden, which is read only for an issue that is about types.
    """
    return next((issue.id for issue in issues if _shows(result, artifact, issue)), "")


def _shows(result: Result, artifact: Path, issue: KnownIssue) -> bool:
    return (
        result.verdict in issue.verdicts
        and (not issue.stages or result.stage in issue.stages)
        and (not issue.platforms or result.platform in issue.platforms)
        and _has_it(result, issue)
        and found_in(result.message, issue.message)
        and (not issue.calls or any(matches(call, glob) for call in result.custom_calls for glob in issue.calls))
        # Last: it reads the artifact.
        and (not issue.types or found_in("\n".join(_types(artifact)), issue.types))
    )


def _has_it(result: Result, issue: KnownIssue) -> bool:
    """Whether the reader was built in the days of the issue."""
    built = load_calendar().built
    since, mended = issue.since, issue.mended_in
    return (not since or result.reader.built >= built(since)) and (not mended or result.reader.built < built(mended))


@functools.lru_cache(maxsize=256)
def _types(path: Path) -> tuple[str, ...]:
    """All types in an artifact's modules, as StableHLO prints them; none where it cannot be read."""
    try:
        artifact: Artifact = read(path)
        return tuple({kind for module in artifact.modules for kind in module.types})
    except ArtifactError:
        return ()

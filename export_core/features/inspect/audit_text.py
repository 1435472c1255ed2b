"""The text of `jaxexport audit` on a file: its custom calls, the switched-off checks, what is wrong with `main`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from export_core.artifact import ArtifactError
from export_core.artifact.archive import artifact_in
from export_core.artifact.audit import foreseen_everywhere
from export_core.artifact.main_check import check_main
from export_core.artifact.writers import audit_calls, find_writer
from export_core.base.escaping import printable
from export_core.base.phrases import plural
from export_core.features.inspect.facts import stablehlo_promise
from export_core.features.inspect.screen import joined, promises_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from export_core.artifact import Artifact
    from export_core.artifact.archive import Found
    from export_core.artifact.audit import AuditFinding
    from export_core.policy.terms import Terms


def audit_text(
    artifact: Artifact, terms: Terms, writer: str | None = None, reader: str | None = None
) -> tuple[str, bool]:
    """Return the block of text of one artifact, and whether no problems were found.

    Args:
        artifact: what was read.
        terms: the releases that can have written it, and the calls that are allowed.
        writer: the jaxlib that wrote it, where that is known better than the file says.
        reader: a jaxlib that must guarantee the targets too.

    Raises:
        ArtifactError: a module cannot be read.
    """
    written_by = find_writer(artifact, terms.releases)
    if writer is not None:
        written_by = written_by._replace(jaxlib=writer)
    findings = audit_calls(artifact, written_by, terms.allow, reader)
    # No exporter writes a file with such a main: it was damaged, or put together from parts. jax would call it with
    # other arguments, so it fails here although its targets may be fine.
    problems = check_main(artifact)
    head = _summary(findings, problems)
    who = written_by.jaxlib
    bare = artifact.envelope is None
    by = "writer not known" if bare and who is None else f"written by {_writer(who, written_by.candidates)}"
    lines = [f"{artifact.name}: {head}, {by}"]
    if bare:  # its calls are compared with JAX's lists all the same: they are what a reader would look up
        lines += [f"  note  promised {line}" for line in promises_in_words(stablehlo_promise(artifact))]
    for finding in findings:
        lines += _finding_lines(finding)
    lines += [f"  FAIL  {problem}" for problem in problems]
    if terms.releases:
        platforms = foreseen_everywhere(artifact, reader or terms.releases[-1].jaxlib)
        lines += [f"  note  on {platform.platform}: {platform.note}" for platform in platforms if platform.exported]
    fine = not problems and all(finding.ok for finding in findings)
    return "".join(f"{printable(line)}\n" for line in lines), fine


def audit_found(terms: Terms, writer: str | None, reader: str | None, found: Found) -> tuple[str, bool | None] | str:
    """What `audit_text` says of a file of an archive, or why it is left out.

    Of a file that cannot be read, the error and None.
    """
    try:
        artifact = artifact_in(found)
        return artifact if isinstance(artifact, str) else audit_text(artifact, terms, writer, reader)
    except ArtifactError as error:
        return str(error), None
    except MemoryError:
        return f"{found.path}: expected memory to read it, found too little.", None


def _summary(findings: Sequence[AuditFinding], problems: Sequence[str]) -> str:
    unread = sum(not finding.ok for finding in findings if not finding.count)
    bad = sum(not finding.ok for finding in findings if finding.count)
    parts = [f"not read whole ({plural(unread, 'part')} not known)"] if unread else []
    if bad:
        parts.append(f"{plural(bad, 'target')} not guaranteed")
    if problems:
        parts.append("main is not what the envelope says")
    if parts:
        return joined(parts)
    return "ok" if any(finding.count for finding in findings) else "ok, it makes no custom calls"


def _finding_lines(finding: AuditFinding) -> list[str]:
    mark = "FAIL" if not finding.ok else "ok  " if finding.count else "note"
    more = [] if finding.ok else [f"          in {place}" for place in finding.where[1:]]
    return [f"  {mark}  {finding}", *more]


def _writer(jaxlib: str | None, candidates: Sequence[str]) -> str:
    if jaxlib is not None:
        return f"jaxlib {jaxlib}"
    if not candidates:
        return "a jaxlib that the calendar does not have (name it with --writer)"
    return f"one of jaxlib {joined(candidates)} (name it with --writer)"

"""The text of `jaxexport audit` on a file: its custom calls, the switched-off checks, what is wrong with `main`."""

from __future__ import annotations

from export_core.artifact import Artifact
from export_core.artifact.audit import foreseen_everywhere
from export_core.artifact.main_check import check_main
from export_core.artifact.writers import audit_calls, find_writer
from export_core.base.escaping import printable
from export_core.base.phrases import plural
from export_core.features.inspect.facts import stablehlo_promise
from export_core.features.inspect.screen import joined, promises_in_words
from export_core.policy.terms import Terms


def audit_text(terms: Terms, writer: str | None, reader: str | None, artifact: Artifact) -> tuple[str, bool]:
    """Return the block of text of one artifact, and whether no problems were found.

    Args:
        terms: the releases that can have written it, and the calls that are allowed.
        writer: the jaxlib that wrote it, where that is known better than the file says.
        reader: a jaxlib that must guarantee the targets too.
        artifact: what was read.

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
    unread = sum(not finding.ok for finding in findings if not finding.count)
    bad = sum(not finding.ok for finding in findings if finding.count)
    parts = [f"not read whole ({plural(unread, 'part')} not known)"] if unread else []
    parts += [f"{plural(bad, 'target')} not guaranteed"] if bad else []
    parts += ["main is not what the envelope says"] if problems else []
    is_fine = not parts
    if is_fine:
        parts = ["ok"] if any(finding.count for finding in findings) else ["ok, it makes no custom calls"]
    if written_by.jaxlib is not None:
        by = f"written by jaxlib {written_by.jaxlib}"
    elif artifact.envelope is None:
        by = "writer not known"
    elif written_by.candidates:
        by = f"written by one of jaxlib {joined(written_by.candidates)} (name it with --writer)"
    else:
        by = "written by a jaxlib that the calendar does not have (name it with --writer)"
    lines = [f"{artifact.name}: {joined(parts)}, {by}"]
    if artifact.envelope is None:  # compared with JAX's lists all the same: they are what a reader would look up
        lines += [f"  note  promised {line}" for line in promises_in_words(stablehlo_promise(artifact))]
    for finding in findings:
        mark = "FAIL" if not finding.ok else "ok  " if finding.count else "note"
        lines.append(f"  {mark}  {finding}")
        lines += [] if finding.ok else [f"          in {place}" for place in finding.where[1:]]
    lines += [f"  FAIL  {problem}" for problem in problems]
    if terms.releases:
        platforms = foreseen_everywhere(artifact, reader or terms.releases[-1].jaxlib)
        lines += [f"  note  on {platform.platform}: {platform.note}" for platform in platforms if platform.exported]
    return "".join(f"{printable(line)}\n" for line in lines), is_fine

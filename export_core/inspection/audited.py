"""What `jaxexport audit` says of one file: its custom-call targets, the checks that were switched off, what is wrong with `main`."""

from __future__ import annotations

from export_core.artifact.main_check import check_main
from export_core.inspection.describe import audit_by, find_writer, foreseen_in
from export_core.inspection.screen import listed, plural, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from export_core.artifact import Artifact
    from export_core.releases.dates import Dated


def audited(
    artifact: Artifact,
    releases: Sequence[Dated],
    allow: Mapping[str, str],
    writer: str | None = None,
    reader: str | None = None,
) -> tuple[str, bool]:
    """Return the block of text of one artifact, and whether nothing in it speaks against running it.

    Args:
        artifact: what was read.
        releases: those that can have written it.
        allow: the policy's own targets, with their reasons.
        writer: the jaxlib that wrote it, where somebody knows better than the file.
        reader: a jaxlib that must guarantee the targets too.

    Raises:
        ArtifactError: a module cannot be read.
    """
    who = find_writer(artifact, releases)
    if writer is not None:
        who = {**who, "jaxlib": writer}
    found = audit_by(artifact, who, allow, reader)
    bad = [finding for finding in found if not finding.ok]
    calls = [finding for finding in found if finding.count]
    wrong = check_main(artifact)
    told = [f"{plural(len(bad), 'target')} not guaranteed"] if bad else []
    if (
        wrong
    ):  # no exporter writes such a file: it was damaged or put together, and jax would call main with other arguments
        told.append("main is not what the envelope says")
    if not told:
        told.append("ok" if calls else "ok, it makes no custom calls")
    lines = [f"{artifact.name}: {listed(told)}, written by {_writer(who['jaxlib'], who['candidates'])}"]
    for finding in found:
        mark = "note" if not finding.count else "ok  " if finding.ok else "FAIL"
        lines.append(f"  {mark}  {finding}")
        if not finding.ok:
            lines += [f"          in {place}" for place in finding.places[1:]]
    lines += [f"  FAIL  {problem}" for problem in wrong]
    if releases:
        platforms = foreseen_in(artifact, reader or releases[-1].jaxlib)
        lines += [f"  note  on {each.platform}: {each.note}" for each in platforms if each.exported]
    return "".join(f"{printable(line)}\n" for line in lines), not bad and not wrong


def _writer(jaxlib: str | None, candidates: Sequence[str]) -> str:
    if jaxlib is not None:
        return f"jaxlib {jaxlib}"
    if not candidates:
        return "a jaxlib that the calendar does not have (name it with --writer)"
    return f"one of jaxlib {listed(candidates)} (name it with --writer)"

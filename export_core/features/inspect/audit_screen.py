"""The lines of `jaxexport audit` about an artifact: its custom calls, what `@main` takes, and who wrote it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from export_core.artifact import Artifact
from export_core.artifact.audit import AuditFinding, calls_of_jax, foreseen_everywhere, only_jax
from export_core.artifact.main_check import check_main
from export_core.artifact.readers import Reader, refusal_in_words, without_advice
from export_core.artifact.writers import WrittenBy, find_writer, is_rewritten
from export_core.base.text import plural, printable
from export_core.features.inspect.artifact_facts import (
    audit_for,
    converted_facts,
    jaxlibs_of,
    stablehlo_promise,
)
from export_core.features.inspect.screen import REWRITTEN, joined, promises_in_words
from export_core.knowledge import NO, Forecast, forecasts
from export_core.policy.terms import Terms

if TYPE_CHECKING:
    from export_core.policy import Policy


class PolicyOfGoldens:
    """The policy that applies to goldens: the named one or the project's, read only when a golden is found."""

    def __init__(self, file: str | None = None):
        self.file = file

    @cached_property
    def policy(self) -> Policy:
        """The policy. Raises `PolicyError` if it cannot be used."""
        from pathlib import Path

        from export_core.policy import find_policy

        return find_policy(Path(), self.file)


def audit_text(
    terms: Terms,
    writer: str | None,
    readers: Sequence[Reader],
    artifact: Artifact,
    of_goldens: PolicyOfGoldens | None = None,
) -> tuple[bool | None, str]:
    """Audit an artifact, and return whether no problems were found, and the lines of the screen.

    A golden's artifact is audited as in a matrix. The first value is None if its golden.yaml cannot be used; the text
    then says why.

    Args:
        terms: The releases and the allowed calls.
        writer: The jaxlib that wrote the artifact, if a person named it; it overrides what the file says.
        readers: Jaxlibs that must promise the artifact's calls too, and other runtimes that must run it.
        artifact: The artifact.
        of_goldens: The policy with the calls that goldens may make.

    Raises:
        ArtifactError: A module cannot be read.
        ExportCompatError: The policy cannot be used.
    """
    written_by = find_writer(artifact, terms.releases)
    if writer is not None:
        written_by = written_by._replace(jaxlib=writer)
    of_golden = None
    # The manifest shows whether a folder is a golden: most files are none, and NumPy need not be imported for them.
    if writer is None and os.path.isfile(os.path.join(os.path.dirname(artifact.name), "golden.yaml")):  # noqa: PTH113, PTH118, PTH120
        from export_core.features.inspect.golden_audit import audit_as_golden
        from export_core.goldens import GoldenError

        try:
            of_golden = audit_as_golden(artifact, (of_goldens or PolicyOfGoldens()).policy, jaxlibs_of(readers))
        except GoldenError as error:
            return None, str(error)
    if of_golden:
        golden, findings = of_golden
        written_by = written_by._replace(jaxlib=golden.manifest.writer.jaxlib)
    else:
        findings = audit_for(artifact, written_by, terms.allow, jaxlibs_of(readers))
    # No exporter writes a file with such a main: it was damaged, or put together from parts. jax would call it with
    # other arguments, so it fails here although its targets may be fine.
    problems = check_main(artifact)
    notes: list[str] = []
    in_runtimes: dict[str, list[str]] = {}  # By the title of the runtime, why it does not run the artifact.
    calls = calls_of_jax(artifact)
    converted = bool(readers) and _is_changed(artifact, written_by, terms)
    for known in forecasts(artifact, readers):
        # JAX's lists alone decide which calls are promised; what a jaxlib does not load or run is a note beside that.
        failures = [*_known_failures(known, calls, converted=converted)]
        if not known.reader.release.runtime:
            notes += failures
        elif failures:
            in_runtimes[known.reader.release.title] = failures
    summary = _audit_summary(findings, problems, [*in_runtimes])
    problems = [*problems, *(failure for failures in in_runtimes.values() for failure in failures)]
    lines = [f"{artifact.name}: {summary}, {_audited_writer(artifact, written_by, terms)}"]
    if artifact.saved_model is not None:
        from export_core.features.inspect.saved_model_screen import PROMISED

        lines += [f"  note  promised {PROMISED[0]}"]
    elif artifact.envelope is None:  # compared with JAX's lists all the same: they are what a reader would look up
        lines += [f"  note  promised {line}" for line in promises_in_words(stablehlo_promise(artifact))]
    for finding in findings:
        mark = "FAIL" if not finding.ok else "ok  " if finding.count else "note"
        lines.append(f"  {mark}  {finding}")
        lines += [] if finding.ok else [f"          in {place}" for place in finding.where[1:]]
    lines += [f"  FAIL  {problem}" for problem in problems]
    lines += [f"  note  {note}" for note in notes]
    if terms.releases and artifact.saved_model is None:
        reader = (*jaxlibs_of(readers), terms.releases[-1].jaxlib)[0]
        platforms = foreseen_everywhere(artifact, reader, of_known_writer=bool(written_by.possible))
        lines += [f"  note  on {platform.platform}: {platform.note}" for platform in platforms if platform.exported]
    ok = not problems and all(finding.ok for finding in findings)
    return ok, "".join(f"{printable(line)}\n" for line in lines)


def _known_failures(known: Forecast, calls: Sequence[str], *, converted: bool) -> Iterator[str]:
    """Yield a line for each known reason why a named reader does not load or run an artifact.

    `calls` are the artifact's custom calls that only jax registers. If it was `converted`, no line says how to export
    or convert it otherwise.
    """
    title, of_jax = known.reader.release.title, only_jax(calls)
    if known.reader.release.runtime and calls:
        yield f"{title} does not compile it: {of_jax}"
    if known.spoiled.answer != NO:
        return
    does = refusal_in_words(known.load.reasons) if known.loads.answer == NO else known.in_words
    for reason in known.spoiled.reasons:
        if reason.text != of_jax:
            why = without_advice(str(reason)) if converted else str(reason)
            yield f"{title} {does}: {why}. {reason.todo}".rstrip(". ")


def _is_changed(artifact: Artifact, writer: WrittenBy, terms: Terms) -> bool:
    """Return whether an artifact was changed after its export, as its bytes or the record beside it say."""
    record = converted_facts(artifact)
    return (record is not None and record.differs_from_original) or is_rewritten(artifact, writer, terms.releases)


def _audit_summary(findings: Sequence[AuditFinding], main: Sequence[str], not_run_in: Sequence[str]) -> str:
    """Return the problems of an audited artifact in a few words, or "ok".

    `main` lists the problems of `@main`, and `not_run_in` the runtimes that are known not to run the artifact.
    """
    unread = sum(not finding.ok for finding in findings if not finding.count)
    bad = sum(not finding.ok for finding in findings if finding.count)
    parts = [f"not read whole ({plural(unread, 'part')} not known)"] if unread else []
    parts += [f"{plural(bad, 'target')} not guaranteed"] if bad else []
    parts += ["@main is not what the envelope says"] if main else []
    parts += [f"does not run in {joined(not_run_in)}"] if not_run_in else []
    return joined(parts) or ("ok" if any(finding.count for finding in findings) else "ok, it makes no custom calls")


def _audited_writer(artifact: Artifact, writer: WrittenBy, terms: Terms) -> str:
    if (converted := converted_facts(artifact)) and converted.differs_from_original:
        original = "" if writer.jaxlib else " (name who wrote the original with --writer)"
        return f"converted {converted.in_words}{original}"
    if writer.jaxlib is not None:
        return f"written by jaxlib {writer.jaxlib}"
    if artifact.envelope is None:
        return "writer not known"
    if writer.candidates:
        return f"written by one of jaxlib {joined(writer.candidates)} (name it with --writer)"
    if is_rewritten(artifact, writer, terms.releases):
        return f"{REWRITTEN.removeprefix('it was ')} (name who wrote the original with --writer)"
    return "written by a jaxlib that the calendar does not have (name it with --writer)"

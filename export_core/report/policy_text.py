"""A policy as text: as people read it, and known failures for the broken cells of a run."""

import datetime
import itertools
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from export_core.base.text import plural, printable, shown
from export_core.base.yaml_text import yaml_text
from export_core.judge import Judgement, Result, Summary
from export_core.judge.known import Scope, scope_of
from export_core.matrix import Verdict
from export_core.matrix.result import grouped
from export_core.policy import Policy
from export_core.policy.known_issues import KnownIssue
from export_core.report.document import ReportError
from export_core.report.wording import unplanned_sentence


def policy_text(policy: Policy, origins: Mapping[str, str], where: str, without: Collection[str] = ()) -> str:
    """Return what `jaxexport policy show` prints: every key of a policy as YAML, except those in `without`.

    `origins` has the file and line of each key that a file sets, for a comment above it. `where` names the policy file,
    or says that there is none.
    """
    values = msgspec.to_builtins(policy.without_locations(), builtin_types=(datetime.date,))
    whole = {name: _without_gaps(value) for name, value in values.items()}
    whole["platforms"] = whole["platforms"] or {"cpu": "auto"}
    shown = {name: value for name, value in whole.items() if name not in without}
    lines = [f"# {where}. A key without a line has its default."]
    for line in yaml_text(shown, width=100, default_flow_style=None).splitlines():
        if (name := line.partition(":")[0]) in origins:  # keys of the policy alone are not indented
            lines.append(f"# {origins[name]}")
        lines.append(line)
    return "\n".join(lines) + "\n"


def issues_text(issues: Sequence[KnownIssue]) -> str:
    """Return known issues as YAML, in the form of a file that `known_issues` of the policy names."""
    entries = msgspec.to_builtins(issues, builtin_types=(datetime.date,))
    for entry in entries:
        for key in ("concerns", "fixture"):
            entry[key] = _without_gaps([entry[key]])[0]
    return yaml_text(_without_gaps(entries), width=100, default_flow_style=None)


def _without_gaps(value: Any) -> Any:
    """Return a list with the empty fields of its entries removed; a value that is not a list is returned unchanged."""
    if not isinstance(value, (list, tuple)):
        return value
    return [
        {name: part for name, part in entry.items() if part not in (None, "", [], (), {})}
        if isinstance(entry, dict) else entry
        for entry in value
    ]  # fmt: skip


def proposal(
    results: Sequence[Result], summary: Summary, before: Summary | None = None, own_policy: Path | None = None
) -> str:
    """Return entries for `known_failures`, as YAML, that cover the broken and owed cells of a run; "" if none.

    Reason, owner, issue and expiry are left for the user to fill in.

    Args:
        results: The results of the run's cells.
        summary: The run as it is judged now.
        before: The run as it was judged when it ran.
        own_policy: The policy file with which the run was made; None if no file has that policy any more.

    Raises:
        ReportError: The run is only a part of its plan, so that nobody knows how the other cells end.
    """
    found, to_do = _missing_part(summary)
    if found and before and before.as_of == summary.as_of and not _missing_part(before)[0]:
        # Only a policy can have made it a part.
        made = "but it is whole by the policy that it was made with"
        again = f"judge it by that one, with `--policy {shlex.quote(str(own_policy))}`"
        found, to_do = f"{found}; {made}", again if own_policy else "run the matrix again by this one"
    if found:
        missing = ": ".join(filter(None, (found, to_do)))
        raise ReportError(f"--propose: expected a whole run whose cells all ran, found {missing}.")
    broken = [result for result in results if result.judgement.is_breach]
    # A scope has no jax: two readers with one jaxlib are one cell to an entry.
    others = {
        scope_of(result)
        for result in results
        if (result.promised or result.deployed) and not result.judgement.is_breach
    }
    built = {release.name: release.built for result in broken for release in (result.writer.release, result.reader)}
    issues = {issue.id: issue for issue in summary.known_issues}
    failures = grouped(
        broken, lambda result: (str(result.verdict), str(result.stage), _expected_message(result), result.upstream)
    )
    entries = [
        _entry((verdict, stage, message), block, others, summary.as_of, built, issues.get(upstream))
        for (verdict, stage, message, upstream), cells in sorted(failures.items())
        for block in _blocks(set(map(scope_of, cells)))
    ]
    return "known_failures:\n" + "".join(entries) if entries else ""


def _missing_part(summary: Summary) -> tuple[str, str]:
    """Return in words why a run is not whole, and what to do about a shard or a partial run; ("", "") if it is."""
    if summary.shard:
        return f"shard {summary.shard.index} of {summary.shard.count}", "judge all shards together first"
    if summary.partial:
        return summary.partial, "run the matrix again, without options that leave cells out"
    not_run = summary.judgements.get(Judgement.INCOMPLETE, 0)
    if summary.uncovered or summary.unplanned or not_run:
        texts = (*summary.uncovered, unplanned_sentence(summary))
        own = [f"{plural(not_run, 'cell')} that {'was' if not_run == 1 else 'were'} not run"] if not_run else []
        return "; ".join([*own, *(text.rstrip(".") for text in texts if text)]), ""
    return "", ""


def _blocks(scopes: set[Scope]) -> list[list[Scope]]:
    """Return cells grouped into blocks, each with all combinations of some cases, writers, readers and platforms.

    So an entry that names a block's cases, writers, readers and platforms covers exactly the cells of the block.
    """
    blocks = [tuple(frozenset({part}) for part in scope) for scope in sorted(scopes)]
    # Readers are merged first, then writers, cases and platforms: that makes the fewest entries, since most failures
    # are a release's.
    for axis in (2, 1, 0, 3):
        merged: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
        for block in blocks:
            rest = (*block[:axis], *block[axis + 1 :])
            merged[rest] = merged.get(rest, frozenset()) | block[axis]
        blocks = [(*rest[:axis], names, *rest[axis:]) for rest, names in merged.items()]
    return [[Scope(*parts) for parts in itertools.product(*map(sorted, block))] for block in blocks]


_OF_ONE_RUN = re.compile(
    r",? ?metadata=\{|,? ?\b\w*_id=|0x[0-9a-fA-F]{4,}|\b(?=[a-f]*\d)[0-9a-f]{12,}\b|\bpid[ =]\d"
    r"| ?\[\w+::\w+=|(?<![\w./:])/[\w.+-]+/\S"
)
"""The beginning of text in a message that differs between runs or machines.

Such text is HLO metadata, an id, an address, a hash or a path.
"""
_LEAST = 20  # The fewest letters of a message: fewer would match other messages.


def _expected_message(result: Result) -> str:
    """Return the part of a cell's message that is the same in every run, for the entry of a known failure.

    It is the first line up to the first text that differs between runs, such as a path. For wrong numbers, it ends
    before the size of the error.
    """
    line = result.message.strip().splitlines()[0] if result.message.strip() else ""
    if result.verdict is Verdict.NUMERICS:
        return line.partition(" (max abs")[0]
    begins = next((match.start() for match in _OF_ONE_RUN.finditer(line) if match.start() >= _LEAST), len(line))
    return line[:begins].rstrip()


def _tracked_by(issue: KnownIssue | None) -> str:
    """Return the upstream issue that tracks a failure, or the id of a fault that nobody has reported; "" if neither."""
    if issue is None or (issue.documented and not issue.issue):
        return ""
    return issue.issue or issue.id


def _entry(
    failure: tuple[str, str, str],
    scopes: Sequence[Scope],
    others: set[Scope],
    as_of: datetime.date,
    built: Mapping[str, datetime.date],
    issue: KnownIssue | None,
) -> str:
    """Return an entry for `known_failures`, as YAML, for cells that fail with the same verdict, stage and message.

    Args:
        failure: The verdict, the stage and the message.
        scopes: The cells that fail.
        others: Cells of the run that do not fail. A comment warns if the entry also covers some of them.
        as_of: The day on which the entry is added.
        built: The build dates of releases, by which their names are sorted.
        issue: The known issue that explains the failure, if any.
    """
    # Releases by build date; cases and platforms have none, and are sorted by name.
    names = [
        sorted({scope[axis] for scope in scopes}, key=lambda name: (built.get(name, as_of), name)) for axis in range(4)
    ]
    entry = {
        **dict(zip(("cases", "writers", "readers", "platforms"), names, strict=True)),
        **dict(zip(("verdict", "stage", "message"), failure, strict=True)),
        # What the table of upstream issues says need not be written again; the owner is always a person's choice.
        "reason": issue.title if issue else "TODO why it fails",
        "owner": "TODO who is responsible for it",
        "issue": _tracked_by(issue) or "TODO the issue that tracks it",
        "added": as_of,
    }
    # 50 is the default of `at_most`; an entry that covers more has to say so.
    if len(scopes) > 50:
        entry["at_most"] = len(scopes)
    text = yaml_text([entry], width=120, default_flow_style=None)
    lines = [*text.splitlines(), "  expires: TODO a day, at most 90 days after added"]
    if ambiguous := sorted(others.intersection(scopes)):
        cells = "; ".join(f"{scope.case} by {scope.writer} in {scope.reader}" for scope in ambiguous)
        warning = "This entry also covers cells that are not broken: only their jax differs"
        lines.insert(0, f"# {warning}: {shown(printable(cells))}")
    return "".join(f"  {line}\n" for line in lines)

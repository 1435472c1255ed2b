"""The table of known upstream issues: defects and limits of published jaxlib releases, and how to recognize each."""

import functools
import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from export_core.base.errors import Problem
from export_core.base.text import schema_problem
from export_core.base.untrusted import decode_yaml, read_named
from export_core.policy.entries import FailingStage, FailingVerdict
from export_core.policy.source import PolicyError
from export_core.releases import load_calendar

SHIPPED = Path(__file__).parent / "data" / "known_issues.yaml"
_UPGRADE = re.compile(r"[Uu]pgrade the reader to jaxlib (\d[\w.]*\w)")  # The words by which an entry names a release.


class KnownIssue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One upstream issue. A cell shows it if it has all the properties that are given.

    Readers are those built from `since` on, and before `mended_in`; both are jaxlib versions of the calendar. An entry
    of the shipped table that has neither says why, in `any_reader`.
    """

    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]*$(?!\n)")]  # A short name, for links and filters.
    title: str  # What goes wrong, in a few words.
    todo: str  # What somebody who has it can do, in a sentence or two.
    verdicts: Annotated[tuple[FailingVerdict, ...], Meta(min_length=1)]  # Verdicts of its cells.
    issue: Annotated[str, Meta(pattern="^(https?://.*)?$")] = ""  # A link; empty where nobody reported it.
    stages: tuple[FailingStage, ...] = ()  # Stages of its cells; all if empty.
    platforms: tuple[str, ...] = ()  # Platforms of its cells; all if empty.
    message: str = ""  # A regular expression that is found in the message.
    calls: tuple[str, ...] = ()  # Globs: the artifact has such a custom call.
    types: str = ""  # A regular expression that is found in a type of the module, such as tensor<2xi4>.
    since: str = ""  # The first reader that has it; all older ones too if empty.
    mended_in: str = ""  # The first reader that no longer has it; none if empty.
    any_reader: str = ""  # Why there is no such range: any release can have it.
    written_before: str = ""  # The first writer whose goldens do not have it; goldens of all writers if empty.

    @property
    def readers(self) -> str:
        """The readers that have it, in words; empty where the other properties decide."""
        ends = self.since and f"from {self.since}", self.mended_in and f"before {self.mended_in}"
        return ", ".join(filter(None, ends))


def known_issues(file: str | None = None) -> tuple[KnownIssue, ...]:
    """The shipped table, with the entries of a newer or a project's own file before it: an id names one issue.

    Raises `PolicyError` for a file that cannot be read, or an entry that is none.
    """
    own = _read(Path(file)) if file else ()
    named = {issue.id for issue in own}
    return (*own, *(issue for issue in _read(SHIPPED) if issue.id not in named))


@functools.lru_cache(maxsize=8)
def _read(path: Path) -> tuple[KnownIssue, ...]:
    advice = "`jaxexport policy show --known` prints the shipped table in the same form."
    try:
        issues = msgspec.convert(decode_yaml(read_named(path)), tuple[KnownIssue, ...])
    except OSError as error:
        problem = f"expected a table of known issues, found none: {error.strerror}."
        raise PolicyError.about(Problem(path, problem)) from None
    except msgspec.MsgspecError as error:
        problem = f"expected a list of known issues: {schema_problem(error)}."
        raise PolicyError.about(Problem(path, problem, advice=advice)) from None
    for number, issue in enumerate(issues):
        if problem := _problem(issue, {other.id for other in issues[:number]}):
            raise PolicyError.about(Problem(path, problem, f"[{number}] ({issue.id})"))
    return issues


def _problem(issue: KnownIssue, before: set[str]) -> str:
    """What is wrong with an entry, a sentence; empty for a good one."""
    if issue.id in before:
        return "expected each id once, found it again."
    for key in ("message", "types"):
        try:
            re.compile(getattr(issue, key))
        except re.error as error:
            return f"{key}: expected a regular expression, found {getattr(issue, key)!r}: {error}."
    for key in ("since", "mended_in", "written_before"):
        if (version := getattr(issue, key)) and version not in load_calendar().jaxlib:
            return f"{key}: expected a jaxlib version of the calendar, found {version!r}."
    if problem := _range_problem(issue):
        return problem
    if not (issue.message or issue.calls or issue.types):
        return "expected message, calls or types, found none of them: every cell with such a verdict would match."
    return ""


def _range_problem(issue: KnownIssue) -> str:
    """What is wrong with the range of readers, or with an upgrade that is no upgrade for one of them."""
    calendar = load_calendar()
    if issue.any_reader and (issue.since or issue.mended_in):
        return "any_reader: cannot be combined with since or mended_in."
    if issue.since and issue.mended_in and calendar.built(issue.since) >= calendar.built(issue.mended_in):
        return f"mended_in: expected a release built after {issue.since}, found {issue.mended_in}: no reader has it."
    for version in _UPGRADE.findall(issue.todo):
        if version not in calendar.jaxlib:
            return f"todo: expected an upgrade to a jaxlib version of the calendar, found {version!r}."
        if not issue.mended_in or calendar.built(version) < calendar.built(issue.mended_in):
            expected = f"{issue.mended_in} or a younger release" if issue.mended_in else "mended_in too"
            return (
                f"todo: expected {expected}, found an upgrade of the reader to jaxlib {version}: a younger reader "
                "would be told to take an older release."
            )
    return ""

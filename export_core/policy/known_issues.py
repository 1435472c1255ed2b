"""The knowledge base as people write it: the form of an entry, the shipped tables, and a project's own file."""

import datetime
import functools
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from export_core import knowledge
from export_core.base.errors import Problem
from export_core.base.text import few, schema_problem
from export_core.base.untrusted import read_named
from export_core.base.yaml_text import decode_yaml
from export_core.knowledge.knowledge_base import CONSUMERS
from export_core.knowledge.replaced_calls import crashes_in_any_export
from export_core.policy.entries import FailingStage, FailingVerdict
from export_core.policy.source import PolicyError
from export_core.releases import load_calendar
from export_core.releases.runtimes import JAXLIB, built_on

SHIPPED = Path(knowledge.__file__).parent / "data"
_UPGRADE = re.compile(r"[Uu]pgrade the reader to jaxlib (\d[\w.]*\w)")  # The words by which `todo` names a release.

Outcome = Literal["refused", "error", "crash", "timeout", "numerics", "overwritten", "accepted"]
if TYPE_CHECKING:
    from export_core.knowledge.replaced_calls import ReleaseOfReader

    Consumer = str
else:
    Consumer = Literal[CONSUMERS]


class Concerns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The properties that an artifact must have for a known issue to apply; those that are not set do not count."""

    calls: tuple[str, ...] = ()  # Globs: it has such a custom call.
    operations: tuple[str, ...] = ()  # Globs: it has such an operation, such as `stablehlo.sort`.
    types: str = ""  # A regular expression that is found in a type of the module, such as tensor<2xi4>.
    signature: str = ""  # A regular expression that is found in the type of an argument or a result of `main`.
    uses: tuple[tuple[str, str], ...] = ()
    """Globs of operations, each with a regular expression that is found in the element types of one, such as `f16->f32`
    of `stablehlo.dot_general`. What a body computes is in the name, as `stablehlo.reduce(add)`; `?f32` is of an array
    with a symbolic dimension. An empty expression is found in all."""
    operands: tuple[tuple[str, str], ...] = ()
    """Globs of operations as those of `uses`, each with a regular expression that is found in the type of an operand,
    such as `tensor<2xf32>`."""
    dialects: tuple[str, ...] = ()  # It has one of these dialects, such as sdy.
    attributes: tuple[str, ...] = ()
    """Texts: it has one of them among the strings of its attributes; or `sdy attribute 12`, `vhlo type 10`, by code."""
    lacks: tuple[str, ...] = ()  # Texts or codes as those of `attributes`: it has none of them.
    devices: int | None = None  # It is for at least so many devices.
    symbolic: bool | None = None  # Whether an argument has a symbolic dimension.
    donated: bool | None = None  # Whether an argument is donated.
    x64: bool | None = None  # Whether an argument is 64 bits wide.
    unreduced: bool | None = None  # Whether devices have parts of an argument or result, which are not reduced yet.

    @property
    def given(self) -> dict[str, Any]:
        """The properties that are set, by key, as the functions in `knowledge.concerns` take them."""
        own = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in own.items() if value not in (None, (), "")}


class Fixture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The artifacts with which a known issue is measured again: goldens, `CASE/WRITER`, or files of the tests."""

    neighbour: str  # One that the entry is just not about.
    concerned: str = ""  # One that it is about; empty where the repository has none.
    why_none: str = ""  # Why the repository has none, in a sentence.


class KnownIssue(msgspec.Struct, frozen=True):
    """A known fault of some releases of a consumer. A failing cell shows it if the cell fits all fields that are set.

    The releases are those built from `since` on, and before `mended_in`. A shipped entry with neither says why in
    `any_reader`.
    """

    id: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]*$(?!\n)")]  # A short name, for links and filters.
    title: str  # What goes wrong, in a few words.
    todo: str  # What somebody who has it can do, in a sentence or two.
    outcome: Literal[Outcome, ""] = ""  # What happens.
    consumer: Consumer = "jaxlib"  # The consumer that has it. What TensorFlow has, a SavedModel has too.
    issue: Annotated[str, Meta(pattern="^(https?://.*)?$")] = ""  # A link; empty where nobody reported it.
    documented: Annotated[str, Meta(pattern="^(https?://.*)?$")] = ""
    """A link to a page of the consumer that says that it is so: nobody tracks it as a fault."""
    study: str = ""  # The page, or the file of a study, that measured it; empty where a link says enough.
    since: str = ""  # The first release that has it; all older ones too if empty.
    mended_in: str = ""  # The first release that no longer has it; none if empty.
    any_reader: str = ""  # Why there is no such range: any release can have it.
    written_before: str = ""  # The first writer whose goldens do not have it; goldens of all writers if empty.
    platforms: tuple[str, ...] = ()  # Platforms of its cells; all if empty.
    settings: tuple[str, ...] = ()  # Flags of the reader under which it holds; by default, and by ours, if empty.
    unless: tuple[str, ...] = ()  # Flags of the reader under which it does not hold.
    concerns: Concerns | None = None  # The artifacts that it is about. Without it, nothing is forecast.
    stage: Literal[FailingStage, ""] = ""  # The first stage where it shows; its cells end there or later.
    certainty: Literal["always", "sometimes"] = "always"  # Whether it happens always, or on a condition.
    message: str = ""  # A regular expression that is found in the message of its cells.
    verdicts: tuple[FailingVerdict, ...] = ()  # The verdicts of its cells, where `outcome` does not say them.
    effect: str = ""  # What happens, and with which numbers, in a sentence.
    measured: datetime.date | None = None  # The day on which it was measured last.
    fixture: Fixture | None = None  # The artifacts by which it is measured again.

    @property
    def link(self) -> str:
        """The link to the issue, or to the page that documents the fault; empty if there is neither."""
        return self.issue or self.documented

    @property
    def readers(self) -> str:
        """The range of readers that have the issue, in words; empty if it has no range."""
        ends = self.since and f"from {self.since}", self.mended_in and f"before {self.mended_in}"
        return ", ".join(filter(None, ends))

    @property
    def shown_by(self) -> tuple[str, ...]:
        """The verdicts that a cell with the issue can have."""
        # Whether a message is a refusal is a table of its own, and what is overwritten shows as other numbers.
        own = {
            "refused": ("refused", "error"),
            "error": ("error", "refused"),
            "overwritten": ("numerics",),
            "accepted": ("error",),  # a call that the golden's writer refuses
        }
        return self.verdicts or own.get(self.outcome, (self.outcome,))


_INSPECTED = "`jaxexport inspect FILE`"
_OLDER_EXPORT = re.compile(r",? or export with an? (older jax|older jaxlib|jax older than [0-9.]+)\.$")


def todo_about(
    issue: KnownIssue, artifact: str | Path, failing: "Sequence[tuple[Iterable[str], ReleaseOfReader]]"
) -> str:
    """Return the advice of a known issue for artifacts that have it in readers.

    Args:
        issue: The known issue, whose `todo` is returned.
        artifact: The file of an artifact, which replaces FILE in commands of the advice.
        failing: The custom-call targets of each artifact, and the release that reads it. An older export is not
            advised where it would crash too; if that holds for some of them only, the advice names these readers.
    """
    todo = issue.todo.replace(_INSPECTED, _INSPECTED.replace("FILE", shlex.quote(str(artifact))))
    crashing = {reader.jaxlib: reader.built for targets, reader in failing if crashes_in_any_export(targets, reader)}
    if not crashing or not _OLDER_EXPORT.search(todo):
        return todo
    if all(crashes_in_any_export(targets, reader) for targets, reader in failing):
        return _OLDER_EXPORT.sub(". An older export would crash there by its calls of LAPACK.", todo)
    readers = few(sorted(crashing, key=crashing.__getitem__))
    return f"{todo} In {readers}, an older export with calls of LAPACK would crash."


SHOWN_BY = "`jaxexport policy show --known`"  # The command that shows every shipped entry.


class WrittenIssue(KnownIssue, frozen=True, forbid_unknown_fields=True):
    """A known issue as it is read from a file, where an unknown key is an error; in a stored run it is not."""


def known_issues(file: str | None = None) -> tuple[KnownIssue, ...]:
    """Return all known issues: the entries of `file`, if it is given, and then the shipped entries.

    An entry of the file replaces a shipped entry with the same id. Raises `PolicyError` if the file cannot be read, or
    if an entry is wrong.
    """
    own = _checked(Path(file)) if file else ()
    named = {issue.id for issue in own}
    return (*own, *(issue for issue in shipped_issues() if issue.id not in named))


@functools.cache
def shipped_issues() -> tuple[KnownIssue, ...]:
    """Return the known issues of all consumers that are shipped with this package, unchecked: a test checks them."""
    tables = (SHIPPED / f"{consumer}.yaml" for consumer in CONSUMERS)
    return tuple(issue for table in tables if table.exists() for issue in _read(table))


def source_of(issue: KnownIssue) -> str:
    """Return where a user finds more about a known issue: its link, its study, or a command that shows it.

    The command is for a shipped entry without a link, since an installation lacks the files of studies.
    """
    is_shipped = any(issue.id == shipped.id for shipped in shipped_issues())
    return issue.link or (SHOWN_BY if issue.study and is_shipped else issue.study)


def _read(path: Path) -> tuple[KnownIssue, ...]:
    advice = "`jaxexport policy show --known` prints the shipped table in the same form."
    try:
        issues = msgspec.convert(decode_yaml(read_named(path)), tuple[WrittenIssue, ...])
    except OSError as error:
        problem = f"cannot read this table of known issues: {error.strerror}."
        raise PolicyError.about(Problem(path, problem)) from None
    except msgspec.MsgspecError as error:
        problem = f"expected a list of known issues: {schema_problem(error)}."
        raise PolicyError.about(Problem(path, problem, advice=advice)) from None
    return issues


@functools.lru_cache(maxsize=8)
def _checked(path: Path) -> tuple[KnownIssue, ...]:
    issues = _read(path)
    for number, issue in enumerate(issues):
        if problem := next(problems_of(issue, {other.id for other in issues[:number]}), ""):
            raise PolicyError.about(Problem(path, problem, f"[{number}] ({issue.id})"))
    return issues


def problems_of(issue: KnownIssue, before: set[str]) -> Iterator[str]:
    """Yield a sentence for each mistake in the entry of a known issue; `before` are the ids of earlier entries."""
    if issue.id in before:
        yield f"id: expected an id that no earlier entry has, found {issue.id} again."
    if not issue.outcome:
        yield "expected `outcome`, found none."
    concerns = issue.concerns or Concerns()
    uses = [("uses", pattern) for _, pattern in concerns.uses]
    uses += [("operands", pattern) for _, pattern in concerns.operands]
    named = ("message", issue.message), ("types", concerns.types), ("signature", concerns.signature)
    for key, pattern in (*named, *uses):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"{key}: expected a regular expression, found {pattern!r}: {error}."
    releases = (("since", issue.since), ("mended_in", issue.mended_in), ("written_before", issue.written_before))
    for key, version in releases:
        consumer = JAXLIB if key == "written_before" else issue.consumer
        if version and built_on(version if consumer == JAXLIB else f"{consumer}=={version}", load_calendar()) is None:
            yield f"{key}: expected a {consumer} version of the calendar, found {version!r}."
            return  # nothing else can be said of a range
    yield from _range_problems(issue)
    if not (issue.message or (issue.concerns and issue.concerns.given)):
        yield "expected `message` or `concerns`, found neither: the entry would match every cell with this `outcome`."


def _range_problems(issue: KnownIssue) -> Iterator[str]:
    """Yield a sentence for each mistake in the range of readers of a known issue, and in the upgrade that it advises.

    The upgrade must lead to a release after the range.
    """
    calendar, (since, mended) = load_calendar(), days_of(issue)[:2]
    if issue.any_reader and (since or mended):
        yield "any_reader: cannot be combined with since or mended_in."
    if since and mended and since >= mended:
        expected = f"expected a release built after {issue.since} (since)"
        yield f"mended_in: {expected}, found {issue.mended_in}: no reader would have the issue."
    for version in _UPGRADE.findall(issue.todo) if issue.consumer == JAXLIB else ():
        if version not in calendar.jaxlib:
            yield f"todo: expected an upgrade to a jaxlib version of the calendar, found {version!r}."
        elif not mended or str(calendar.built(version)) < mended:
            expected = f"an upgrade to {issue.mended_in} or a younger release" if mended else "`mended_in` beside it"
            yield (
                f"todo: expected {expected}, found an upgrade to jaxlib {version}: a reader that is younger than "
                "it and has the issue would be told to take an older release."
            )


@functools.lru_cache(maxsize=1024)  # each failing cell is compared with each entry
def days_of(issue: KnownIssue) -> tuple[str, str, str]:
    """Return the build dates of an issue's `since`, `mended_in` and `written_before` as texts; "" if not set."""
    calendar, of = load_calendar(), "" if issue.consumer == JAXLIB else f"{issue.consumer}=="
    names = issue.since and of + issue.since, issue.mended_in and of + issue.mended_in, issue.written_before
    return tuple(str(built_on(name, calendar)) if name else "" for name in names)  # type: ignore[return-value]

"""The commands inspect, audit and diff. They never run what is in a file."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.base.errors import with_prefix
from export_core.base.text import plural
from export_core.cli.click_options import day_of, declared, goldens_option, json_option, policy_of, policy_option
from export_core.cli.completion import GOLDEN_OR_FILE, RELEASE
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json

if TYPE_CHECKING:
    from export_core.artifact.folders import LeftOut, ReadFile
    from export_core.artifact.readers import Reader
    from export_core.goldens import Golden
    from export_core.policy.load_check import LoadCheck
    from export_core.policy.terms import Terms

FINE, NOT_FINE, BAD_INPUT, UNKNOWN = 0, 1, 2, 3  # `diff` ends with the first two for the same and for different.
_READERS = (
    "jaxlib releases, also as newest or as a range such as '>=0.11,<0.12'; or those of another runtime, such as "
    "tensorflow==2.21.0, 'iree>=3.9', or litert for its newest."
)
_NAMES = click.argument("names", metavar="FILE|DIR|CASE/WRITER…", type=GOLDEN_OR_FILE, nargs=-1, required=True)


@dataclass(frozen=True)
class _Asked:
    """The options shared by `inspect`, `audit` and `diff`: readers, goldens, policy, day and number of processes."""

    readers: str | None
    goldens: str | None
    policy_file: str | None
    as_of: str | None
    jobs: int | None

    def terms(self) -> Terms:
        """Return the releases, windows and allowed calls of the policy, without releases built after --as-of."""
        from export_core.policy.stored_terms import terms_here

        terms = terms_here(self.policy_file)
        if self.as_of is None:
            return terms
        day = str(day_of(self.as_of))
        return terms._replace(releases=tuple(release for release in terms.releases if release.built <= day))

    def readers_in(self, terms: Terms) -> list[Reader]:
        """Return the readers that --readers names.

        Raises `ReleaseError` if one does not exist.
        """
        from export_core.features.inspect.named_readers import find_readers

        return find_readers(self.readers, terms, self.policy_file) if self.readers is not None else []

    def golden(self, name: str) -> tuple[list[Golden], Golden] | None:
        """Return all goldens of the case that a name means, and the golden that it means.

        Return None if the name is not that of a golden or case. Raises `GoldenError` if the case exists without this
        writer, or if the case seems misspelled.
        """
        path = Path(name)
        is_golden = path.parent.name and (path / "golden.yaml").is_file()
        if not is_golden and os.path.lexists(name):
            return None  # before goldens are imported, and with them NumPy
        from export_core.goldens import GoldenStore

        if is_golden:
            return GoldenStore(path.parent.parent).find(f"{path.parent.name}/{path.name}")
        return GoldenStore(Path(self.goldens or policy_of(self.policy_file).goldens)).meant(name)

    def files(self, names: Sequence[str], *, newest: bool = False) -> list[str]:
        """Return the paths that these names mean: files, folders, and the artifacts of goldens.

        The name of a case means the artifacts of all its goldens, or with `newest` only of the newest golden.
        """
        paths = []
        for name in names:
            found = None if os.path.lexists(name) else self.golden(name)
            if found is None:
                paths.append(name)
                continue
            generations, golden = found
            paths += [str(one.artifact) for one in ([golden] if newest or "/" in name else generations)]
        return paths


def _asked_options(who: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the shared options to a command, and passes their values to it as `_Asked`.

    `who` begins the help text of --readers: what these readers have to do.
    """

    def add(about: Callable[..., None]) -> Callable[..., None]:
        @declared("readers", text=f"{who}: {_READERS}")
        @goldens_option
        @policy_option
        @declared("as_of", text="Ignore releases built after this day, and count days from it. [default: today]")
        @declared("jobs", text="Processes that read the files of a folder. [default: one for each core]")
        @functools.wraps(about)
        def with_asked(*args: Any, **given: Any) -> None:
            about(*args, asked=_Asked(**{name: given.pop(name) for name in _Asked.__dataclass_fields__}), **given)

        return with_asked

    return add


@command(
    "docs/reference/artifacts.md",
    "jaxexport inspect attention.jaxexport",
    "jaxexport inspect attention.jaxexport --readers 0.11.0,tensorflow==2.21.0",
    "jaxexport inspect tests.test_model.test_attention/0.9.2-cpu",
    "jaxexport inspect exported",
    section="Artifacts",
)
@_NAMES
@_asked_options("Who has to load it; the exit code says whether all do")
@json_option(
    "Print everything as one JSON object (schema/inspect.schema.json). Of a folder or of several files: an object a "
    "line for each file (schema/inventory.schema.json)."
)
@click.option("--mlir", is_flag=True, help="Print the module as text, as the installed jaxlib prints it.")
@click.pass_context
def inspect(context: click.Context, /, names: Sequence[str], asked: _Asked, as_json: bool, mlir: bool) -> None:
    """Show what is in an artifact or in a golden, who wrote it, and what can load it; or what is in a folder.

    FILE is what Exported.serialize() returned, a StableHLO portable artifact, or the folder of a SavedModel.
    CASE/WRITER is a golden as `jaxexport goldens list` prints it, or with its jaxlib alone, and CASE alone the newest
    one: its manifest, arrays and files are shown too. Nothing in it is run. The policy's releases, windows and allowed
    calls are used.

    For any other DIR, or several names, all artifacts found are counted; a CASE then means all its goldens. Hidden
    folders and virtual environments are left out unless they are named.

    Exit codes with --readers: 0 all load it, none is known not to run it, and every custom call is promised or allowed;
    1 any of these is false; 2 the file cannot be read; 3 not known whether a reader loads it. In runtimes other than
    jaxlib, calls count as promised unless only jax registers them. Without --readers: 0, or 2 if a file is unreadable.
    """
    from export_core.artifact.folders import is_archive

    golden = asked.golden(names[0]) if len(names) == 1 else None
    is_one = golden is not None or (len(names) == 1 and not is_archive(names[0]))
    if mlir + (asked.readers is not None) > is_one:
        raise click.UsageError("--mlir and --readers each need exactly one artifact, and cannot be combined.")
    if not is_one:
        context.exit(_show_inventory(asked, asked.files(names), as_json=as_json))
    from export_core.artifact import read

    artifact = golden[1].artifact if golden else names[0]
    if mlir:
        from export_core.features.inspect.printed_module import module_text

        echo(module_text(read(artifact)))
        return
    from export_core.artifact.writers import find_writer, is_rewritten
    from export_core.features.inspect.artifact_facts import converted_facts
    from export_core.features.inspect.screen import check_lines, inspect_text, load_checks

    terms = asked.terms()
    readers = asked.readers_in(terms)
    if golden:
        record = golden[1].manifest.converted_from
        converted = record is not None and record.differs_from_original
        checks = _show_golden(golden[1], golden[0], asked, terms, readers, as_json=as_json)
    else:
        read_artifact = read(names[0])
        echo(inspect_text(read_artifact, terms, readers, as_json=as_json), nl=False)
        checks = load_checks(read_artifact, terms, readers)
        facts = converted_facts(read_artifact) if checks else None
        shown_by_bytes = find_writer(read_artifact, terms.releases)
        rewritten = bool(checks) and is_rewritten(read_artifact, shown_by_bytes, terms.releases)
        converted = facts.differs_from_original if facts else rewritten
    if not as_json:
        echo(check_lines(checks, readers, converted=converted), nl=False)
    answers = {check.ok for check in checks}
    context.exit(NOT_FINE if False in answers else UNKNOWN if None in answers else FINE)


def _show_golden(
    golden: Golden,
    generations: Sequence[Golden],
    asked: _Asked,
    terms: Terms,
    readers: Sequence[Reader],
    *,
    as_json: bool,
) -> list[LoadCheck]:
    """Print what is in a golden, and return for each reader whether it loads the golden's artifact.

    For a damaged golden, the screen says what is wrong. `ExportCompatError` is raised instead of JSON, and after the
    screen if there are readers.
    """
    from export_core.artifact import ArtifactError
    from export_core.features.inspect.golden import golden_artifact, golden_screen
    from export_core.features.inspect.screen import json_text, load_checks
    from export_core.goldens import GoldenError
    from export_core.matrix import MatrixError

    policy = policy_of(asked.policy_file)
    others = [other for other in generations if other is not golden]
    try:
        inside = golden_artifact(golden, policy, terms, readers)
    except (ArtifactError, GoldenError, MatrixError) as error:
        if as_json:
            raise
        echo(golden_screen(golden, others, policy, str(error)), nl=False)
        if readers:
            raise
        return []
    echo(json_text(inside.facts) if as_json else golden_screen(golden, others, policy, inside), nl=False)
    return load_checks(inside.artifact, inside.terms, readers, inside.writer)


def _show_inventory(asked: _Asked, paths: Sequence[str], *, as_json: bool) -> int:
    """Print the inventory of the artifacts in files and folders, and return the exit code.

    Raises `ExportCompatError` if there is no artifact, or if the policy cannot be used.
    """
    from export_core.artifact import as_dict
    from export_core.artifact.folders import read_folders
    from export_core.features.inspect.inventory import Inventory, InventoryRow, inventory_row

    terms = asked.terms()
    inventory = Inventory(day_of(asked.as_of), terms.releases[-1].jaxlib if terms.releases else "")
    row_of = functools.partial(inventory_row, terms)
    for file in read_folders(row_of, paths, inventory.left_out, asked.jobs, hidden=False):
        row = file.result or InventoryRow(file.path, file.error)
        inventory.add(row)
        if as_json:
            echo_json(as_dict(row), indent=-1)
        if row.error is not None:
            echo(with_prefix(f"{row.file}: {row.error}"), err=True)
    # A log of CI has both streams: beside JSON, only errors and warnings.
    for line in () if as_json else inventory.lines():
        echo(line)
    _name_links(inventory.left_out)
    return BAD_INPUT if inventory.unread else FINE


@command(
    "docs/reference/artifacts.md",
    "jaxexport audit --readers 0.9.2 exported/a.jaxexport exported/b.jaxexport",
    "jaxexport audit exported",
    section="Artifacts",
)
@_NAMES
@_asked_options("Who also has to guarantee the calls (jaxlib) or to compile them (other runtimes)")
@click.option(
    "--writer",
    metavar="JAXLIB",
    type=RELEASE,
    help="The jaxlib that wrote all these files. [default: read from each file]",
)
@click.pass_context
def audit(context: click.Context, names: Sequence[str], asked: _Asked, writer: str | None) -> None:
    """Check every custom call against what its writer guaranteed and the policy allows.

    The parameters of `main` are checked against the artifact's envelope and its calling convention. All artifacts below
    a DIR are audited, and those with problems are shown. CASE means all goldens of the case. For a golden, the writer
    is read from its golden.yaml, and calls that its marker allowed are fine, as in a matrix.

    Exit codes: 0 no problems found, 1 a call is not guaranteed, `main` does not match the envelope, or a named runtime
    that is not jaxlib is known not to run it, 2 a file cannot be read.
    """
    from export_core.artifact.folders import LeftOut, is_archive, read_folders
    from export_core.features.inspect.audit_screen import PolicyOfGoldens, audit_text

    terms = asked.terms()
    if writer:
        policy_of(asked.policy_file).calendar().built(writer)  # raises for a name that is not a release
    below = any(map(is_archive, names))
    left_out = LeftOut()
    auditing = functools.partial(
        audit_text, terms, writer, asked.readers_in(terms), of_goldens=PolicyOfGoldens(asked.policy_file)
    )
    ended = _show_each(read_folders(auditing, asked.files(names), left_out, asked.jobs), below=below)
    if below:
        others = plural(left_out.total(), "other file")
        echo(
            f"{plural(ended.total(), 'artifact')}: {ended[True]:,} ok, {ended[False]:,} with problems, "
            f"{ended[None]:,} not read; {others} left out"
        )
        _name_links(left_out)
    context.exit(BAD_INPUT if ended[None] else NOT_FINE if ended[False] else FINE)


def _name_links(left_out: LeftOut) -> None:
    for line in left_out.lines():
        echo(line, err=True)


def _show_each(files: Iterable[ReadFile[tuple[bool | None, str]]], *, below: bool) -> Counter[bool | None]:
    """Print the text about each file; with `below`, only about files that are not fine.

    Returns the number of files that are fine (True), not fine (False), and unreadable (None).
    """
    ended: Counter[bool | None] = Counter()
    for file in files:
        fine, text = file.result or (None, f"{file.path}: {file.error}")
        ended[fine] += 1
        if fine is None:
            echo(with_prefix(text), err=True)  # the other files are still read
        elif not (fine and below):
            echo(text, nl=False)
    return ended


@command(
    "docs/reference/artifacts.md",
    "jaxexport diff old.jaxexport new.jaxexport",
    "jaxexport diff tests.test_model.test_attention/0.9.2-cpu tests.test_model.test_attention/0.12.0.1-cpu",
    section="Artifacts",
)
@_NAMES
@_asked_options("Compare also whether these load each of the two")
@click.pass_context
def diff(context: click.Context, names: Sequence[str], asked: _Asked) -> None:
    """Show what changed from the first of two artifacts to the second, with the releases and calls of the policy.

    In two folders, artifacts with the same path are compared, and those in only one folder are listed. CASE means the
    newest golden of the case. For two goldens, inputs and outputs are compared too, as the first one says.

    Exit codes: 0 the same bytes, and outputs within what is allowed; 1 different, 2 a file cannot be read.
    """
    from export_core.artifact import Artifact
    from export_core.artifact.folders import LeftOut, artifact_in, files_of, is_archive, read_folders
    from export_core.features.inspect.audit_screen import PolicyOfGoldens
    from export_core.features.inspect.difference import compare

    if len(names) != 2 or len({*map(is_archive, names)}) != 1:
        raise click.UsageError(f"expected two artifacts, or two folders of them, found {' '.join(names)}.")
    old, new = (path.rstrip("/") or path for path in asked.files(names, newest=True))
    below = is_archive(old)
    terms = asked.terms()
    comparing = functools.partial(compare, terms, asked.readers_in(terms), PolicyOfGoldens(asked.policy_file), old, new)
    left_out = LeftOut()
    ended = _show_each(read_folders(comparing, [old], left_out, asked.jobs), below=below)
    for file in files_of([new] if below else []):
        other = old + file.path.removeprefix(new)
        if file.left_out:
            left_out.add(file.path, file.left_out)
        elif not os.path.lexists(other) and isinstance(artifact_in(file), Artifact):
            ended[False] += 1
            echo(f"only in the second folder: {file.path}")
    if below:
        _name_links(left_out)
        echo(f"{ended[True]:,} the same, {ended[False]:,} different, {ended[None]:,} not read")
    context.exit(BAD_INPUT if ended[None] else NOT_FINE if ended[False] else FINE)

"""The command `jaxexport convert`: artifacts rewritten for other readers, and verified in those readers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.base.errors import ExportCompatError, with_prefix
from export_core.base.text import did_you_mean
from export_core.cli.click_options import (
    PATH,
    dry_run_option,
    goldens_option,
    json_option,
    policy_of,
    policy_option,
    quiet_option,
)
from export_core.cli.completion import GOLDEN_OR_FILE, RELEASES
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.policy.run_options import comma_separated

if TYPE_CHECKING:
    from export_core.policy import Policy

VERIFIED, REFUSED, BAD_INPUT, NOT_VERIFIED = 0, 1, 2, 3
_WORST_FIRST = (BAD_INPUT, REFUSED, NOT_VERIFIED, VERIFIED)


@command(
    "docs/how-to/convert.md",
    "jaxexport convert exported/a.jaxexport --for 0.9.2 -o a-for-0.9.2.jaxexport",
    "jaxexport convert exported/*.jaxexport --for 0.8.1,0.9.2 --replace-custom-calls -o converted",
    "jaxexport convert exported/a.jaxexport --for tensorflow==2.18.1 -o a-for-tensorflow.jaxexport",
    "jaxexport convert exported/a.jaxexport --for serving -o a-for-serving.jaxexport",
    section="Artifacts",
)
@click.argument("files", metavar="FILE|CASE/WRITER…", type=GOLDEN_OR_FILE, nargs=-1, required=True)
@click.option(
    "--for",
    "readers",
    metavar="READER,…",
    type=RELEASES,
    required=True,
    help="The readers, one artifact for each: a jaxlib; another runtime, such as tensorflow==2.18.1, or iree "
    "for its newest release; or a deployment target of the policy (`deployed`), by its name.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    type=PATH,
    required=True,
    help="The file for the converted artifact; a folder for several files or readers, and for goldens.",
)
@click.option(
    "--replace-custom-calls",
    is_flag=True,
    help="Replace custom calls of LAPACK that the reader does not take: by its newer functions, or by what XLA expands "
    "itself.",
)
@click.option(
    "--via",
    type=click.Choice(["rewrite", "export", "auto"]),
    default="rewrite",
    show_default=True,
    help="rewrite: change the artifact's bytes. export: let a release that reads it export it again, for one device. "
    "auto: rewrite, and export where that is refused.",
)
@click.option("--inputs", metavar="NPZ", type=PATH, help="Flat arguments to verify it with, if no golden has it.")
@click.option("--outputs", metavar="NPZ", type=PATH, help="The flat results that they must give.")
@goldens_option
@policy_option
@click.option(
    "--replace",
    metavar="NAME",
    multiple=True,
    help="A file, or a golden as CASE/WRITER, that may be replaced; may be given several times. Without it, existing "
    "files stay, except the one that OUT names.",
)
@dry_run_option("Only show what would be converted and where it would go, or why not.")
@json_option(
    "Print each record as JSON (schema/converted.schema.json), or why there is none (schema/conversion.schema.json)."
)
@quiet_option
@click.pass_context
def convert(
    context: click.Context, /, files: Sequence[str], readers: str, output: str, dry_run: bool, **values: Any
) -> None:
    """Rewrite an artifact for another release or another runtime, and verify it there.

    FILE is an artifact, or the folder of a golden. It is never changed. The reader runs the converted artifact in a
    cold process; its outputs are compared with those of the golden that has the artifact, in --goldens. Beside OUT,
    OUT.converted.json says what it was made of and what was verified.

    Exit codes: 0 converted and verified, 1 refused (nothing is written for that reader), 2 bad input, 3 converted and
    not verified, or no environment could be built. For several conversions, the first of 2, 1, 3 and 0.
    """
    from export_core.cli.steps import Steps
    from export_core.features.convert.conversions import ConversionOutcome, Conversions, check_targets, targets_of
    from export_core.goldens.conversion_record import CONVERTED, record_file
    from export_core.goldens.store import ARTIFACT
    from export_core.releases.names import title_of

    given = (values.pop("inputs"), values.pop("outputs"))
    arrays = [Path(file) for file in given if file is not None]
    if len(arrays) == 1 or (arrays and len(files) > 1):
        raise click.UsageError("--inputs and --outputs must be given together, and with exactly one FILE.")
    policy = policy_of(values.pop("policy_file"))
    goldens = _goldens(values.pop("goldens"), policy)
    paths = [path for name in files for path in _paths_of(name, goldens)]
    targets = targets_of(paths, _reader_names(readers, policy), output)
    check_targets(targets, output)
    # A single file is named by --output itself.
    values["replace"] += tuple(str(target.path) for target in targets if target.path == Path(output))
    as_json = values.pop("as_json")
    notify = Steps(quiet=values.pop("quiet"))
    conversions = Conversions(policy, notify, goldens, arrays, **values)
    codes: set[int] = set()
    problems: set[str] = set()
    for target in targets:
        try:
            with notify:
                if dry_run:
                    conversions.check(target)
                record = None if dry_run else conversions.run(target)
        except ExportCompatError as error:
            # What is wrong with the file itself is said once, not for each reader.
            if str(error) not in problems:
                echo(with_prefix(error), err=True)
            problems.add(str(error))
            codes.add(error.exit_code)
            if as_json:
                echo_json(ConversionOutcome(target.name, target.reader, error.exit_code, str(error)), indent=-1)
            continue
        if record is None:
            codes.add(VERIFIED)
            if as_json:
                echo_json(ConversionOutcome(target.name, target.reader, VERIFIED), indent=-1)
                continue
            echo(f"{target.written}: would be {target.name}, converted for {title_of(target.reader)}")
            continue
        codes.add(VERIFIED if record.verdict == CONVERTED else NOT_VERIFIED)
        if as_json:
            echo_json(record, indent=-1)
            continue
        origin = record.converted_from
        echo(f"{target.written}: {record.verdict}: {record.message}")
        echo(f"  {origin.way}: {record.why}")
        for rewrite in origin.rewrites:
            echo(f"  - {rewrite}")
        record_path = record_file(target.written / ARTIFACT if target.is_golden else target.written)
        if record_path.exists():  # a golden that comes out unchanged has none
            echo(f"  record: {record_path}")
    context.exit(min(codes, key=_WORST_FIRST.index))


def _paths_of(name: str, goldens: Path | None) -> list[str]:
    """Return the path itself, or the folders of the goldens that a name means.

    Raises `GoldenError` for a writer that a case does not have, and for a misspelled case.
    """
    from export_core.goldens import GoldenStore

    found = None if goldens is None or os.path.lexists(name) else GoldenStore(goldens).meant(name)
    if found is None:
        return [name]
    generations, golden = found
    return [str(each.folder) for each in ([golden] if "/" in name else generations)]


def _goldens(named: str | None, policy: Policy) -> Path | None:
    """Return the folder of goldens, or None if it does not exist.

    Raises `ConversionError` if `named`, the value of `--goldens`, is not a folder.
    """
    from export_core.features.convert.errors import ConversionError

    folder = Path(named or policy.goldens)
    if named and not folder.is_dir():
        raise ConversionError(f"--goldens {named}: expected a folder of goldens, found none.")
    return folder if folder.is_dir() else None


def _reader_names(readers: str, policy: Policy) -> list[str]:
    """Return the readers that `--for` names; a deployment target stands for the release that it runs."""
    from export_core.matrix.selection import reader_named
    from export_core.releases.runtimes import known_runtimes, names_runtime

    named = comma_separated(readers)
    if not named:
        raise click.UsageError("--for expects a reader, such as --for 0.9.2 or --for tensorflow==2.18.1.")
    # Settings change nothing of what a jaxlib reads; of another runtime they are a part of its name.
    targets = {target.name: target.jaxlib or target.release for target in policy.deployed}
    names = dict.fromkeys(targets.get(name, name) for name in named)
    if unknown := [name for name in names if name.isalpha() and not names_runtime(name)]:
        raise click.UsageError(
            f"--for: expected a release such as 0.9.2 or tensorflow==2.18.1, or a deployment target of the policy "
            f"({', '.join(targets) or 'it has none'}), found {unknown[0]!r}."
            f"{did_you_mean(unknown[0], [*targets, *known_runtimes()])}"
        )
    return [reader_named(name, policy.calendar()).name if names_runtime(name) else name for name in names]

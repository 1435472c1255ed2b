"""`jaxexport convert`: artifacts made into ones that other readers take, verified in those readers."""

import datetime
from collections.abc import Sequence
from pathlib import Path

import click

from export_core.base.errors import PREFIX, ExportCompatError
from export_core.base.phrases import did_you_mean, plural
from export_core.cli.click_options import (
    PATH,
    as_of_option,
    day_of,
    dry_run_option,
    goldens_option,
    json_option,
    policy_of,
    policy_option,
    quiet_option,
)
from export_core.cli.help import command
from export_core.cli.output import echo, echo_json
from export_core.policy.run_options import comma_separated

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
@click.argument("files", metavar="FILE|DIR…", type=PATH, nargs=-1, required=True)
@click.option(
    "--for",
    "readers",
    metavar="READER,…",
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
@click.option(
    "--expiring",
    metavar="DAYS|DATE",
    help="Convert those artifacts of each folder DIR that have left the window, or leave it within so many days (30d) "
    "or until a date.",
)
@as_of_option
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
@dry_run_option("Only show what would be converted, and where it would go.")
@json_option("Print each record as JSON (schema/converted.schema.json).")
@quiet_option
@click.pass_context
def convert(
    context: click.Context,
    files: Sequence[str],
    readers: str,
    output: str,
    replace_custom_calls: bool,
    via: str,
    expiring: str | None,
    as_of: str | None,
    inputs: str | None,
    outputs: str | None,
    goldens: str | None,
    policy_file: str | None,
    replace: Sequence[str],
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Rewrite an artifact for another release or another runtime, and verify it there.

    FILE is an artifact, or the folder of a golden. It is never changed. DIR, with --expiring, is a folder of them: OUT
    then gets the same folders. The reader runs the converted artifact in a cold process; its outputs are compared with
    those of the golden that has the artifact, in --goldens. Beside OUT, OUT.converted.json says what it was made of and
    what was verified.

    Exit codes: 0 converted and verified, 1 refused (nothing is written), 2 bad input, 3 converted and not verified, or,
    with --expiring, an artifact of which the last promised day is not known.
    """
    from export_core.cli.steps import Steps
    from export_core.features.convert.conversions import Conversions, check_targets, expiring_targets, targets_of
    from export_core.features.convert.errors import ConversionError
    from export_core.features.convert.programs import ModuleRewriter
    from export_core.goldens.conversion_record import CONVERTED
    from export_core.matrix.selection import reader_named
    from export_core.policy.terms import terms_here
    from export_core.releases.names import title_of
    from export_core.releases.runtimes import known_runtimes, names_runtime

    names = list(comma_separated(readers))
    if not names:
        raise click.UsageError("--for expects a reader, such as --for 0.9.2 or --for tensorflow==2.18.1.")
    if (inputs is None) != (outputs is None) or (inputs and len(files) > 1):
        raise click.UsageError("--inputs and --outputs belong together, to one FILE.")
    notify = Steps(quiet=quiet)
    policy = policy_of(policy_file)
    calendar = policy.calendar()
    targets_by_name = {target.name: target.release for target in policy.deployed}
    names = [targets_by_name.get(name, name) for name in names]
    if unknown_names := [name for name in names if name.isalpha() and not names_runtime(name)]:
        known = ", ".join(targets_by_name) or "it has none"
        raise click.UsageError(
            f"--for: expected a release such as 0.9.2 or tensorflow==2.18.1, or a deployment target of the policy "
            f"({known}), found {unknown_names[0]!r}."
            f"{did_you_mean(unknown_names[0], [*targets_by_name, *known_runtimes()])}"
        )
    names = [reader_named(name, calendar).name if names_runtime(name) else name for name in dict.fromkeys(names)]
    codes: set[int] = set()
    if expiring is None:
        targets = targets_of(files, names, output)
    else:
        last_day = _last_day(expiring, as_of)
        targets, problems, unknown = expiring_targets(files, names, output, terms_here(policy_file), last_day)
        for problem in problems:
            echo(f"{PREFIX}{problem}", err=True)
            codes.add(BAD_INPUT)
        if unknown:
            echo(f"left out: {plural(unknown, 'artifact')} whose last promised day is not known", err=True)
            codes.add(NOT_VERIFIED)
        if not targets:
            codes.add(VERIFIED)
            echo(f"no artifact leaves the window by {last_day}: nothing to convert")
    check_targets(targets, output)
    if dry_run:
        for target in targets:
            echo(f"{target.written}: would be {target.name}, converted for {title_of(target.reader)}")
        context.exit(next((code for code in _WORST_FIRST if code in codes), VERIFIED))
    folder = Path(goldens or policy.goldens)
    if goldens and not folder.is_dir():
        raise ConversionError(f"--goldens {goldens}: expected a folder of goldens, found none.")
    conversions = Conversions(
        policy=policy,
        calendar=calendar,
        rewrite_modules=ModuleRewriter(calendar, notify),
        goldens=folder if folder.is_dir() else None,
        arrays=(Path(inputs), Path(outputs)) if inputs and outputs else None,
        replace_custom_calls=replace_custom_calls,
        via=via,
        notify=notify,
        # A single file is named by --output itself.
        replace=[*replace, *(str(target.path) for target in targets if target.path == Path(output))],
    )
    for target in targets:
        try:
            with notify:
                record = conversions.run(target)
        except ExportCompatError as error:
            echo(f"{PREFIX}{error}", err=True)
            codes.add(error.exit_code)
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
    context.exit(next(code for code in _WORST_FIRST if code in codes))


def _last_day(text: str, as_of: str | None) -> datetime.date:
    """The day that ``30d`` or a date stands for."""
    if (number := text.removesuffix("d")).isdecimal() and len(number) <= 5:
        return day_of(as_of) + datetime.timedelta(int(number))
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--expiring: expected days such as 30d, or a date, found {text!r}.") from None

"""Options that several commands share, and the functions that turn their values into what commands use."""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from export_core.base.errors import UNFORESEEN, ExportCompatError, report_unforeseen, with_prefix
from export_core.base.exit_code import ExitCode
from export_core.base.streams import drop_output
from export_core.cli.completion import CASE, RELEASE, RELEASES
from export_core.cli.output import echo, is_written, safe_console
from export_core.policy.run_options import DEFAULTS, OPTIONS
from export_core.releases.windows import parse_day

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

    from export_core.goldens import GoldenStore
    from export_core.policy import Policy
    from export_core.policy.run_options import Option
    from export_core.releases import Calendar
    from export_core.report.document import RunDifference
    from export_core.run.run import Run

PATH = click.Path(readable=False)
"""The type of a file or a folder, which shells complete. Click does not check it: the command says what is wrong."""

rejudge_day_option = click.option(
    "--as-of", metavar="DATE", help="Judge as of this day, such as 2026-10-25. [default: that of the run]"
)
full_option = click.option(
    "--full", is_flag=True, help="In the terminal: every cell, and all evidence of every finding."
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask first.")
baseline_option = click.option(
    "--baseline",
    "baselines",
    metavar="OLD",
    type=PATH,
    multiple=True,
    help="Folder of an earlier run: also show what is different from it. Given several times, the page shows "
    "the history of each cell and compares any two runs; the newest is the baseline.",
)


def json_option(text: str) -> Callable[[Command], Command]:
    """Return the option --json, with `text` as its help.

    The option is a flag, since JSON goes to standard output.
    """
    return click.option("--json", "as_json", is_flag=True, help=text)


def results_option(text: str) -> Callable[[Command], Command]:
    """Return the option --results, with `text` as its help. Its value is None if it is not given."""
    return click.option("--results", metavar="DIR", type=PATH, help=text)


def dry_run_option(text: str) -> Callable[[Command], Command]:
    """Return the option --dry-run, with which a command only shows what it would do; `text` is its help."""
    return click.option("--dry-run", is_flag=True, help=text)


def hook_of(hook: str, kind: type[_Hook], option: str) -> _Hook:
    """Return the function of a feature that implements an option of a kernel command.

    `hook` is the name of the hook that features implement, and `kind` its type. Raises `click.UsageError`, which names
    `option`, if no installed feature has the hook.
    """
    from export_core.base.feature import hooks

    for function in hooks(hook, kind):
        return function
    raise click.UsageError(
        f"{option} needs a feature that this copy of pytest-jaxexport lacks. Install the whole package."
    )


def is_confirmed(question: str, *, yes: bool, dry_run: bool) -> bool:
    """Return whether to remove the listed items: True with --yes, False with --dry-run, else the user's answer.

    Raises `click.UsageError` if there is neither option, and no terminal to ask on.
    """
    if yes or dry_run:
        return not dry_run
    if sys.stdin.isatty() and sys.stderr.isatty():
        return click.confirm(question, err=True)
    raise click.UsageError(
        "nothing was removed: there is no terminal to ask at. --yes removes without asking, --dry-run only shows."
    )


class Project(NamedTuple):
    """The goldens and the policy of a command."""

    store: GoldenStore
    policy: Policy
    policy_file: str | None = None  # The file that --policy names.
    goldens: str | None = None  # The folder that --goldens names.


def project_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --goldens and --policy to a command, and pass it the `Project` that they name as its first argument."""

    @goldens_option
    @policy_option
    @functools.wraps(command)
    def with_project(goldens: str | None, policy_file: str | None, **options: object) -> None:
        from export_core.goldens import GoldenStore

        policy = policy_of(policy_file)
        command(Project(GoldenStore(Path(goldens or policy.goldens)), policy, policy_file, goldens), **options)

    return with_project


STDOUT = "-"
_FORMATS = {
    "html": ("page:html_page", "Write one self-contained page with all details of every cell."),
    "markdown": (
        "markdown:markdown_text",
        "Write causes, a map and folded details, short enough for a comment on GitHub.",
    ),
    "junit": ("junit:junit_xml", "Write JUnit XML: a test case for each golden and reader, and one for the run."),
    "svg": ("map_svg:map_picture", "Draw the map of writers and readers as SVG."),
    "sarif": ("sarif:sarif_file", "Write SARIF for code scanning: a rule for each cause."),
}
"""The formats of reports: the function in report/ that makes a file, which is imported only if needed; and the help."""
_NO_WIDTH = 10_000
"""The width of a console that is a file or a CI log: each sentence is on one line there, and can be searched for."""


class FiniteRange(click.FloatRange):
    """The type of a finite number in a range. Click's own type accepts NaN, and a limit of NaN limits nothing."""

    def __init__(self, option: Option) -> None:
        super().__init__(option.least, option.most)
        self.option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises `click.BadParameter` if it is not finite, or not in the range."""
        if not math.isfinite(click.FLOAT.convert(value, param, ctx)):
            self.fail(f"expected a finite number, found {value}.", param, ctx)
        number = super().convert(value, param, ctx)
        if not self.option.allows(number):
            self.fail(f"expected 0 for no limit, or {self.option.above_zero:g} or more, found {value}.", param, ctx)
        return number


_COMPLETED = {"cases": CASE, "writers": RELEASES, "readers": RELEASES, "touching": RELEASE}
"""The type by which shells complete the option that `run_options` declares as this field."""

Command = TypeVar("Command", bound="Callable[..., Any]")
_Hook = TypeVar("_Hook")


def declared(name: str, *, text: str = "") -> Callable[[Command], Command]:
    """Return the option that `run_options` declares as the field `name`, with `text` as its help if that is given."""
    option, default = OPTIONS[name], DEFAULTS[name]
    if option.of_policy or default in ("", ()):
        default = None
    elif default is not None and option.kind is not bool:
        text_of_default = option.write(default)
        default = option.kind(text_of_default) if option.kind in (int, float) else text_of_default
    kind: Any = PATH if option.kind is Path else _COMPLETED.get(name)
    if isinstance(option.kind, tuple):
        kind = click.Choice(option.kind)
    elif option.kind in (int, float):
        whole = click.IntRange(option.least, option.most)  # type: ignore[arg-type]
        kind = whole if option.kind is int else FiniteRange(option)
    return click.option(
        option.flag,
        name,
        metavar=option.metavar,
        type=kind,
        is_flag=option.kind is bool,
        multiple=option.multiple,
        default=default,
        show_default=default is not None and default is not False,
        help=text or option.help,
    )


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds these options to a command, in this order in its help."""
    # Reversed: the option that is applied last is shown first.
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


goldens_option = declared("goldens")
policy_option = declared("policy_file")
as_of_option = declared("as_of")
wheels_option = declared("wheels")
index_option = declared("indexes")


def policy_of(named: str | None) -> Policy:
    """Return the policy in the file `named`; if that is None, the policy of the project in the working folder."""
    from export_core.policy import find_policy

    return find_policy(Path(), named)


def report_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each report format to a command, which gets the named files, by format, as `files`."""

    @functools.wraps(command)
    def with_files(**options: Any) -> None:
        named = {name: options.pop(name) for name in _FORMATS}
        check_outputs(list(named.values()))
        command(files={name: file for name, file in named.items() if file}, **options)

    options = (click.option(f"--{name}", metavar="FILE", help=text) for name, (_, text) in _FORMATS.items())
    return with_options(*options)(with_files)


def write_reports(files: Mapping[str, str], run: Run, comparison: RunDifference | None = None) -> None:
    """Write the reports of a run into `files`, by format. Raises `ReportError` if a file cannot be written."""
    from dataclasses import replace

    from export_core.report.view import view

    document = view(run, comparison)
    for name, file in files.items():
        module, _, function = _FORMATS[name][0].partition(":")
        own = replace(document, folder=None if file == STDOUT else Path(file).parent)
        written = getattr(importlib.import_module(f"export_core.report.{module}"), function)(own)
        write_output(file, written if isinstance(written, bytes) else written.encode())


@contextlib.contextmanager
def keeping_exit_code(exit_code: int) -> Iterator[None]:
    """Keep the exit code of a run if the ``with`` block, which reports the run, fails: the error is only printed.

    If the exit code is 0, the command ends with 3, since success must not hide a missing report. An unforeseen error
    is then raised. Nothing is printed if the report's reader has closed the pipe.
    """
    missing = int(ExitCode.INCOMPLETE)
    try:
        yield
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            if not exit_code:
                raise
            drop_output(sys.stdout)
            return
        if isinstance(error, ExportCompatError):
            echo(with_prefix(error), err=True)
        elif not exit_code and not isinstance(error, OSError):
            raise
        elif report_unforeseen(error, effect="a report is missing") == UNFORESEEN:
            missing = UNFORESEEN
    else:
        if is_written():
            return
    if exit_code:
        echo(f"The run is judged, and the exit code is its own: {exit_code}.", err=True)
        return
    echo(f"The run is judged and kept: the exit code is {missing}, not 0, since a report is missing.", err=True)
    raise click.exceptions.Exit(missing)


fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["outside", "bonus-lost"]),
    multiple=True,
    help="Also fail the run if a cell outside its window fails other than by a refusal (outside), or worked in "
    "--baseline of judge or report and fails now (bonus-lost); may be given several times. [default: the policy's]",
)


def check_fail_on(kinds: Sequence[str], baselines: Sequence[str]) -> None:
    """Raise `click.UsageError` if `kinds` has `bonus-lost`, and there is no baseline that shows what worked before."""
    if "bonus-lost" in kinds and not baselines:
        raise click.UsageError("--fail-on bonus-lost needs --baseline OLD, an option of judge and report.")


def with_fail_on(policy: Policy, kinds: Sequence[str]) -> Policy:
    """Return the policy with `kinds`, the values of --fail-on, added to its `fail_on`."""
    import msgspec

    return msgspec.structs.replace(policy, fail_on=tuple(dict.fromkeys((*policy.fail_on, *kinds))))


def fail_on_words(kinds: Sequence[str]) -> list[str]:
    """Return the words with which a command line gives --fail-on these values."""
    return [word for kind in kinds for word in ("--fail-on", kind)]


def day_of(as_of: str | None, calendar: Calendar | None = None) -> datetime.date:
    """Return the day that `as_of` names, or today (in UTC) if it is None.

    Raises `ReleaseError` if it is None and `calendar` has a jaxlib that was built after today.
    """
    if as_of:
        return parse_day(as_of)
    return calendar.today() if calendar else datetime.datetime.now(tz=datetime.UTC).date()


def console(*, stderr: bool = False) -> Console:
    """Return a console for text that people read, on standard output or stderr.

    A closed pipe or a full disk only loses text, and never ends a run.
    """
    stream = sys.stderr if stderr else sys.stdout
    made = safe_console(stream)
    return made if made.is_terminal else safe_console(stream, width=_NO_WIDTH)


def check_outputs(files: Sequence[str | None]) -> None:
    """Check the files that a command is to write, before it does anything else.

    Raises:
        click.UsageError: Two formats would be written into the same file.
        RunError: A file is a link, a file of a golden, a policy or a run, or where nothing can be written.
    """
    if list(files).count(STDOUT) > 1:
        raise click.UsageError("- is standard output: only one format can be written to it.")
    named = [os.path.realpath(file) for file in files if file and file != STDOUT]
    if twice := next((file for file in named if named.count(file) > 1), ""):
        raise click.UsageError(f"expected a different file for each format, found {twice} twice.")
    if named:
        from export_core.run.named_outputs import check_output

        policy = click.get_current_context().params.get("policy_file")
        for file in files:
            if file and file != STDOUT:
                check_output(Path(file), policy)


def write_output(name: str, data: bytes) -> None:
    """Write `data` into the file `name`, all or nothing, or to standard output if `name` is -.

    `check_outputs` must have allowed the file.

    Raises:
        BrokenPipeError: The output is a pipe whose reader has closed it.
        ReportError: The output cannot be written for another reason.
    """
    from export_core.base.atomic import write_whole
    from export_core.base.text import plural
    from export_core.report.document import ReportError

    if name == STDOUT:
        click.echo(data, nl=False)
        return
    path = Path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [data])
    except BrokenPipeError:  # such as /dev/stdout: nobody reads it any more, as with -
        raise
    except OSError as error:
        raise ReportError(f"{name}: cannot write there: {error.strerror or error}.") from error
    # On stderr, since another format may go to standard output.
    echo(f"{name}: {f'{len(data) / 1e3:.0f} kB' if len(data) >= 1000 else plural(len(data), 'byte')}", err=True)

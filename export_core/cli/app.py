"""The command `jaxexport` with all its subcommands, each of which has a file of its own in this folder or a feature."""

import contextlib
import platform
import sys
import traceback
from typing import Any

import click

from export_core.base.errors import PREFIX, ExportCompatError, report_unforeseen, with_prefix
from export_core.base.feature import feature_commands
from export_core.base.streams import NOBODY_READS, drop_output
from export_core.cli.environments import environments
from export_core.cli.goldens import goldens_group
from export_core.cli.help import PACKAGE, HelpfulGroup, meant_option
from export_core.cli.judge import judge
from export_core.cli.matrix import matrix
from export_core.cli.output import code_of_lost_output, echo
from export_core.cli.policy import policy_group
from export_core.cli.releases import releases
from export_core.cli.report import report
from export_core.cli.signals import Interrupted, terminable

_COMMANDS = (goldens_group, matrix, judge, report, releases, policy_group, environments)
"""The commands of the kernel, in the order of the help."""
_FIRST = (
    ("pytest --update-goldens", "Write a golden of each test with the mark export_compat."),
    ("jaxexport matrix", "Run every golden in other releases, and say which promises are broken."),
    ("jaxexport report --open", "See what is broken, and why, in a browser."),
)
"""The first commands in a project, in this order."""


class UnexpectedExitError(ExportCompatError):
    """An error for a command that a `SystemExit` from other code ended early: part of its work may be missing."""

    exit_code = 3


class _Commands(HelpfulGroup):
    """The group of all commands. Commands end with click's `Exit`, so a `SystemExit` can only come from other code."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the purpose of the program, and the three commands that come first."""
        super().format_help_text(ctx, formatter)
        with formatter.section("First"):
            formatter.write_dl(_FIRST)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the user typed. Raises `UnexpectedExitError` if other code ends it by a `SystemExit`.

        The exit code is `NOBODY_READS` if the reader of standard output has closed the pipe.
        """
        try:
            return super().invoke(ctx)
        except SystemExit as stop:
            *_, frame = traceback.extract_tb(stop.__traceback__)
            raise UnexpectedExitError(
                f"{frame.filename}:{frame.lineno}: SystemExit({stop.code!r}) ended `jaxexport "
                f"{ctx.invoked_subcommand}` before it was done. Nothing was judged."
            ) from stop
        except BrokenPipeError:  # click would end with 1, which is an answer
            drop_output(sys.stdout)
            ctx.exit(NOBODY_READS)


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the versions of this package, jax, jaxlib and Python in one line, and end the command, if `asked`."""
    if not asked or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    versions = dict.fromkeys((PACKAGE, "jax", "jaxlib"), "not installed")
    for package in versions:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    own, jax, jaxlib = versions.values()
    echo(f"jaxexport {own}, jax {jax}, jaxlib {jaxlib}, Python {platform.python_version()}")
    ctx.exit()


@click.group(
    cls=_Commands,
    page="docs/index.md",
    examples=("jaxexport matrix", "jaxexport report --html report.html"),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, with those of jax, jaxlib and Python.",
)
def jaxexport() -> None:
    """Will this exported JAX function still run there: in another release, on another platform?"""


for _command in _COMMANDS:
    jaxexport.add_command(_command)
for _words, _of_feature in feature_commands(click.Command):
    _group, _, _name = _words.rpartition(" ")
    _parent = jaxexport.commands[_group] if _group else jaxexport
    assert isinstance(_parent, HelpfulGroup)
    _parent.commands.add_later(_name, _of_feature)


def main() -> None:
    """Run the command line, and end the process. An error that the user can fix is one line without a traceback."""
    try:
        # Not standalone: click would print its own errors, with another prefix.
        with terminable():
            exit_code = jaxexport(prog_name="jaxexport", standalone_mode=False) or 0
        sys.exit(exit_code or code_of_lost_output())  # any other code is an answer, which stays
    except ExportCompatError as error:
        echo(with_prefix(error), err=True)
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:  # a group without a command: its help
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        text = error.format_message()
        if context and isinstance(error, click.NoSuchOption):
            meant = meant_option(context, error.option_name, error.possibilities or ())
            text = f"No such option: {error.option_name}.{meant}"
        what = "commands" if context and isinstance(context.command, click.Group) else "options"
        hint = f" `{context.command_path} --help` shows the {what}." if context else ""
        echo(f"{PREFIX}{' '.join(text.split())}{hint}", err=True)
        sys.exit(error.exit_code)
    except click.Abort as error:
        echo(f"{PREFIX}interrupted.", err=True)
        # As a shell says it; 1 would be a broken promise.
        sys.exit(error.__cause__.exit_code if isinstance(error.__cause__, Interrupted) else 130)
    except Exception as error:  # with Python's own exit code, 1, it would be an answer
        sys.exit(report_unforeseen(error))

"""The help of commands: in sections, in whole sentences, each with examples and a link to a page of docs/.

The decorators `command` and `group` are click's, with arguments for what the help shows. For a command or option that
does not exist, a sentence suggests the one that is probably meant.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import click

from export_core.policy.run_options import ONE_OF_SEVERAL

SECTIONS = ("Artifacts", "Goldens", "Matrix", "Why", "Days", "Project", "Others")
"""The sections of the help, in their order. A command that names no section is in the last one."""

PACKAGE = "pytest-jaxexport"

_OTHER_NUMBER = {**ONE_OF_SEVERAL, **{one: several for several, one in ONE_OF_SEVERAL.items()}}
"""The singular of each option in the plural, and the plural of each in the singular."""


class HelpfulCommand(click.Command):
    """A command whose help ends with examples, which people copy, and a link to a page of docs/."""

    def __init__(
        self, *args: Any, page: str = "docs/index.md", examples: Sequence[str] = (), section: str = "Others", **kw: Any
    ) -> None:
        super().__init__(*args, **kw)
        self.page, self.examples, self.section = page, examples, section

    def make_parser(self, ctx: click.Context) -> Any:
        """Return click's parser, which also takes an option in singular or plural, such as `--case` for `--cases`."""
        parser = super().make_parser(ctx)
        for param in self.get_params(ctx):
            if other := [_OTHER_NUMBER[name] for name in param.opts if name in _OTHER_NUMBER]:
                alias = copy.copy(param)
                alias.opts = other
                alias.add_to_parser(parser, ctx)
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line. Raises `click.UsageError` for an option in place of another one's value.

        Click would take it as the value: in `--unpromised --shard=1/2`, the shard as the reason.
        """
        if not ctx.resilient_parsing:
            self._require_values(ctx, args)
        return super().parse_args(ctx, args)

    def _require_values(self, ctx: click.Context, args: Sequence[str]) -> None:
        """Raise `click.UsageError` if the word after an option that takes a value is an option of this command."""
        takes_value: dict[str, bool] = {}
        for param in self.get_params(ctx):
            names = [*param.opts, *param.secondary_opts]
            names += [_OTHER_NUMBER[name] for name in param.opts if name in _OTHER_NUMBER]
            if isinstance(param, click.Option):
                # With a value of its own as a flag, click itself takes no option for its value.
                has_value = not (param.is_flag or param.count or isinstance(param.flag_value, str))
                takes_value.update(dict.fromkeys(names, has_value))
        words = iter(args)
        for word in words:
            if word == "--":
                return
            value = next(words, "") if takes_value.get(word) else ""
            if value == "--" or value.partition("=")[0] in takes_value:
                raise click.UsageError(
                    f"{word}: expected a value, found the option {value}. Give the value; one that begins with a dash "
                    f"is written as {word}=VALUE.",
                    ctx,
                )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and the link to the page, at the end of the help."""
        if self.examples:
            with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
                for example in self.examples:
                    # Not wrapped: a command is copied as it is.
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")
        formatter.write(f"\nDocumentation: {docs_link(self.page)}\n")


class LazyCommands(MutableMapping[str, click.Command]):
    """The commands of a group by name. A feature's command is imported when it is looked up, not when it is listed."""

    def __init__(self, commands: Mapping[str, click.Command]) -> None:
        self._commands: dict[str, click.Command | Callable[[], click.Command]] = dict(commands)

    def add_later(self, name: str, load: Callable[[], click.Command]) -> None:
        """Add a command that `load` imports and returns, when `name` is first looked up."""
        self._commands[name] = load

    def __getitem__(self, name: str) -> click.Command:
        found = self._commands[name]
        if not isinstance(found, click.Command):
            found = self._commands[name] = found()
        return found

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._commands[name] = command

    def __delitem__(self, name: str) -> None:
        del self._commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


class HelpfulGroup(HelpfulCommand, click.Group):
    """A group whose help lists each command with its whole first sentence; for `jaxexport` itself, in sections."""

    commands: LazyCommands

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = LazyCommands(self.commands)

    def command(self, page: str, *examples: str, **kw: Any) -> Callable[[Callable[..., Any]], click.Command]:  # type: ignore[override]
        """Return a decorator that makes a command of this group; the arguments are those of the function `command`."""
        return super().command(cls=HelpfulCommand, page=page, examples=examples, **kw)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names, with its name and the other words.

        Raises `click.UsageError` for an unknown word, with the command that is probably meant.
        """
        # From 8.4 on, click itself suggests a command for a misspelled word.
        if args[0] not in self.commands and (meant := meant_command(ctx, args[0])):
            raise click.UsageError(f"No such command: {args[0]}.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def in_sections(self) -> dict[str, list[click.Command]]:
        """Return the commands by section, in the order in which they were added; empty sections are left out."""
        sections: dict[str, list[click.Command]] = {section: [] for section in SECTIONS}
        for listed in self.commands.values():
            sections[getattr(listed, "section", SECTIONS[-1])].append(listed)
        return {section: commands for section, commands in sections.items() if commands}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands for each section; for a group inside `jaxexport`, one list of all its commands."""
        names = self.list_commands(ctx)
        width = max(map(len, names), default=0)
        sections = self.in_sections() if ctx.parent is None else {"Commands": [self.commands[name] for name in names]}
        for title, commands in sections.items():
            rows = []
            for listed in commands:
                text = " ".join((listed.help or "").split("\n\n")[0].split())
                rows.append((str(listed.name).ljust(width), f"{text.split('. ')[0].rstrip('.')}."))
            with formatter.section(title):
                formatter.write_dl(rows)


def command(page: str, *examples: str, **kw: Any) -> Callable[[Callable[..., Any]], HelpfulCommand]:
    """Return a decorator that makes a command whose help shows `examples` and a link to `page`, a page of docs/.

    Other arguments are those of click, and `section`: the section of the help that lists the command.
    """
    return click.command(cls=HelpfulCommand, page=page, examples=examples, **kw)


def group(page: str, *examples: str, **kw: Any) -> Callable[[Callable[..., Any]], HelpfulGroup]:
    """Return a decorator that makes a group of commands; the arguments are those of `command`."""
    return click.group(cls=HelpfulGroup, page=page, examples=examples, **kw)


def docs_link(page: str) -> str:
    """Return the web address of a page of docs/, or the page's path if the package names no site."""
    from importlib.metadata import metadata

    urls: Iterable[Any] = metadata(PACKAGE).get_all("Project-URL") or ()
    site = next((url for label, _, url in (entry.partition(", ") for entry in urls) if label == "Documentation"), "")
    return (
        f"{site.rstrip('/')}/{page.removeprefix('docs/').removesuffix('.md')}.html"
        if site
        else f"{page}, in the repository of {PACKAGE}"
    )


_COMMANDS = {
    "badge": "jaxexport report --badge FILE",
    "check": "jaxexport audit FILE",
    "clean": "jaxexport environments clean",
    "compare": "jaxexport judge NEW --baseline OLD",
    "goldens coverage": "jaxexport goldens list --coverage",
    "goldens delete": "jaxexport goldens prune",
    "goldens noise": "jaxexport goldens verify --noise",
    "list": "jaxexport goldens list",
    "merge": "jaxexport judge DIR DIR --results MERGED",
    "open": "jaxexport report --open",
    "plan": "jaxexport matrix --dry-run",
    "policy known": "jaxexport policy show --known",
    "policy schema": "jaxexport policy show --schema",
    "readers": "jaxexport releases list",
    "trend": "jaxexport report --trend",
    **dict.fromkeys(("run", "test", "replay"), "jaxexport matrix"),
    **dict.fromkeys(("export", "update", "goldens update"), "pytest --update-goldens"),
    **dict.fromkeys(("show", "goldens show"), "jaxexport inspect CASE/WRITER"),
}
"""The commands that are meant by words that people type after `jaxexport`."""
_OUTPUTS = ("-o", "--out", "--output", "--outdir", "--out-dir", "--output-dir", "--output-folder")
_OPTIONS = {
    **dict.fromkeys(("--delete", "--force", "-y"), ("--yes",)),
    **dict.fromkeys(_OUTPUTS, ("--output", "--results")),
    **{f"report {name}": ("--html",) for name in _OUTPUTS},  # --results of `report` is what it reads
    **dict.fromkeys(("--results-dir", "--results-folder"), ("--results",)),
}
"""Options of other programs, each with options of ours that mean the same: the first that a command has is meant."""
_MOST = 3  # An option of more commands than this, such as --json, does not show which command is meant.


def meant_command(ctx: click.Context, name: str) -> str:
    """Return a sentence that suggests a command for an unknown word; "" if no command is likely."""
    if known := _COMMANDS.get(" ".join((*ctx.command_path.split()[1:], name))):
        return f" `{known}` does that."
    commands = [words for words, _ in _every_command(ctx) if words.endswith(f" {name}")]
    return f" Did you mean `{commands[0]}`?" if len(commands) == 1 else ""


def meant_option(ctx: click.Context, option: str, similar: Sequence[str]) -> str:
    """Return a sentence that suggests an option or a command for an unknown option; "" if none is likely.

    The sentence suggests our name for an option of another program, else a command that has the option, else the
    options in `similar`, which click found.
    """
    own = {name for param in ctx.command.get_params(ctx) for name in (*param.opts, *param.secondary_opts)}
    names = _OPTIONS.get(f"{ctx.info_name} {option}", _OPTIONS.get(option, ()))
    if meant := next((name for name in names if name in own), ""):
        return f" Did you mean {meant!r}?"
    commands = [words for words, has in _every_command(ctx) if any(option in param.opts for param in has.params)]
    # The results of a run are in its report: of several commands with an option, `report` is the likeliest.
    commands.sort(key=lambda words: not words.endswith("report"))
    if 0 < len(commands) <= _MOST:
        return f" Did you mean `{commands[0]} {option}`?"
    if isinstance(ctx.command, click.Group) and option[2:] in ctx.command.commands:
        return f" Did you mean `{ctx.command_path} {option[2:]}`?"
    known = [repr(name) for name in similar if name in own]  # of an option with two spellings, the one in its help
    return f" Did you mean {' or '.join(known)}?" if known else ""


def _every_command(ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands and groups, each with the words that call it first, such as ``jaxexport goldens list``."""
    groups: list[tuple[str, click.Command]] = [(ctx.find_root().command_path, ctx.find_root().command)]
    for words, group in groups:
        for name, command in group.commands.items() if isinstance(group, click.Group) else ():
            groups.append((f"{words} {name}", command))
            yield groups[-1]

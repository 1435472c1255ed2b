"""What is said of a command or an option that does not exist: which one is likely to be meant, and nothing else."""

from collections.abc import Iterator

import click

from export_core.base.phrases import did_you_mean

_COMMANDS = {
    "badge": "jaxexport report --badge FILE",
    "clean": "jaxexport environments --clean",
    "compare": "jaxexport judge NEW --baseline OLD",
    "goldens coverage": "jaxexport goldens list --coverage",
    "goldens delete": "jaxexport goldens prune",
    "goldens noise": "jaxexport goldens verify --noise",
    "list": "jaxexport goldens list",
    "merge": "jaxexport judge DIR DIR",
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
"""What people type, after `jaxexport`, and the command that does it."""
_OPTIONS = {"--delete": "--yes", "--force": "--yes", "-y": "--yes", "--out": "--output"}
"""Options of other programs, and what they are called here."""
_ALIKE = 0.75  # How alike two names are, of which one is likely the other misspelled; --html and --help are 0.67.
_MOST = 3  # An option that more commands have, such as --json, says nothing of which one is meant.


def meant_command(ctx: click.Context, name: str) -> str:
    """A sentence that names the command that an unknown word stands for, or nothing."""
    if known := _COMMANDS.get(" ".join((*ctx.command_path.split()[1:], name))):
        return f" `{known}` does that."
    assert isinstance(ctx.command, click.Group)
    found = [words for words, _ in _every_command(ctx) if words.endswith(f" {name}")]
    return did_you_mean(name, ctx.command.commands, _ALIKE) or (
        f" Did you mean `{found[0]}`?" if len(found) == 1 else ""
    )


def meant_option(ctx: click.Context, option: str) -> str:
    """A sentence that names the option of this command, or of another one, that is likely to be meant, or nothing."""
    own = [name for param in ctx.command.params for name in (*param.opts, *param.secondary_opts) if name[:2] == "--"]
    if close := did_you_mean(_OPTIONS.get(option, option), own, _ALIKE):
        return close
    found = [words for words, command in _every_command(ctx) if any(option in param.opts for param in command.params)]
    # What a run leaves is in its report: of several commands with an option, that one is meant.
    found.sort(key=lambda words: not words.endswith("report"))
    return f" Did you mean `{found[0]} {option}`?" if 0 < len(found) <= _MOST else ""


def _every_command(ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """All commands, with the words that name them."""
    groups: list[tuple[str, click.Command]] = [(ctx.find_root().command_path, ctx.find_root().command)]
    for words, group in groups:
        for name, command in group.commands.items() if isinstance(group, click.Group) else ():
            groups.append((f"{words} {name}", command))
            yield groups[-1]

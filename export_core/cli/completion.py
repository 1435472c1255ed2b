"""What shells complete besides commands and files: the cases and goldens of the project, and releases of jaxlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from export_core.base.errors import ExportCompatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from click.shell_completion import CompletionItem

    from export_core.policy import Policy


class Named(click.types.StringParamType):
    """The type of an argument or option whose text is a name that a shell completes.

    Click does not check the text: the command reports what is wrong with a name.
    """

    def __init__(
        self, names: Callable[[Mapping[str, Any]], Iterable[str]], *, several: bool = False, files: bool = False
    ) -> None:
        """Complete the names that a function returns.

        Args:
            names: Returns the names, from the options typed before. May raise `ExportCompatError` and `OSError`.
            several: Whether the text is a list with commas, of which the last name is completed.
            files: Whether the text may also be the path of a file.
        """
        self._names, self._several, self._files = names, several, files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin with what was typed; an empty list if the project cannot be read."""
        from click.shell_completion import CompletionItem

        before, comma, last = incomplete.rpartition(",") if self._several else ("", "", incomplete)
        try:
            names = [name for name in self._names(ctx.params) if name.startswith(last)]
        except (ExportCompatError, OSError):
            names = []
        files = [CompletionItem(incomplete, type="file")] if self._files else []
        return files + [CompletionItem(f"{before}{comma}{name}") for name in names]


def _policy(options: Mapping[str, Any]) -> Policy:
    from export_core.policy import find_policy

    return find_policy(Path(), options.get("policy_file"))


def _goldens(options: Mapping[str, Any]) -> list[str]:
    """Return ``CASE/WRITER`` of each golden from folder names, since reading each golden.yaml would take too long."""
    root = Path(options.get("goldens") or _policy(options).goldens)
    folders = [path.parent.relative_to(root) for path in sorted(root.glob("*/*/golden.yaml"))]
    return [folder.as_posix() for folder in folders if not any(part.startswith(".") for part in folder.parts)]


def _cases(options: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(golden.partition("/")[0] for golden in _goldens(options))


def _releases(options: Mapping[str, Any]) -> Iterable[str]:
    return _policy(options).calendar().versions()


CASE = Named(_cases)
CASE_OR_FILE = Named(_cases, files=True)
GOLDEN = Named(_goldens)
GOLDEN_OR_FILE = Named(_goldens, files=True)
RELEASE = Named(_releases)
RELEASES = Named(_releases, several=True)

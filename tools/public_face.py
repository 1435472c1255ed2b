"""Counts of what a new user meets, each with its limit: ``python -m tools.public_face`` prints a table.

It counts the words of docs/, the commands, the packages that are required directly, and the packages that ``pip
install`` adds to those that jax needs anyway. The exit code is 1 if a limit is exceeded.
"""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import NamedTuple

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LONG_PAGE = "reference/api.md"  # the one page that may be longer than the others
SHOWN_PAGES = 5


class Count(NamedTuple):
    """A line of the table: what is counted, how many there are, and the limit. `details` is text, such as names."""

    name: str
    found: int
    most: int
    details: str

    @property
    def holds(self) -> bool:
        """Whether the count is within its limit."""
        return self.found <= self.most


def words() -> Iterator[Count]:
    """Count the words of all pages of the docs, and of the longest page other than `LONG_PAGE`."""
    docs = ROOT / "docs"
    pages = {
        str(path.relative_to(docs)): len(path.read_text(encoding="utf-8").split())
        for path in docs.rglob("*.md")
        if "_build" not in path.parts
    }
    longest = sorted(pages, key=lambda page: -pages[page])
    yield Count("words of docs", sum(pages.values()), 80_000, f"{len(pages)} pages")
    shown = ", ".join(f"{page} {pages[page]:,}" for page in longest[:SHOWN_PAGES])
    yield Count("words of a page", max(pages[page] for page in pages if page != LONG_PAGE), 4_000, shown)


def commands() -> Iterator[Count]:
    """Count the names that can follow ``jaxexport``, and all commands under them."""
    from export_core.cli.app import jaxexport

    names = {name: list(_leaves(command)) for name, command in _inside(jaxexport)}
    shown = ", ".join(f"{name} {len(leaves)}" if leaves[1:] else name for name, leaves in names.items())
    yield Count("commands", sum(map(len, names.values())), 26, shown)
    yield Count("names of commands", len(names), 16, "")


def _inside(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command and not command.hidden:
            yield name, command


def _leaves(command: click.Command) -> Iterator[click.Command]:
    inside = [inner for _, inner in _inside(command)] if isinstance(command, click.Group) else []
    for inner in inside:
        yield from _leaves(inner)
    # A group that does something by itself is a command too.
    if not inside or (isinstance(command, click.Group) and command.invoke_without_command):
        yield command


def packages() -> Iterator[Count]:
    """Count the packages that pyproject.toml requires, and all packages that an install adds to those of jax."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    direct = {canonicalize_name(Requirement(line).name) for line in project["dependencies"]}
    yield Count("direct dependencies", len(direct), 14, ", ".join(sorted(direct)))
    brought = required_with(direct) - required_with({"jax"})
    yield Count("packages beside jax's own", len(brought), 18, ", ".join(sorted(brought)))


def required_with(names: Iterable[str]) -> Set[str]:
    """Return the names of these packages and of all packages that they require, directly or not.

    The requirements are those of the versions that are installed in this environment.
    """
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        found.add(name := waiting.pop())
        for line in importlib.metadata.requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting |= {canonicalize_name(requirement.name)} - found
    return found


PARTS = (words, commands, packages)


def main() -> None:
    """Print the table, and exit with 1 if a limit is exceeded."""
    counts = [count for part in PARTS for count in part()]
    print(f"{'':27}{'found':>7}  limit")
    for count in counts:
        print(f"{count.name:27}{count.found:7,}  {count.most:6,} {'' if count.holds else 'EXCEEDED '} {count.details}")
    raise SystemExit(not all(count.holds for count in counts))


if __name__ == "__main__":
    main()

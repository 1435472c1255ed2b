"""What to do about a golden that is damaged: the commands that write this golden again."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from export_core.base.untrusted import read_named
from export_core.goldens.manifest import Manifest

_FOLDER = re.compile(r"(?P<jaxlib>[0-9]+(?:\.[0-9A-Za-z+]+)+)(?:-jax[^-]+)?-[A-Za-z0-9_]+")
DIGEST = re.compile(r"-[0-9a-f]{8}$")  # How a case ends whose name lacks parts that a folder's name cannot hold.
_OR_ADDED = ", with the test of this golden as TEST. A golden that was added: `jaxexport goldens add`."


def rewriting(test: str = "") -> str:
    """Return the command that writes the goldens of a test again, or all goldens if no test is given."""
    return shlex.join(["pytest", "--update-goldens", *([test] if test else [])])


def restoring(manifest: Manifest) -> str:
    """Return what to do about a damaged golden, in a sentence with the commands that write this golden again."""
    if not manifest.test:
        return "Restore the golden from version control, or add it again with `jaxexport goldens add`."
    return f"{_restoring(manifest.test, manifest.writer.jaxlib)}."


def restoring_unread(folder: Path) -> str:
    """Return what to do about a golden whose manifest cannot be read or believed, with the commands that restore it.

    The commands name the release and the test that the golden's folder names show.

    Args:
        folder: the folder of the golden, ``<root>/<case>/<writer>/``.
    """
    writer = _FOLDER.fullmatch(folder.name)
    release, test = writer["jaxlib"] if writer else "RELEASE", test_of_case(folder.parent.name)
    if test:
        return f"{_restoring(test, release)}."
    return f"{_restoring('TEST', release)}{_OR_ADDED}"


def with_test(text: str, case: str, test: str) -> str:
    """Return a message that contains advice of `restoring_unread`, with the commands naming the test of the case."""
    option = "--update-goldens"
    return text.replace(_OR_ADDED, ".").replace(
        f"{option} {shlex.quote(test_of_case(case) or 'TEST')}`", f"{option} {shlex.quote(test)}`"
    )


def _restoring(test: str, release: str) -> str:
    again = f"jaxexport goldens backfill --writers {shlex.quote(release)} -- --update-goldens {shlex.quote(test)}"
    return (
        f"Restore the golden from version control, or write it again: `{rewriting(test)}` with jaxlib {release} "
        f"installed, else `{again}`"
    )


def test_of_case(case: str) -> str:
    """Return the test that exports a case, as far as files in the working folder show it; "" if none does.

    If the name of the case does not show the test's parameters, the test is returned without them.
    """
    parts = case.partition("[")[0].split(".")
    for count in range(len(parts) - 1, 0, -1):
        file = f"{'/'.join(parts[:count])}.py"
        try:
            text = read_named(Path(file)).decode(errors="replace")
        except (OSError, ValueError):
            continue
        names = [*_defined(parts[count:], text)]
        rest = case.removeprefix(".".join([*parts[:count], *names]))
        # After the parameters may come the name= of the call. A digest stands for what a folder's name cannot hold.
        parameters = None if DIGEST.search(case) else re.match(r"\[.*\](?=\.|\Z)", rest)
        return "::".join([file, *names]) + (parameters[0] if names and parameters else "")
    return ""


def _defined(names: list[str], text: str) -> Iterator[str]:
    """Yield the classes and the function of a test, as long as a test file defines them."""
    for name in names:
        if not re.search(rf"^\s*(?:async\s+def|def|class)\s+{re.escape(name)}\b", text, re.MULTILINE):
            return
        yield name

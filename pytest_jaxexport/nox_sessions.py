"""Nox sessions for the noxfile of a project, in two lines:

from pytest_jaxexport.nox_sessions import register
register()
"""  # noqa: D415 - the two lines are the point

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

import nox

from export_core.base.errors import ExportCompatError, with_prefix
from export_core.goldens import GoldenError, GoldenStore
from export_core.matrix.selection import choose_readers, known_releases, selection_by_policy
from export_core.policy import Policy, find_policy
from export_core.releases import promise


def register(*, policy: str | None = None) -> None:
    """Define the nox sessions `compat_matrix`, `backfill`, and one for each reader and platform of the matrix.

    The sessions run in the interpreter of nox, which must have pytest-jaxexport; each reader gets its own
    environment. Nox exits with 1 for every exit code but 0. `nox --list` shows sessions of single readers as
    ``compat_matrix(reader='0.9.2', platform='cpu')``. If the policy cannot be read, these are missing, and the other
    two fail with its error.
    """
    options = ["--policy", policy] if policy else []

    @nox.session(venv_backend="none")
    def compat_matrix(session: nox.Session) -> None:
        """Replay every golden in every reader of its window and judge. Options of `jaxexport matrix` go after --."""
        _jaxexport(session, "matrix", *options, *session.posargs)

    @nox.session(venv_backend="none", default=False)
    def backfill(session: nox.Session) -> None:
        """Write goldens with older releases: -- --writers 0.9.2,0.10.2, or options of `jaxexport goldens backfill`."""
        _jaxexport(session, "goldens", "backfill", *options, *session.posargs)

    def define(reader: str, name: str, platform: str, more: Sequence[str]) -> None:
        @nox.session(name=f"compat_matrix(reader={reader!r}, platform={name!r})", venv_backend="none", default=False)
        def single(session: nox.Session) -> None:
            """Replay and judge every golden in one reader on one platform."""
            # A folder of its own, so that these sessions can run at the same time.
            results = ["--results", f".jaxexport/{_as_folder(reader)}-{name}", *more, *session.posargs]
            _jaxexport(session, "matrix", *options, "--readers", reader, "--platforms", platform, *results)

    try:
        rules = find_policy(Path(), policy)
        readers = _readers(rules)
    except ExportCompatError as error:
        more = "Until then there is no session for a single reader, and compat_matrix and backfill fail."
        print(f"{with_prefix(error)}\n  {more}", file=sys.stderr)
        return
    for platform in rules.spelled_platforms():
        for reader, promised in readers.items():
            if "==" in reader and not platform.startswith("cpu"):  # another runtime, which has cells on the CPU alone
                continue
            unpromised = [] if promised else ["--unpromised", "this reader is outside every window"]
            # A policy has one mode per platform, so the session's name leaves it out.
            define(reader, platform.partition(":")[0], platform, unpromised)


def _readers(rules: Policy) -> dict[str, bool]:
    """Return the readers of the matrix by the policy's rules, each with whether any of its cells is promised or owed.

    The newest release and the release before each writer are always readers, even if nothing is promised to them.
    """
    try:
        written = {golden.manifest.writer.built for golden in GoldenStore(Path(rules.goldens)).goldens_so_far()}
    except GoldenError:
        written = set()  # the sessions report what is wrong with the goldens; nox --list has to work without them
    selection, windows = selection_by_policy(rules), rules.window_lengths()
    today = datetime.datetime.now(tz=datetime.UTC).date()
    targets = rules.targets_on(today)
    readers = choose_readers(selection, known_releases(selection, rules.calendar()), windows, written, today, targets)
    # A reader in a deployment target has to run its cells, whatever is promised.
    owed = {target.release for target in targets}
    return {
        readers.spelled[release]: release.name in owed
        or any(promise(built, release.built, windows).promised for built in written)
        for release in readers.chosen
    }


def _as_folder(reader: str) -> str:
    """Return a reader's name in characters for the name of a folder, since it may be the path of a wheel."""
    return "".join(char if char.isalnum() or char in "._-=" else "-" for char in reader)


def _jaxexport(session: nox.Session, *words: str) -> None:
    # -P: without it, a file of the project that has the name of a library would be imported in its place.
    session.run(sys.executable, "-P", "-m", "export_core", *words, external=True)

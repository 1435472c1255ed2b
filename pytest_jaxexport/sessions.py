"""Nox sessions for the noxfile of a project, in two lines:

from pytest_jaxexport.sessions import register
register()
"""  # noqa: D415 - the two lines are the point

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

import nox

from export_core.base.errors import PREFIX, ExportCompatError
from export_core.goldens import GoldenError, GoldenStore
from export_core.matrix.selection import window_readers
from export_core.policy import Policy, find_policy
from export_core.releases import promise
from export_core.releases.runtimes import built_on


def register(*, policy: str | None = None) -> None:
    """Define `compat_matrix`, `backfill`, and one session for each reader and platform of the goldens' window.

    They run in the interpreter that runs nox, which must have pytest-jaxexport; each reader gets an environment of its
    own. Nox exits with 1 for every exit code but 0; `jaxexport matrix` itself tells broken, incomplete and stale apart.
    `nox --list` shows the single ones as ``compat_matrix(reader='0.9.2', platform='cpu')``.
    """
    try:
        rules = find_policy(Path(), policy)
    except ExportCompatError as error:  # nox would print a traceback of the noxfile
        print(f"{PREFIX}{error}", file=sys.stderr)
        sys.exit(error.exit_code)
    options = ["--policy", policy] if policy else []

    @nox.session(venv_backend="none")
    def compat_matrix(session: nox.Session) -> None:
        """Replay every golden in every reader of its window and judge. Options of `jaxexport matrix` go after --."""
        _jaxexport(session, "matrix", *options, *session.posargs)

    @nox.session(venv_backend="none", default=False)
    def backfill(session: nox.Session) -> None:
        """Write goldens with older releases: -- --writers 0.9.2,0.10.2, or options of `jaxexport goldens backfill`."""
        _jaxexport(session, "goldens", "backfill", *options, *session.posargs)

    def define(reader: str, platform: str, more: Sequence[str]) -> None:
        @nox.session(
            name=f"compat_matrix(reader={reader!r}, platform={platform!r})", venv_backend="none", default=False
        )
        def single(session: nox.Session) -> None:
            """One reader on one platform."""
            # A folder of its own, so that these sessions can run at the same time.
            results = ["--results", f".jaxexport/{reader}-{platform.replace(':', '-')}", *more, *session.posargs]
            _jaxexport(session, "matrix", *options, "--readers", reader, "--platforms", platform, *results)

    readers = _readers(rules)
    for platform in rules.spelled_platforms():
        for reader, promised in readers.items():
            if "==" in reader and platform != "cpu":  # another runtime, which has cells on the CPU alone
                continue
            define(reader, platform, [] if promised else ["--unpromised", "this reader is outside every window"])


def _readers(rules: Policy) -> dict[str, bool]:
    """The readers of the goldens' window and of the policy's targets, and whether any is promised or owed something.

    Nothing may be of the newest release, and of the one before each writer.
    """
    try:
        writers = [golden.manifest.writer.built for golden in GoldenStore(Path(rules.goldens)).goldens()]
    except GoldenError:
        writers = []  # the sessions report what is wrong with the goldens; nox --list has to work without them
    calendar, windows = rules.calendar(), rules.window_lengths()
    # What has to run in a deployment target shows something, whatever is promised.
    targets = {target.release for target in rules.targets_on(datetime.datetime.now(tz=datetime.UTC).date())}
    built = {
        reader: built_on(reader, calendar) or datetime.date.max
        for reader in (*window_readers(writers, calendar, windows), *targets)
    }
    return {
        reader: reader in targets or any(promise(writer, built[reader], windows).promised for writer in writers)
        for reader in sorted(built, key=lambda reader: built[reader])
    }


def _jaxexport(session: nox.Session, *words: str) -> None:
    # -P: without it, a file of the project that has the name of a library would be imported in its place.
    session.run(sys.executable, "-P", "-m", "export_core", *words, external=True)

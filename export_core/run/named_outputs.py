"""The check of the files that a command is asked to write: none may replace a file of a golden, a policy or a run."""

import errno
import os
from pathlib import Path

from export_core.base.atomic import refuse_link
from export_core.base.untrusted import UnexpectedFileError
from export_core.goldens.store import golden_around
from export_core.run.errors import RunError
from export_core.run.plan_record import PLAN
from export_core.run.results import GIT_IGNORE, LOCK, RESULTS, SUMMARY

_OF_A_RUN = PLAN, RESULTS, SUMMARY, LOCK, GIT_IGNORE
_WRITTEN_BY_HAND = (
    ".yaml",
    ".yml",
    ".toml",
)  # The endings of files that people write: an existing file with such an ending is never replaced.


def check_output(path: Path, policy: str | None = None) -> None:
    """Raise `RunError` if `path` is a file that no output may replace, or where none can be written.

    `policy` is the path of the policy that the command was given.
    """
    try:
        refuse_link(path)
    except UnexpectedFileError as error:
        raise RunError(f"{path}: cannot write there: {error.strerror}. Name the file that the link leads to.") from None
    except OSError as error:
        raise RunError(f"{path}: cannot write there: {error.strerror}. Name another file.") from None
    if reason := _not_writable(path):
        raise RunError(f"{path}: cannot write there: {os.strerror(reason)}. Name another file.")
    real = path.parent.resolve() / path.name
    if golden := golden_around(real.parent):
        raise RunError(
            f"{path}: expected a file outside of goldens, found one in the golden {golden}. Name another file."
        )
    if path.name in _OF_A_RUN:
        raise RunError(
            f"{path}: expected a name that no file of a run has, since only runs write those files. Name another file."
        )
    if path.exists() and (path.suffix in _WRITTEN_BY_HAND or (policy and path.samefile(policy))):
        raise RunError(
            f"{path}: expected a file that may be replaced, found a policy or another file written by hand."
            " Name another one."
        )


def _not_writable(path: Path) -> int:
    """Return the error number that writing a file, and the folders that it lacks, would have now; 0 if it has none."""
    if path.is_dir():
        return errno.EISDIR
    if path.exists() and not path.is_file():  # a device or a pipe
        return 0
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        return errno.ENOTDIR
    return 0 if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES

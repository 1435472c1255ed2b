"""Where a command that was typed in a subfolder of the project would have found what it needs: in a folder above."""

from pathlib import Path


def found_above(there: str, folder: Path, pattern: str) -> str:
    """Return a sentence for a command run in a subfolder of the project, the likeliest mistake; "" if it was not.

    It names the nearest folder above the current one in which `folder`, a relative path, has a file that the glob
    `pattern` matches. `there` begins it, such as ``There is a run in``.
    """
    for parent in () if folder.is_absolute() else Path.cwd().parents:
        if next((parent / folder).glob(pattern), None):
            return f"{there} {parent / folder}: run this command in {parent}."
    return ""

"""The refusal of a cache folder that holds files of a commit, since what is cached is run and trusted."""

import os
import subprocess

from export_core.base.errors import CacheFolderError
from export_core.base.processes import run_git

_SECONDS = 60.0


def refuse_committed(folder: str, top: str) -> None:
    """Raise `CacheFolderError` if git tracks files in a folder, or cannot tell whether it does.

    Args:
        folder: the folder of the cache.
        top: the top folder of the git checkout with this folder.
    """
    try:
        tracked = run_git(("ls-files", "-z", "--", f":(top,literal){os.path.relpath(folder, top)}"), top, _SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        printed = getattr(error, "stderr", None) or str(error).encode()
        answer = printed.decode(errors="replace").strip()
        found = f"that git in {top} cannot tell whether it tracks one: {answer}"
    else:
        if not tracked:
            return
        found = f"that git tracks {os.fsdecode(tracked.partition(bytes(1))[0])} in it"
    raise CacheFolderError(
        f"{folder}: expected a cache folder without files that git tracks, found {found}. Set JAXEXPORT_CACHE "
        "to a folder outside the project."
    )

"""The folder of everything that is cached: JAXEXPORT_CACHE, or the user's cache folder. No commit may bring it."""

import functools
import os
import sys

NAME = "jaxexport"
_GIT_SECONDS = 60.0
STORED_DAYS = 180  # How long outcomes, and what a policy means, are kept without being used.


def cache_path(*names: str) -> str:
    """The path with these names in the folder. Imports as little as it can: `jaxexport inspect` asks for one.

    Raises:
        CacheFolderError: The folder holds files of a commit, or nobody can say whether it does.
    """
    folder = os.environ.get("JAXEXPORT_CACHE")
    if not folder and sys.platform == "linux":
        # What platformdirs answers where these are set to absolute paths; to import it takes 20 ms.
        home = os.environ.get("HOME", "")
        cache = os.environ.get("XDG_CACHE_HOME") or (home and os.path.join(home, ".cache"))  # noqa: PTH118
        folder = os.path.join(cache, NAME) if os.path.isabs(cache) else ""  # noqa: PTH117, PTH118
    if not folder:
        import platformdirs

        folder = platformdirs.user_cache_dir(NAME)
    _refuse_committed(folder)
    return os.path.join(folder, *names)  # noqa: PTH118


@functools.cache
def _refuse_committed(folder: str) -> None:
    """Raise `CacheFolderError` where git tracks files in a folder: what is cached is run, and believed."""
    folder = top = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(top, ".git")):  # noqa: PTH118 - pathlib takes 5 ms to import
        top, below = os.path.dirname(top), top  # noqa: PTH120
        if top == below:
            return
    import subprocess

    from export_core.base.errors import CacheFolderError
    from export_core.base.processes import run_git

    try:
        tracked = run_git(("ls-files", "-z", "--", f":(top,literal){os.path.relpath(folder, top)}"), top, _GIT_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        printed = getattr(error, "stderr", None) or str(error).encode()
        said = printed.decode(errors="replace").strip()
        found = f"that in {top}, git does not say: {said}"
    else:
        if not tracked:
            return
        found = f"that git tracks {os.fsdecode(tracked.partition(bytes(1))[0])} in it"
    raise CacheFolderError(
        f"{folder}: expected a folder of the cache without files of a commit, found {found}. Set JAXEXPORT_CACHE "
        "to a folder outside the project."
    )

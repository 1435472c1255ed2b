"""The folder of everything that is cached: JAXEXPORT_CACHE, or the user's cache folder. No commit may bring it."""

import functools
import os
import sys

NAME = "jaxexport"
STORED_DAYS = 180  # How many days outcomes, and what a policy means, are stored without being used.


def cache_path(*names: str) -> str:
    """Return the path with these names in the cache folder.

    Imports as little as it can: `jaxexport inspect` asks for one.

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
    _check(folder)
    return os.path.join(folder, *names)  # noqa: PTH118


@functools.cache
def _check(folder: str) -> None:
    """Raise `CacheFolderError` for a folder in which git tracks files."""
    folder = top = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(top, ".git")):  # noqa: PTH118 - pathlib takes 5 ms to import
        top, below = os.path.dirname(top), top  # noqa: PTH120
        if top == below:
            return
    from export_core.base.committed_files import refuse_committed  # 9 ms: few such folders are in a checkout

    refuse_committed(folder, top)

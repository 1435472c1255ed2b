"""The folder of everything that is cached: JAXEXPORT_CACHE, or the user's cache folder, never files of a commit."""

import functools
import os
import sys

NAME = "jaxexport"
STORED_DAYS = 180  # The days after which an unused outcome or an unused parsed policy is removed.


def cache_path(*names: str) -> str:
    """Return the absolute path of an entry in the cache folder; `names` are the parts of its path below that folder.

    The function imports little, since `jaxexport inspect` calls it.

    Raises:
        CacheFolderError: Git tracks files in the folder, or cannot tell whether it does.
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
    return os.path.join(_usable(folder), *names)  # noqa: PTH118


@functools.cache  # a relative path stays what it was at first, in whichever folder a test or an installation works
def _usable(named: str) -> str:
    """Return the absolute path of a cache folder. Raises `CacheFolderError` if git tracks files in the folder."""
    absolute = os.path.abspath(os.path.expanduser(named))  # noqa: PTH100, PTH111 - no shell expands ~ in a file of CI
    folder = top = os.path.realpath(absolute)
    while not os.path.lexists(os.path.join(top, ".git")):  # noqa: PTH118 - pathlib takes 5 ms to import
        top, below = os.path.dirname(top), top  # noqa: PTH120
        if top == below:
            return absolute
    from export_core.base.committed_files import refuse_committed  # 9 ms: few such folders are in a checkout

    refuse_committed(folder, top)
    return absolute

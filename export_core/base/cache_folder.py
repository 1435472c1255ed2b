"""The folder of everything that is cached: JAXEXPORT_CACHE, or the user's cache folder. Never inside a project."""

import os
import sys

NAME = "jaxexport"
STORED_DAYS = 180  # How long outcomes, and what a policy means, are kept without being used.


def cache_path(*names: str) -> str:
    """The path with these names in the folder. Imports as little as it can: `jaxexport inspect` asks for one."""
    folder = os.environ.get("JAXEXPORT_CACHE")
    if not folder and sys.platform == "linux":
        # What platformdirs answers where these are set to absolute paths; to import it takes 20 ms.
        home = os.environ.get("HOME", "")
        cache = os.environ.get("XDG_CACHE_HOME") or (home and os.path.join(home, ".cache"))  # noqa: PTH118
        folder = os.path.join(cache, NAME) if os.path.isabs(cache) else ""  # noqa: PTH117, PTH118
    if not folder:
        import platformdirs

        folder = platformdirs.user_cache_dir(NAME)
    return os.path.join(folder, *names)  # noqa: PTH118

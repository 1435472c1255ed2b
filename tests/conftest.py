"""What all tests have: pytester; fixtures of shared_fixtures, replaying, projects and browsing; the marker newest."""

import gc
import os
from contextlib import suppress

# Releases that write the corpus load this file too, in environments that lack what this project's own tests need.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    # How fast the machine is decides no test, but for those of hostile input, which name a limit of their own.
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

pytest_plugins = ["pytester", "shared_fixtures", "replaying", "projects", "browsing", "newest"]

# A run with these variables names them in its messages, and tests compare messages.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

# A test may be killed, and no machine: what the kernel has is on disk. Waiting for it takes a second of each ten.
os.fsync = lambda descriptor: None

# Thousands of collected tests are alive until the end. Python would look through all of them again and again: for three
# seconds of the seven that collecting takes, and in every test that makes many objects.
gc.disable()


def pytest_collection_finish() -> None:
    """What is collected is never garbage; what tests make is."""
    gc.freeze()
    gc.enable()

"""What all tests have: pytester, and the fixtures of shared_fixtures.py, replaying.py, projects.py and browsing.py."""

import gc
import os
import re
from contextlib import suppress

import pytest

# Releases that write the corpus load this file too, in environments that lack what this project's own tests need.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    # How fast the machine is decides no test, but for those of hostile input, which name a limit of their own.
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

pytest_plugins = ["pytester", "shared_fixtures", "replaying", "projects", "browsing"]

# A run with these variables names them in its messages, and tests compare messages.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

# A test may be killed, and no machine: what the kernel has is on disk. Waiting for it takes a second of each ten.
os.fsync = lambda descriptor: None

# What depends on the release of jax: `-m newest` selects it, for a run with the newest jax.
NEWEST = re.compile(
    r"/tests/((compat|export|features/(adopt|convert)|custom_calls|export_docs)/.*|test_(calling_conventions|jax_goldens)"
    r"|plugin/test_(changed_exports|first_replay|hash_seeds|life|nothing_to_compare|recorded_meshes|set_elsewhere)"
    r"|plugin/test_written_noise|readers/test_(figures|moved_inside|worker_checks)|artifact/test_installed_jax"
    r"|goldens/test_(adopted_meshes|arrays|made_inputs)|matrix/test_replay|features/why/test_explained_runtimes)\.py$"
)

# Thousands of collected tests are alive until the end. Python would look through all of them again and again: for three
# seconds of the seven that collecting takes, and in every test that makes many objects.
gc.disable()


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if NEWEST.search(item.path.as_posix()):
            item.add_marker("newest")


def pytest_collection_finish() -> None:
    """What is collected is never garbage; what tests make is."""
    gc.freeze()
    gc.enable()

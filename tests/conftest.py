"""Settings and plugins of all tests: pytester, the fixtures of the modules named below, and the marker newest."""

import fcntl
import gc
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import _pytest.pathlib
import _pytest.tmpdir
import pytest

# Releases that write the corpus load this file too, in environments that lack packages of this project's tests.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    # The speed of the machine must decide no test, except those of hostile input, which set a limit of their own.
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

pytest_plugins = ["pytester", "shared_fixtures", "replaying", "projects", "browsing", "newest"]

# A run with these variables names them in its messages, which tests compare.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

# No machine loses power in a test, so that files need not be synced, which would take a tenth of the time.
os.fsync = lambda descriptor: None

# Thousands of collected tests live until the end. The garbage collector would look through them again and again, for
# three of the seven seconds that collecting takes, and in every test that makes many objects.
gc.disable()

# Nobody looks for the folder of the test that ran last by a link, which each test would replace.
_pytest.pathlib._force_symlink = _pytest.tmpdir._force_symlink = lambda *names: None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave collected tests out of garbage collection, enable it for what tests make, and share one MLIR context.

    Modules that tests import live until the end too, and looking through them is a sixth of the time of some tests.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()
    # Goldens are written as users write them.
    if "jax" in sys.modules and not session.config.getoption("update_goldens", None):
        from warm_worker import share_mlir_context

        share_mlir_context()


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Run what is in this context while no other process of xdist runs what is in its own for the same file."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, object, object]:
    """Let one process of xdist import a module of tests first, and others read the bytecode that it has written.

    In a new checkout, rewriting the assertions and compiling takes three times as long as all else of the collection.
    """
    with _one_at_a_time(collector.path) if isinstance(collector, pytest.Module) else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems() -> Generator[None, object, object]:
    """Let one process of xdist make what Hypothesis stores for others: constants of all modules, a table of characters.

    In a new checkout, making that table takes two seconds.
    """
    with _one_at_a_time(Path(__file__)):
        with suppress(ModuleNotFoundError):
            from hypothesis.internal.charmap import charmap

            charmap()
        return (yield)

"""The second process of `second_export`: a pytest that runs the tests which the first process names.

It is run as a script, since pytest warns of a plugin whose package is imported before pytest itself. Or a fork of the
worker that replays goldens calls `run`: there jax is imported already.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    import socket

    from pytest_jaxexport.second_export import SecondArtifact


def main() -> None:
    """Run the second pytest in this process, with requests from stdin and answers to stdout."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    export_tests(requests, answers)


def run(connection: socket.socket) -> None:
    """Run the second pytest in this fork of a worker, with the variables and jax settings of the first process."""
    requests, answers = connection.makefile("r"), connection.makefile("w")
    setup = json.loads(requests.readline())
    os.environ.clear()
    os.environ.update(setup["variables"])
    os.chdir(setup["folder"])
    config = sys.modules["jax"].config
    for name, value in setup["flags"].items():
        if value is not None:
            config.update(name, value)
    sys.argv[:] = [__file__]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    export_tests(requests, answers)


def export_tests(requests: IO[str], answers: IO[str]) -> None:
    """Run pytest on the tests in `requests`, after its options in the first line; write their exports to `answers`."""
    setup = json.loads(requests.readline())
    sys.path[:] = setup["sys_path"]
    options = setup["options"]
    plugins = [*options.pop("plugins", []), "no:terminal", "no:cacheprovider", "no:junitxml"]
    words = [word for name in plugins for word in ("-p", name)]
    config = pytest.Config.fromdictargs({**options, "plugins": plugins}, [*words, setup["path"]])
    from pytest_jaxexport.options import SECOND_RUN

    config.pluginmanager.register(_Session(requests, answers, setup["root"]), SECOND_RUN)
    config.hook.pytest_cmdline_main(config=config)


class _Session:
    """A plugin of pytest that runs the tests that the first process names. `exports` has the last test's exports."""

    def __init__(self, requests: IO[str], answers: IO[str], root: str) -> None:
        self._requests = requests
        self._answers = answers
        self._root = root
        self.exports: dict[str, SecondArtifact] = {}
        self._directories: dict[Path, pytest.Collector] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        """Skip pytest's own collection, since tests are collected one by one as they are requested."""
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_directory(self, path: Path) -> Generator[None, pytest.Collector | None, pytest.Collector | None]:
        """Return the node with which a directory was collected first, also for later tests.

        Since pytest 9.1, the fixtures of a conftest.py belong only to the first node of its directory.
        """
        node = yield
        return self._directories.setdefault(path, node) if node else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Run each requested test and answer with its exports, until the first process ends."""
        for line in self._requests:
            test, self.exports = json.loads(line), {}
            path, _, names = test.partition("::")
            try:
                for item in session.perform_collect([f"{self._root}/{path}::{names}"]):
                    # Fixtures of the session stay for the next test, which is not known yet.
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=cast("pytest.Item", session))
            except (pytest.UsageError, pytest.Collector.CollectError):
                pass  # the test cannot be found alone: there is no answer for its cases
            self._answers.write(f"{json.dumps(self.exports)}\n")
            self._answers.flush()
        session._setupstate.teardown_exact(None)  # pytest's own way to do it takes an item whose teardown is due
        os._exit(0)  # without the reports of a run, which would replace those of the first process


if __name__ == "__main__":
    main()

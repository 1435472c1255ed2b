"""The export of a test in a second process, with another hash seed: only what both export equally can be compared."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeAlias

import pytest

from export_core.artifact import Artifact
from export_core.artifact.export_changes import export_digest
from export_core.base.text import shown
from export_core.export.produce import LARGE, Flags, ProducedGolden
from pytest_jaxexport.recorded_test import RecordedTest

SECOND_RUN_FILE = Path(__file__).with_name("second_run.py")
_LONGEST_START = 60.0  # Seconds to wait for a fork that connects itself.
_LOOK = 0.2  # Seconds between looks whether a fork is still wanted.
_LONGEST = 300.0  # Seconds to wait for the export of one test, with the start of the process.

# Options that would run tests elsewhere, or overwrite files of the first run.
_OPTIONS: dict[str, Any] = {
    "numprocesses": None, "dist": "no", "tx": [], "update_goldens": "", "prune_goldens": False, "dump_ir": None,
    "collectonly": False, "basetemp": None, "usepdb": False, "trace": False, "xmlpath": None, "maxfail": 0,
    "cov_source": [], "lf": False, "failedfirst": False, "newfirst": False, "stepwise": False, "file_or_dir": [],
}  # fmt: skip


SecondArtifact: TypeAlias = tuple[str, str, Flags, dict[str, str]]
"""The hash of an artifact, its digest without locations and names, the settings of jax, and the hashes of the inputs.

The inputs are those of the first call and of each further one, by the names of their files in a golden.
"""

SEEDS = (1, 2)
"""Hash seeds that are tried before a test fails.

In a quarter of all cases, both order a set of two names as this run does. For a golden that is written, only the first
seed is tried.
"""

MORE_SEEDS = 12
"""Hash seeds that a printed command tries: all of them order a set of two names alike in 1 of 4,096 cases."""


_NO_EXPORT = "in a second process, which runs each test alone, these tests exported nothing: run one alone to see why"
_NEVER_REPEATED = f"a second process exports no artifacts for TPUs, and none larger than {LARGE >> 20} MiB"
_OTHER_SETTINGS = (
    "in a second process, {} differs, which another test or a fixture has changed here: change it back after the test, "
    "or set it in a conftest.py"
)


class SecondExport:
    """A second pytest process that exports tests again, to find out whether exports can be repeated.

    It is started when the first test needs it, and exports one test after another.
    """

    def __init__(self, config: pytest.Config, seed: int, flags: Flags) -> None:
        """Store `flags`, the settings of jax after collection: test files that it does not import may have set some."""
        self._config = config
        self._flags = flags
        self._seed = str(seed)
        self._process: subprocess.Popen[str] | None = None
        self._started = self._closed = False
        self._pipes: tuple[IO[str], IO[str]] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jaxexport-second-export")
        self._exports: dict[str, Future[dict[str, Any]]] = {}
        self.not_compared: dict[str, str] = {}  # Why the second export of a case shows nothing, by case.

    def start(self, test: str) -> None:
        """Start the process unless it was started before. `test` is the node id of the first test to export."""
        if not self._started:
            self._started = True
            self._start(self._setup(test))

    def _start(self, setup: dict[str, Any]) -> None:
        """Start the process and send it `setup`."""
        variables = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        variables["PYTHONHASHSEED"] = self._seed
        variables |= {flag.upper(): str(value) for flag, value in self._flags.items() if value is not None}
        self._process = process = subprocess.Popen(
            [sys.executable, "-P", SECOND_RUN_FILE],
            cwd=self._config.invocation_params.dir,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin
        assert process.stdout
        self._pipes = process.stdin, process.stdout
        self._thread.submit(self._send, setup)

    def _setup(self, test: str) -> dict[str, Any]:
        """Return the setup that the process needs: pytest's options, paths, and the first test's file."""
        config = self._config
        options = {
            name: _OPTIONS.get(name, value)
            for name, value in vars(config.option).items()
            if isinstance(value, (str, int, float, type(None)))
            or (isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value))
        }
        return {
            "options": {
                **options,
                # Else pytest looks for them from the test's folder, which may have an ini file of its own.
                "rootdir": str(config.rootpath),
                "inifilename": str(config.inipath or os.devnull),
            },
            "path": str(config.rootpath / test.partition("::")[0]),
            "root": str(config.rootpath),
            "sys_path": sys.path,
        }

    def begin(self, test: str) -> None:
        """Begin to export a test in the process, given by its node id, unless that has begun before."""
        if test not in self._exports:
            self.start(test)
            self._exports[test] = self._thread.submit(self._ask, test)

    def differs(self, test: str, case: str, artifact: Artifact, flags: Flags) -> bool | None:
        """Return whether the second export of a case differs from this artifact in more than locations and names.

        None if there is no second export, or if it was made with other settings of jax than `flags`. Then
        `not_compared` has the reason.
        """
        # Of equal bytes the first process needs no digest.
        sha256, digest, with_flags, _ = self._exported(test, case)
        if not digest:
            self.not_compared[case] = _NO_EXPORT
            return None
        if other := [name for name, value in flags.items() if with_flags.get(name) != value]:
            self.not_compared[case] = _OTHER_SETTINGS.format(", ".join(other))
            return None
        return bool(sha256 != artifact.sha256 and digest != export_digest(artifact))

    def makes_other_inputs(self, test: str, produced: ProducedGolden) -> bool | None:
        """Return whether the test's example arguments, also those of `also`, differ between the two processes.

        None if this is not known, such as without a second export. In a `ForkedExport` libraries may add in another
        order, which changes last digits, so that only False is certain.
        """
        files = produced.manifest.files
        inputs = {name: sha for name, sha in self._exported(test, produced.case.id)[3].items() if name in files}
        return any(files[name] != sha for name, sha in inputs.items()) if inputs else None

    def _exported(self, test: str, case: str) -> SecondArtifact:
        """Return the process's export of a case: hash, digest, settings of jax and hashes of inputs; empty if none."""
        self.begin(test)
        try:
            exports = self._exports[test].result(_LONGEST)
        except TimeoutError:
            self.close()
            exports = {}
        sha256, digest, flags, inputs = exports.get(case, ("", "", {}, {}))
        return sha256, digest, flags, inputs

    def close(self) -> None:
        """End the process. Requests that are still open get no answer."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _send(self, message: object) -> bool:
        """Send the process a message as a line of JSON. Return False if the process has ended."""
        try:
            if self._pipes is None:
                return False
            self._pipes[0].write(f"{json.dumps(message)}\n")
            self._pipes[0].flush()
        except (OSError, ValueError):  # ValueError: it is closed
            return False
        return True

    def _ask(self, message: object) -> dict[str, Any]:
        """Send the process a message and return its answer; empty if the process has ended."""
        try:
            line = self._pipes[1].readline() if self._send(message) and self._pipes else ""
        except (OSError, ValueError):
            line = ""
        exports: dict[str, Any] = json.loads(line) if line.endswith("\n") else {}
        return exports


class ForkedExport(SecondExport):
    """A second process that is a fork of the worker that replays goldens, and so starts with jax imported.

    It has another hash seed and other addresses than this process. It also imported jax without the project's
    environment variables, and its OpenBLAS has one thread. So only an equal export of it proves anything.
    """

    def __init__(self, config: pytest.Config, flags: Flags, fork: Callable[[Path, str], bool]) -> None:
        """Store `fork`, a function that runs a Python program in a fork of the worker.

        It is called with the path of the program and the address of a socket, to which the program connects.
        """
        super().__init__(config, 0, flags)
        self._fork = fork
        self._connection: socket.socket | None = None

    def _start(self, setup: dict[str, Any]) -> None:
        folder = str(self._config.invocation_params.dir)
        first = {"variables": dict(os.environ), "flags": self._flags, "folder": folder}
        self._thread.submit(self._connect, first, setup)

    def _connect(self, *messages: dict[str, Any]) -> None:
        """Start the program in a fork of the worker, wait until it connects, and send it these messages."""
        with tempfile.TemporaryDirectory(prefix="jaxexport-") as folder, socket.socket(socket.AF_UNIX) as listener:
            address = str(Path(folder) / "second")
            listener.bind(address)
            listener.listen(1)
            listener.settimeout(_LOOK)
            if self._closed or not self._fork(SECOND_RUN_FILE, address):
                return
            until = time.monotonic() + _LONGEST_START
            while self._connection is None and time.monotonic() < until and not self._closed:
                with contextlib.suppress(TimeoutError):
                    self._connection, _ = listener.accept()
        if self._connection is not None:
            self._connection.settimeout(None)
            self._pipes = self._connection.makefile("w"), self._connection.makefile("r")
            for message in messages:
                self._send(message)

    def close(self) -> None:
        """Close the connection, which ends the process."""
        super().close()
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()


def exports_again_otherwise(processes: Sequence[SecondExport], test: str, produced: ProducedGolden) -> bool | None:
    """Return whether any of these processes exports a case differently; None if one of them cannot export the case.

    All processes run at the same time.

    Args:
        processes: the second processes to ask; each that does not run yet is started.
        test: the node id of the test.
        produced: what the first process exports.
    """
    case, artifact, flags = produced.case.id, produced.artifact, produced.manifest.flags
    for process in processes:
        process.begin(test)
    for process in processes:
        if (differs := process.differs(test, case, artifact, flags)) is not False:
            return differs
    return False


class SecondExports:
    """The second processes that export the cases of one test again."""

    def __init__(self, test: RecordedTest, processes: Sequence[SecondExport]) -> None:
        """Store the processes: the first one is a fork, and the others have other hash seeds."""
        self._test = test
        self._forked, self._seeded = processes[:1], processes[1:]

    @property
    def other_seeds(self) -> int:
        """The number of processes with other hash seeds."""
        return len(self._seeded)

    def start(self) -> None:
        """Start the fork, which imports what the test needs while this process traces its function."""
        self._forked[0].start(self._test.item.nodeid)

    def begin(self) -> None:
        """Have the fork begin to export the test."""
        self._forked[0].begin(self._test.item.nodeid)

    @property
    def for_new_goldens(self) -> bool:
        """Whether a second process also exports the function of each new golden.

        With --noise=later it does not, since the first run that checks the golden is a second export by itself.
        """
        settings = self._test.settings
        return settings.second_export and not (settings.noise_later or settings.dry_run)

    def can_export(self, produced: ProducedGolden) -> bool:
        """Return whether a second process may export this case.

        A TPU belongs to one process, and a large artifact may need most of the memory.
        """
        fits = len(produced.artifact.data) <= LARGE and produced.manifest.writer.platform != "tpu"
        return self._test.settings.second_export and fits

    def _differs(self, produced: ProducedGolden, processes: Sequence[SecondExport]) -> bool | None:
        """Return whether any of these processes exports the case differently; None if unknown.

        It is unknown if a process cannot export the case, or if second exports are switched off.
        """
        if not self.can_export(produced):
            return None
        with self._test.progress(f"exporting {shown(produced.case.id)} again: --no-second-export leaves it out"):
            return exports_again_otherwise(processes, self._test.item.nodeid, produced)

    def differs_under_other_seeds(self, produced: ProducedGolden) -> bool | None:
        """Return whether a process with another hash seed exports the case differently; None if that is not known."""
        return self._differs(produced, self._seeded)

    def new_differs(self, produced: ProducedGolden) -> bool | None:
        """Return whether a second process exports a new case differently than this one; None if unknown.

        A fork is asked first, since it starts sooner. It differs from this process in some ways, so only an equal
        export counts.
        """
        if self._differs(produced, self._forked) is False:
            return False
        return self._differs(produced, self._seeded[:1])

    def makes_other_inputs(self, produced: ProducedGolden) -> bool:
        """Return whether the test makes other example arguments in a second process.

        The fork is asked first. Its libraries may add in another order, so only equal arguments prove anything.
        """
        test = self._test.item.nodeid
        if any(process.makes_other_inputs(test, produced) is False for process in self._forked):
            return False
        return any(process.makes_other_inputs(test, produced) for process in self._seeded[:1])

    def why_not_compared(self, case: str) -> str:
        """Return why a new case has no second export to compare with."""
        return self._seeded[0].not_compared.get(case, _NEVER_REPEATED)


def try_more_seeds(pytest_command: str) -> str:
    """Return a shell command that runs a test with other hash seeds until its export is equal to its golden."""
    seeds = " ".join(map(str, range(1, MORE_SEEDS + 1)))
    return f"for seed in {seeds}; do PYTHONHASHSEED=$seed {pytest_command} --no-second-export && break; done"

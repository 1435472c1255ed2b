"""The replay of goldens in the jaxlib of the interpreter that runs pytest: a matrix with one reader."""

import bisect
import functools
import itertools
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import pytest

from export_core.export.case import case_id
from export_core.export.produce import LARGE, Uncalled
from export_core.goldens import Golden, GoldenStore
from export_core.goldens.store import ARTIFACT
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.numbers.measuring_noise import MeasuredNoise
from export_core.numbers.user_code import UserCode
from export_core.policy.load import policy_file
from export_core.policy.run_options import ProjectOptions, RunOptions, option_words
from export_core.readers.worker.protocol import Stage
from export_core.run.golden_writing import OwnReader
from pytest_jaxexport.comparing import marked_now
from pytest_jaxexport.marker import Marked, full_name, locate
from pytest_jaxexport.settings import Settings

Replayed: TypeAlias = tuple[Sequence[Result], int]
"""The results of goldens, and how many of these come from an earlier run, without being run again."""


_Value = TypeVar("_Value")


class _Ahead(NamedTuple):
    """The replay of a case's goldens that was begun before its test needs the results.

    The result of `replayed` is None if these goldens cannot be replayed ahead of their test.
    """

    goldens: Future[list[Golden]]
    replayed: Future[Replayed | None]


class Replayer:
    """A replayer of goldens in the interpreter that runs pytest, with one worker for the whole session.

    One thread runs all replays, so that those of the next test run while a test traces its function. A golden with a
    stored outcome of an earlier run is not run again, unless the settings say so. `started_with` are the environment
    variables when pytest began, since test modules may set some when they are imported.
    """

    def __init__(self, settings: Settings, user_code: UserCode, started_with: Mapping[str, str]) -> None:
        self.user_code = user_code
        self._settings = settings
        self._store = GoldenStore(settings.goldens)
        self._options = run_options(settings)
        self._own = OwnReader(settings.policy, self._options, user_code, started_with)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jaxexport-replay")
        self._closing = threading.Event()
        self._stopping = threading.Event()
        self._ahead: dict[str, _Ahead] = {}
        self.calendar = self._own.calendar

    @property
    def noise_command(self) -> list[str]:
        """The shell command, as words, that measures the noise of goldens without noise."""
        return self.command("goldens", "verify", "--noise")

    def command(self, *words: str) -> list[str]:
        """Return a `jaxexport` command, as words, with this run's goldens and policy.

        Its paths are relative to the folder where pytest was called.
        """
        project = ProjectOptions(self._options.goldens, self._options.policy_file)
        return ["jaxexport", *words, *option_words(project)]

    @functools.cached_property
    def _cases(self) -> list[str]:
        """The names of all folders of cases in the folder of goldens, sorted."""
        root = self._store.root
        return sorted(path.name for path in root.iterdir()) if root.is_dir() else []

    def begin_worker(self) -> None:
        """Start the worker in the background: it imports jax while the test traces its function."""
        self._thread.submit(self._own.start_worker)

    def fork_program(self, program: Path, address: str) -> bool:
        """Run a Python program in a fork of the worker, where jax is imported; return False if that is impossible."""
        return self._own.fork_program(program, address)

    def is_own(self, golden: Golden) -> bool:
        """Return whether a golden's writer is the jax of this interpreter."""
        return golden.manifest.writer.id == self._own.writer.id

    def noise(self, golden: Golden) -> MeasuredNoise | str:
        """Return the measured noise of a new golden of this interpreter, or the reason why it cannot be measured."""
        return self._own.noise(golden)

    def begin(self, item: pytest.Item, marked: Marked) -> None:
        """Begin to replay the goldens of a test that is about to run, unless this run writes all goldens anew.

        These are the goldens of all cases whose names begin with the test's; `replayed` replays those of other cases.
        """
        if self._settings.update == "all":
            return
        test, case = full_name(item), case_id(*locate(item), None)
        # Only the names that start with that of the case: a project may have thousands of others.
        first = bisect.bisect_left(self._cases, case)
        for name in itertools.takewhile(lambda name: name.startswith(case), itertools.islice(self._cases, first, None)):
            if (name == case or name.startswith(f"{case}.")) and name not in self._ahead:
                goldens = self._thread.submit(self._goldens_of, test, name)
                self._ahead[name] = _Ahead(goldens, self._thread.submit(self._replay_ahead, goldens, marked))

    def goldens(self, case: str) -> list[Golden]:
        """Return the goldens of a case, oldest writer first.

        Raises `GoldenError` if one of them is damaged.
        """
        ahead = self._ahead.get(case)
        return (ahead and ahead.goldens.result()) or self._verified(case)

    def replayed(self, case: str, goldens: Sequence[Golden]) -> Replayed:
        """Return the results of all goldens of a case, from a replay by `begin` or `first_call`, or else a new one.

        `goldens` have the comparison of their test.
        """
        ahead = self._ahead.pop(case, None)
        return (ahead and ahead.replayed.result()) or self.replay(goldens)

    def first_call(self, uncalled: Uncalled, goldens: Sequence[Golden], marked: Marked) -> str:
        """Return in words how calling an artifact kills its process; "" if the process survives or nothing is known.

        If a golden by this writer has the same artifact, its replay is the call. `goldens` are the goldens of the case.
        """
        case, artifact = uncalled.case.id, uncalled.artifact.sha256
        own = [golden for golden in goldens if self.is_own(golden) and golden.manifest.files[ARTIFACT] == artifact]
        if own:
            ahead = self._ahead.get(case)
            replayed = ahead and ahead.replayed.result()
            if replayed is None:
                replayed = self.replay([marked_now(golden, marked, self._settings) for golden in goldens])
                self._ahead[case] = _Ahead(_done(list(goldens)), _done(replayed))
            died = [result for result in replayed[0] if result.golden == own[0].id and result.verdict is Verdict.CRASH]
            if all(result.stage is Stage.READ for result in died):
                return ""
        return self._own.first_call(uncalled, warm=bool(own))

    def replay(self, goldens: Sequence[Golden]) -> Replayed:
        """Return the results of replaying the goldens that were exported for cpu.

        Each of them is run in a cold process, unless an earlier run has stored its outcome.
        """
        return self._thread.submit(self._replay, goldens).result()

    def close(self) -> None:
        """End the worker and all replays that are still running."""
        self._closing.set()
        self._stopping.set()
        for ahead in self._ahead.values():
            ahead.goldens.cancel()
            ahead.replayed.cancel()
        self._thread.submit(self._own.close_cache)
        self._thread.shutdown()
        self._own.close()

    def _goldens_of(self, test: str, case: str) -> list[Golden]:
        """Return the goldens of a case if they can be replayed ahead of their test; else an empty list.

        They cannot if some are of another test or register Python modules, or if this run adds a golden of the case.
        """
        goldens = self._verified(case)
        # Whether a module is self-contained is found by parsing it. Before CPython 3.11.8, two threads must not parse
        # at once (gh-106905), and pytest parses too; `replayed` waits for this thread.
        is_one = all(golden.manifest.test == test and not golden.manifest.options.register for golden in goldens)
        # No case whose golden of this writer this run writes: that one is not checked.
        is_one &= self._settings.update != "missing" or any(map(self.is_own, goldens))
        return goldens if is_one else []

    def _replay_ahead(self, goldens: Future[list[Golden]], marked: Marked) -> Replayed | None:
        if goldens.cancelled() or goldens.exception():
            return None  # the test reports what is wrong with them
        of_case = goldens.result()
        if sum(golden.artifact.stat().st_size for golden in of_case) > LARGE:
            return None  # beside an export, which takes many times its artifact, there may be no memory for it
        return self._replay([marked_now(golden, marked, self._settings) for golden in of_case]) if of_case else None

    def _verified(self, case: str) -> list[Golden]:
        goldens = self._store.generations(case)
        # Before anything of it is used: a damaged file must not look like a change of the function.
        for golden in goldens:
            golden.verify()
        return goldens

    def _replay(self, goldens: Sequence[Golden]) -> Replayed:
        before = self._own.cache.given
        self._stopping = threading.Event()  # a replay sets its own when it ends
        if self._closing.is_set():  # the replayer was closed before this event existed
            self._stopping.set()
        results = self._own.replay(goldens, self._stopping)
        return results, self._own.cache.given - before


def _done(value: _Value) -> Future[_Value]:
    future: Future[_Value] = Future()
    future.set_result(value)
    return future


def run_options(settings: Settings) -> RunOptions:
    """Return the options of a run with which goldens are replayed in this process.

    They name the folder of goldens and the policy only if `jaxexport matrix` would find other ones in the folder where
    pytest was called: commands that reproduce a cell are for that folder.
    """
    here = settings.directory
    goldens, policy = settings.goldens, settings.policy_file
    return RunOptions(
        results=None,
        goldens=None if goldens.resolve() == (here / settings.policy.goldens).resolve() else _relative(goldens, here),
        policy_file=None if policy is None or policy == policy_file(here) else str(_relative(policy, here)),
        cache=settings.cache,
        dump_ir=settings.dump_ir,
    )


def _relative(path: Path, folder: Path) -> Path:
    return Path(os.path.relpath(path, folder))

"""The data of a measurement: goldens by several writers, and the outputs of every reader, made by `jaxexport`.

Each step writes a mark with the digest of its inputs into the folder. A step is skipped if its mark has this digest.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from export_core.goldens import Golden, GoldenStore
from export_core.goldens.store import NOISE
from export_core.policy import load_policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from studies.corpus.choosing import ROOT, Group
from studies.numbers.sets import ACROSS, NATIVE, OTHERS, PROCESSORS, Processor, program_in, set_of

POLICY = Path(__file__).with_name("policy.yaml")
PROCESSORS_POLICY = Path(__file__).with_name("processors.yaml")
WRITTEN = (0, 1)
"""The exit codes of a backfill that are accepted. With 1, some programs have no golden; the findings list them."""
JUDGED = (0, 1, 3, 4)
"""The exit codes of a matrix that are accepted, since broken cells are in its results."""


@dataclass(frozen=True)
class Folders:
    """The folders with the data of a measurement."""

    work: Path

    def goldens(self, processor: Processor = NATIVE) -> Path:
        """Return the folder with the goldens that all writers have written on a processor."""
        return self.work / "goldens" / processor.name

    @property
    def wrong(self) -> Path:
        """The folder with the outputs of programs that have planted errors, by writer."""
        return self.work / "wrong"

    @property
    def double(self) -> Path:
        """The folder with the outputs of artifacts as computed in double precision, by golden."""
        return self.work / "double"

    @property
    def logs(self) -> Path:
        """The folder with the output of the commands."""
        return self.work / "logs"

    @property
    def marks(self) -> Path:
        """The folder with a mark for each step that is done."""
        return self.work / "done"


@dataclass(frozen=True)
class Replay:
    """A matrix: the goldens of a set by a writer in several readers, and the processors of writer and readers.

    Each set has matrices of its own, so that a set is not replayed again when a different set grows.
    """

    programs: str
    written: Processor
    read: Processor
    writer: str
    readers: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the matrix, which its folders and files have."""
        return f"{self.programs}-{self.written.name}-{self.read.name}-{self.writer}"

    def results(self, folders: Folders) -> Path:
        """Return the folder with the results of the matrix."""
        return folders.work / "results" / self.name

    def outputs(self, folders: Folders) -> Path:
        """Return the folder with the readers' outputs, by reader, case, writer and call."""
        return folders.work / "outputs" / f"{self.written.name}-{self.read.name}"

    def goldens(self, folders: Folders) -> list[Golden]:
        """Return the goldens to replay: if readers have a different processor, only goldens that may differ."""
        lapack = self.written.lapack or self.read.lapack
        across = self.written is not self.read
        return [
            golden
            for golden in GoldenStore(folders.goldens(self.written)).goldens()
            if golden.manifest.writer.jaxlib == self.writer
            and set_of(golden.manifest.case) == self.programs
            and (not across or may_differ(golden, lapack=lapack))
        ]


def may_differ(golden: Golden, *, lapack: bool) -> bool:
    """Return whether a golden's outputs may differ on a different processor.

    If `lapack` is true, the processors differ for LAPACK only, so the golden has to call LAPACK.
    """
    return not lapack or any("lapack" in call for call in golden.manifest.custom_calls)


def write(folders: Folders, groups: Sequence[Group], writers: Sequence[str]) -> None:
    """Write the goldens and the outputs with planted errors, by as many writers at once as there are cores."""
    _at_once([functools.partial(_write, folders, *step) for step in _steps(groups, writers)])


def _steps(groups: Sequence[Group], writers: Sequence[str]) -> list[tuple[Group, str]]:
    built = load_policy(POLICY).calendar().built
    return [
        (group, writer)
        for writer in dict.fromkeys([*writers, *(writer for group in groups for writer in group.writers)])
        for group in groups
        if (writer in group.writers if group.writers else writer in writers) and built(writer) >= built(group.since)
    ]


def missing(folders: Folders, groups: Sequence[Group], writers: Sequence[str]) -> list[str]:
    """Return a text for each program of which a writer should have written a golden, but has not."""
    goldens = GoldenStore(folders.goldens()).goldens()
    written = {(program_in(golden.manifest.case), golden.manifest.writer.jaxlib) for golden in goldens}
    asked = [(program_in(test), writer) for group, writer in _steps(groups, writers) for test in group.tests]
    return [f"{program} by {writer}" for program, writer in asked if (program, writer) not in written]


def write_elsewhere(folders: Folders, writers: Sequence[str]) -> None:
    """Write the goldens of some writers once more, as if on each of `OTHERS`, the other processors."""
    steps = []
    for processor in OTHERS:
        for writer in set(processor.written_by) & set(writers):
            for name in processor.sets:
                here = Replay(name, NATIVE, processor, writer, ()).goldens(folders)
                tests = tuple(golden.manifest.test for golden in here)
                steps.append((Group(frozenset(), tests, name=name), writer, processor))
    _at_once([functools.partial(_write, folders, *step) for step in steps if step[0].tests])


def _write(folders: Folders, group: Group, writer: str, processor: Processor = NATIVE) -> None:
    name = f"{group.name}-{writer}-{processor.name}"
    decided = json.dumps([group.tests, group.packages, dict(processor.variables)])

    def steps() -> None:
        install = [word for package in (".", *group.packages) for word in ("--install", package)]
        plugin = ("-p", "studies.numbers.variables", "-o", f"export_policy={PROCESSORS_POLICY.relative_to(ROOT)}")
        words = ["-m", "export_core", "goldens", "backfill", "--writers", writer, *install, "--", *group.tests, *plugin]
        words += ["-q", "--tb=line", "-W", "ignore", "-o", "export_module_text=no", "--noise=later"]
        words += [f"--goldens={folders.goldens(processor)}"]
        run(words, folders.logs / f"write-{name}.txt", WRITTEN, NUMBERS_VARIABLES=json.dumps(dict(processor.variables)))
        if processor is NATIVE and any("test_program[" in test for test in group.tests):
            calendar = load_policy(POLICY).calendar()
            with ReaderEnvironments(calendar) as environments:
                python = environments.build(Placement(calendar.release(writer))).python
                names = [program_in(test) for test in group.tests]
                words = ["-m", "studies.numbers.wrong", str(folders.wrong / writer), *names]
                run(words, folders.logs / f"wrong-{name}.txt", python=str(python))

    _once(folders, f"write-{name}", decided, steps)


def measure_noise(folders: Folders, *, again: bool) -> None:
    """Measure the noise of goldens, each as if on the processor on which it was written.

    Goldens that have noise are left out, unless `again` is true.
    """
    for processor in (NATIVE, *OTHERS):
        if (store := folders.goldens(processor)).exists():
            words = ["-m", "export_core", "goldens", "verify", "--noise", *(["--again"] if again else [])]
            words += ["--goldens", str(store), "--policy", str(PROCESSORS_POLICY)]
            started = time.monotonic()
            run(words, folders.logs / f"noise-{processor.name}.txt", WRITTEN, **processor.variables)
            print(f"== noise-{processor.name}: {time.monotonic() - started:.0f} s", flush=True)


def replays(
    sets: Sequence[str], groups: Sequence[Group], writers: Sequence[str], readers: str, *, across: bool
) -> list[Replay]:
    """Return the matrices to run.

    Args:
        sets: the names of the sets of programs.
        groups: the programs of these sets.
        writers: the releases that write.
        readers: the releases that read on this processor, as `jaxexport matrix` takes them.
        across: whether to add matrices in which writer and reader have different processors.
    """
    everyone = dict.fromkeys([*writers, *(writer for group in groups for writer in group.writers)])
    programs = [name for name in sets if name != PROCESSORS]
    read_by = tuple(readers.split(","))
    here = [Replay(name, NATIVE, NATIVE, writer, read_by) for name in programs for writer in everyone]
    moved = [
        replay
        for name in programs
        for processor in OTHERS
        for writer in ACROSS
        if writer in writers
        for replay in (Replay(name, NATIVE, processor, writer, ACROSS), Replay(name, processor, NATIVE, writer, ACROSS))
        if replay.written is NATIVE or writer in processor.written_by
    ]
    return [*here, *(moved if across else ())]


def read(folders: Folders, replays: Iterable[Replay]) -> None:
    """Run these matrices one after the other, since each uses all cores."""
    for replay in replays:
        _read(folders, replay)


def _read(folders: Folders, replay: Replay) -> None:
    """Run a matrix, without cached outcomes, since a cached outcome has no outputs."""
    goldens = replay.goldens(folders)
    if not goldens:
        return
    # Without their noise, since outputs do not depend on it.
    files = [(one.id, sorted(item for item in one.manifest.files.items() if item[0] != NOISE)) for one in goldens]
    results = replay.results(folders)

    def matrix() -> None:
        # An interrupted matrix continues with its plan.
        results.mkdir(parents=True, exist_ok=True)
        words = ["-m", "studies.numbers.saving", "matrix", "--goldens", folders.goldens(replay.written)]
        words += ["--results", results, "--writers", replay.writer, "--readers", ",".join(replay.readers)]
        words += ["--policy", POLICY if replay.read is NATIVE else PROCESSORS_POLICY, "--no-cache", "--quiet"]
        words += [word for golden in goldens for word in ("--cases", golden.manifest.case)]
        words += ["--resume"] if _unfinished(results, decided) else []
        (results / "decided").write_text(decided)
        variables = dict(replay.read.variables)
        run(
            list(map(str, words)),
            folders.logs / f"read-{replay.name}.txt",
            JUDGED,
            OUTPUTS=str(replay.outputs(folders)),
            **variables,
        )

    decided = json.dumps([files, replay.readers, dict(replay.read.variables)])
    _once(folders, f"read-{replay.name}", decided, matrix)


def _unfinished(results: Path, decided: str) -> bool:
    """Return whether an earlier matrix with the same goldens and readers was interrupted.

    Args:
        results: the folder of its results.
        decided: the text that stands for its goldens and readers.
    """
    mark = results / "decided"
    begun = mark.exists() and mark.read_text() == decided and (results / "plan.json").exists()
    return begun and not (results / "summary.json").exists()


def _once(folders: Folders, name: str, decided: str, step: Callable[[], None]) -> None:
    """Do a step, unless it was done with the same inputs, and print how long it took.

    Args:
        folders: where the marks of steps are.
        name: the name of the step.
        decided: a text that stands for the inputs of the step.
        step: does the step.
    """
    mark, digest = folders.marks / name, hashlib.sha256(decided.encode()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return
    started = time.monotonic()
    step()
    folders.marks.mkdir(parents=True, exist_ok=True)
    mark.write_text(digest)
    print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)


def _at_once(steps: Sequence[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for done in [pool.submit(step) for step in steps]:
            done.result()


def run(
    words: Sequence[str], log: Path, allowed: Sequence[int] = (0,), *, python: str = sys.executable, **variables: str
) -> None:
    """Run Python in this checkout, and write what it prints into a file.

    Args:
        words: the arguments of the interpreter.
        log: the file.
        allowed: the exit codes that are accepted.
        python: the interpreter.
        variables: more environment variables.

    Raises:
        SystemExit: the exit code is not in `allowed`.
    """
    given = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        done = subprocess.run([python, *words], cwd=ROOT, env=given, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode not in allowed:
        last = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        problem = f"expected an exit code in {allowed}, found {done.returncode}"
        raise SystemExit(f"{' '.join([python, *words])[:500]}: {problem}:\n{last}\n({log})")

"""A check that the audit names every custom call that jaxlib finds.

`nox -s audit_check [-- --mutants 1000000 --seconds 3600 --jaxlibs 0.6.2,0.9.2,0.10.2,0.12.0.1 --seed 0]`. It audits
mutants of real modules and artifacts, and each jaxlib parses those that the audit does not refuse. The exit code is 1
if a parsed module has a target that the audit did not name; such mutants are written to --keep.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stored_artifacts import DATA, FILES

from export_core.artifact import ArtifactError, read, read_bytes
from export_core.artifact.audit import DISABLED, audit
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar
from studies.artifact.mutants import Mutants

PROGRAM = Path(__file__).with_name("audit_program.py")
GOLDEN = Path(__file__).parents[2] / "golden"
REWRITTEN = ("0.9.2/cholesky", "0.9.2/symbolic", "0.4.30/cholesky")  # every release since 0.10 reads them
LARGEST = 3_000  # bytes of a seed: a small one is parsed in less than a millisecond
BATCH = 250
JAXLIBS = "0.6.2,0.9.2,0.10.2,0.12.0.1"


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter with a jaxlib, whose version is `name`, and the environment variables to run it with."""

    name: str
    python: str
    variables: Mapping[str, str]

    def command(self, *words: str) -> list[str]:
        return [self.python, "-W", "ignore", str(PROGRAM), *words]


class Reader:
    """A process in which a jaxlib lists the custom calls of mutants."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.name = interpreter.name
        self._process = subprocess.Popen(
            interpreter.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(interpreter.variables)
        )

    def send(self, batch: Sequence[tuple[bool, bytes]]) -> None:
        assert self._process.stdin is not None
        content = [struct.pack("<cI", b"a" if whole else b"m", len(data)) + data for whole, data in batch]
        self._process.stdin.write(struct.pack("<I", len(batch)) + b"".join(content))
        self._process.stdin.flush()

    def answers(self, count: int) -> Iterator[Any]:
        """Yield jaxlib's answer to each of the next `count` mutants.

        It is a list of custom-call targets, None if jaxlib refused the mutant, or a dict if jaxlib's process died.
        """
        assert self._process.stdout is not None
        for _ in range(count):
            line = self._process.stdout.readline()
            if not line:
                raise SystemExit(f"jaxlib {self.name}: expected an answer to each mutant, found that it has ended.")
            yield json.loads(line)

    def close(self) -> None:
        with self._process:  # closes its pipes, and waits for it
            pass


def named(data: bytes) -> set[str] | str:
    """Return the custom-call targets that the audit names, or the kind of refusal if it refuses the artifact."""
    try:
        findings = [finding for finding in audit(read_bytes(data), frozenset()) if finding.standing != DISABLED]
    except ArtifactError:
        return "damaged"
    if any(not finding.count for finding in findings):
        return "not read whole"
    return {finding.target for finding in findings}


class Check:
    """The comparison of the audit with jaxlibs, which counts outcomes and stores mutants whose targets were missed."""

    def __init__(self, mutants: Mutants, readers: Sequence[Reader], seed: str, keep: Path | None) -> None:
        self.mutants = mutants
        self.readers = readers
        self.seed = seed
        self.keep = keep
        self.counts: Counter[str] = Counter()

    def batch(self, numbers: Sequence[int]) -> None:
        """Make and audit the mutants of these numbers, and let every jaxlib parse those that the audit accepts."""
        accepted: list[tuple[int, bool, bytes, set[str]]] = []
        for number in numbers:
            whole, data = self.mutants.make(self.seed, number)
            verdict = named(data)
            self.counts["mutants"] += 1
            self.counts[verdict if isinstance(verdict, str) else "audited"] += 1
            if not isinstance(verdict, str):
                accepted.append((number, whole, data, verdict))
        for reader in self.readers:
            reader.send([(whole, data) for _, whole, data, _ in accepted])
        for reader in self.readers:
            for mutant, answer in zip(accepted, reader.answers(len(accepted)), strict=True):
                self._compare(reader.name, mutant, answer)

    def _compare(self, jaxlib: str, mutant: tuple[int, bool, bytes, set[str]], answer: Any) -> None:
        number, whole, data, targets = mutant
        if isinstance(answer, dict):
            self.counts[f"{jaxlib} died"] += 1
        if not isinstance(answer, list):
            return
        self.counts[f"{jaxlib} loaded"] += 1
        self.counts[f"{jaxlib} with calls"] += bool(answer)
        missed = sorted(set(answer) - targets)
        if missed:
            self.counts[f"{jaxlib} misses"] += 1
            kept_at = ""
            if self.keep is not None:
                self.keep.mkdir(parents=True, exist_ok=True)
                path = self.keep / f"{self.seed}-{number}.{'jaxexport' if whole else 'mlirbc'}"
                path.write_bytes(data)
                kept_at = f": {path}"
            print(
                f"MISS  mutant {number} of seed {self.seed}: jaxlib {jaxlib} finds {missed}, "
                f"the audit names {sorted(targets)}{kept_at}",
                flush=True,
            )


def rewritten(interpreter: Interpreter) -> dict[str, bytes]:
    """Let a jaxlib write the modules of `REWRITTEN` in other forms, and return their bytes by name.

    The forms are VHLO of older versions, and StableHLO in each version of the bytecode.
    """
    with tempfile.TemporaryDirectory() as scratch:
        names = []
        for name in REWRITTEN:
            path = Path(scratch) / name.replace("/", "-")
            path.write_bytes(read(DATA / f"{name}.jaxexport").module.serialized())
            names.append(str(path))
        out = Path(scratch) / "out"
        out.mkdir()
        command = interpreter.command("seeds", str(out), *names)
        done = subprocess.run(command, env=dict(interpreter.variables), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"jaxlib {interpreter.name}: expected seeds, found an error:\n{done.stderr[-2000:]}")
        return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def mutants_of(more: Iterable[bytes]) -> Mutants:
    """Return a maker of mutants of stored artifacts, goldens and more modules, most of which have custom calls."""
    paths = (*FILES, *sorted(GOLDEN.glob("*/*/*.jaxexport")))
    modules = [*(module.serialized() for path in paths for module in read(path).modules), *more]
    small = list(dict.fromkeys(data for data in modules if len(data) <= LARGEST))
    calling = [data for data in small if b"custom_call" in data]
    others = [data for data in small if b"custom_call" not in data]
    artifacts = [path.read_bytes() for path in FILES if path.stat().st_size <= 3 * LARGEST]
    return Mutants([*calling, *others[:: 1 + len(others) // 20]], artifacts)


def lane(
    lane_number: int, options: argparse.Namespace, interpreters: Sequence[Interpreter], mutants: Mutants, queue: Any
) -> None:
    """Check every `options.jobs`-th batch of mutants in this process, until all are done or the time is over.

    Args:
        lane_number: the number of this process, which decides which batches it checks.
        options: the options of the command line.
        interpreters: the jaxlibs to compare with.
        mutants: the maker of mutants.
        queue: where counts are put after each batch, and None at the end.
    """
    with ExitStack() as stack:
        readers = [Reader(interpreter) for interpreter in interpreters]
        for reader in readers:
            stack.callback(reader.close)
        check = Check(mutants, readers, options.seed, options.keep)
        started = time.monotonic()
        for start in range(options.first + lane_number * BATCH, options.first + options.mutants, options.jobs * BATCH):
            if time.monotonic() - started > options.seconds:
                break
            check.batch(range(start, min(start + BATCH, options.first + options.mutants)))
            queue.put(dict(check.counts))
            check.counts.clear()
    queue.put(None)


def interpreters_of(jaxlibs: Sequence[str]) -> list[Interpreter]:
    """Return an interpreter with each of these jaxlibs; environments that are missing are built."""
    calendar = load_calendar()
    environments = ReaderEnvironments(calendar)
    built = [(version, environments.build(Placement(calendar.release(version)))) for version in jaxlibs]
    return [Interpreter(version, str(env.python), dict(env.variables)) for version, env in built]


def table(counts: Mapping[str, int], jaxlibs: Sequence[str], seconds: float) -> str:
    """Return all counts as a table, with a line for each jaxlib."""
    head = (
        f"{counts['mutants']} mutants in {seconds:.0f} s: {counts['damaged']} refused as damaged, "
        f"{counts['not read whole']} as not read whole, {counts['audited']} audited and parsed by each jaxlib"
    )
    columns = ("loaded", "with calls", "died", "misses")
    lines = [f"{'jaxlib':<10}" + "".join(f"{name:>12}" for name in columns)]
    for version in jaxlibs:
        lines.append(f"{version:<10}" + "".join(f"{counts[f'{version} {name}']:>12}" for name in columns))
    return "\n".join([head, *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first: with --mutants 1, just that one")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--jaxlibs", default=JAXLIBS)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path("audit_check_misses"))
    options = parser.parse_args()
    jaxlibs = options.jaxlibs.split(",")
    interpreters = interpreters_of(jaxlibs)
    mutants = mutants_of(rewritten(interpreters[-1]).values())
    started = printed = time.monotonic()
    queue: Any = multiprocessing.Queue()
    lanes = [
        multiprocessing.Process(target=lane, args=(lane_number, options, interpreters, mutants, queue))
        for lane_number in range(options.jobs)
    ]
    for process in lanes:
        process.start()
    counts: Counter[str] = Counter()
    running = len(lanes)
    while running:
        counted = queue.get()
        running -= counted is None
        counts.update(counted or {})
        if time.monotonic() - printed > 300:
            printed = time.monotonic()
            print(table(counts, jaxlibs, printed - started), flush=True)
    print(table(counts, jaxlibs, time.monotonic() - started))
    for process in lanes:
        process.join()
    failed = any(process.exitcode for process in lanes)
    return 1 if failed or not counts["audited"] or any(counts[f"{version} misses"] for version in jaxlibs) else 0


if __name__ == "__main__":
    sys.exit(main())

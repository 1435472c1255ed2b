"""JAX's harnesses, written by chosen releases and replayed in others: `nox -s harnesses`.

`nox -s harnesses [-- --sample N --writers V,V --readers V,V --goldens DIR --results DIR]`. It prints what each writer
has written, skipped and failed to write, and for each primitive the promised cells that are not kept. The exit code is
that of `jaxexport matrix`, or 1 if that is 0 and a writer has written nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from export_core.goldens import GoldenStore
from export_core.judge import Judgement, Result
from studies.corpus.harness_sampling import COMPARED_BY, primitive_of
from tools.stored_results import read_results

ROOT = Path(__file__).parents[2]
TESTS = "studies/corpus/harnesses/harnesses.py"
POLICY = ROOT / "studies" / "corpus" / "harnesses" / "export_compat.yaml"
WRITERS = "0.10.2-jax0.10.2,0.11.2-jax0.11.2"
READERS = "0.10.2,0.11.2,0.12.0.1"
ALL = 5600
"""The approximate number of harnesses that a release of jax has."""


@dataclass(frozen=True)
class Written:
    """The outcome of a writer's tests.

    `passed` counts the goldens written, `skipped` the tests skipped for each reason, `failed` has the message of each
    failing test, and `seconds` is the time of all.
    """

    passed: int
    skipped: Counter[str]
    failed: dict[str, str]
    seconds: float


def write(writer: str, sample: int | None, goldens: Path, junit: Path) -> Written:
    """Write goldens of the harnesses with a release, and return the outcome of its tests.

    Args:
        writer: the release.
        sample: how many harnesses are taken; all if None or 0.
        goldens: the folder to write into.
        junit: a file for the tests' outcomes.

    Raises:
        SystemExit: the environment of the release cannot be built.
    """
    started = time.monotonic()
    # The text of the module is for the eye only. Warnings of JAX's harnesses are no errors here.
    words = ["-n", "2", "-W", "ignore", "--tb=no", "-o", "export_module_text=no", f"--junitxml={junit}"]
    install = ["--install", "absl-py", "--install", "pytest-xdist"]
    command = ["goldens", "backfill", "--writers", writer, *install, "--", *words, f"--goldens={goldens}", TESTS]
    jaxexport(*command, good=(0, 1), HARNESSES_SAMPLE=str(sample or 0))
    passed, skipped, failed = 0, Counter[str](), {}
    for test in ElementTree.parse(junit).iter("testcase"):
        problem = next((child for child in test if child.tag in ("failure", "error", "skipped")), None)
        message = "" if problem is None else problem.get("message", "")
        if problem is None:
            passed += 1
        elif problem.tag == "skipped":
            skipped[message] += 1
        else:
            failed[test.get("name", "")] = message
    return Written(passed, skipped, failed, time.monotonic() - started)


def jaxexport(*words: str, good: Iterable[int], **variables: str) -> int:
    """Run `jaxexport` with more environment variables, and return its exit code.

    Raises:
        SystemExit: the exit code is not among `good`.
    """
    command = [sys.executable, "-m", "export_core", *words]
    code = subprocess.run(command, cwd=ROOT, env=os.environ | variables, check=False).returncode
    if code not in good:
        raise SystemExit(f"{' '.join(command)} ended with {code}.")
    return code


def not_kept(results: Iterable[Result]) -> Iterator[str]:
    """Yield a line for each primitive with promised cells that are not kept: how many, of how many, and an example."""
    promised = [result for result in results if result.promised]
    cells = Counter(primitive_of(result.case) for result in promised)
    wrong: dict[str, list[Result]] = {}
    for result in promised:
        if result.judgement is not Judgement.KEPT:
            wrong.setdefault(primitive_of(result.case), []).append(result)
    for primitive, bad in sorted(wrong.items(), key=lambda entry: -len(entry[1])):
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(str(r.verdict) for r in bad).items())
        first = bad[0]
        text = f"{first.golden} in {first.reader.jaxlib}: {first.message}"
        yield f"{primitive}: {len(bad)} of {cells[primitive]}: {verdicts}, such as {textwrap.shorten(text, 300)}"


def written_lines(writer: str, written: Written) -> Iterator[str]:
    """Yield lines about a writer: how many goldens it wrote, how fast, and which tests were skipped or failed."""
    tests = written.passed + len(written.failed)
    rate = tests / written.seconds
    yield (
        f"{writer}: {written.passed} goldens in {written.seconds:.0f} s, {rate:.1f} a second; all {ALL} would take "
        f"{ALL / rate / 60:.0f} min"
    )
    yield from (f"  {count} skipped: {reason}" for reason, count in written.skipped.most_common())
    yield from (f"  failed: {name}: {textwrap.shorten(text, 300)}" for name, text in written.failed.items())


def main(words: Sequence[str] | None = None) -> int:
    """Write the goldens, replay them, and print the outcome; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, help="so many harnesses; 0 takes all (default: %(default)s)")
    parser.add_argument("--writers", default=WRITERS, help="jaxlib releases V,V (default: %(default)s)")
    parser.add_argument("--readers", default=READERS, help="jaxlib releases V,V (default: %(default)s)")
    parser.add_argument("--goldens", type=Path, help="keep the goldens here")
    parser.add_argument("--results", type=Path, help="keep the results here")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as scratch:
        goldens, folder = (
            path.resolve() if path else Path(scratch) / name
            for path, name in ((options.goldens, "golden"), (options.results, "results"))
        )
        writers = {
            writer: write(writer, options.sample, goldens, Path(scratch) / "junit.xml")
            for writer in options.writers.split(",")
        }
        started = time.monotonic()
        where = ("--goldens", str(goldens), "--readers", options.readers, "--results", str(folder))
        code = jaxexport("matrix", "--policy", str(POLICY), *where, "--quiet", good=range(5))
        seconds = time.monotonic() - started
        results = read_results(folder)
        stored = Counter(golden.manifest.comparison.compare for golden in GoldenStore(goldens).goldens())
    print(*(line for writer, written in writers.items() for line in written_lines(writer, written)), sep="\n")
    named = {comparator: count for comparator, count in stored.items() if comparator in COMPARED_BY.values()}
    print(f"compared other than element by element: {named}; by shape and dtype only: {stored['shape']}")
    print(f"{len(results)} cells in {seconds:.0f} s, {len(results) / seconds:.1f} a second")
    print("Not kept inside the window, by primitive:", *(list(not_kept(results)) or ["none"]), sep="\n  ")
    return code or int(not all(written.passed for written in writers.values()))


if __name__ == "__main__":
    sys.exit(main())

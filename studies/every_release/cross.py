"""The releases that write and read: each writes the programs of `project/`, each reads what all wrote; prints a table.

`nox -s every_release [-- --writers V,V --readers V,V --docs FILE]`. Exit 1 when a release has written nothing that was
read anywhere, or has read nothing.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from export_core.goldens import GoldenStore
from export_core.judge import Result
from export_core.matrix import Verdict
from export_core.policy import load_policy
from export_core.releases import Calendar
from export_core.run.results import read_results

PROJECT = Path(__file__).parent / "project"
POLICY = PROJECT / "export_compat.yaml"
FIRST = "0.4.24"
LETTERS = {
    "programs.test_plain": "p",
    "programs.test_vjp": "v",
    "programs.test_symbolic": "s",
    "programs.test_random_for_two_platforms": "r",
}
LEGEND = """\
Each row is a writer, each column a reader, both by build date and with the same numbers. `·`: all four programs pass. A
letter is a program that does not: p plain, v with two derivatives, s symbolic shapes, r random numbers for two
platforms. `R`: all refused, `E`: all fail."""
PAGE = """# Every release writes, every release reads

Each jaxlib release since 0.4.24, with the jax of its own number, has exported the four programs of
[`programs.py`](../../studies/every_release/project/programs.py), and each has read what all of them wrote, in cold
processes. Printed by `nox -s every_release -- --docs docs/evidence/every-release.md`.

Why releases cannot read each other, always outside the windows:

- *unsupported version*: a release up to 0.8.1 reads only the serialization versions of its time. Releases up to 0.4.34
  read none of 0.8.2 and later, releases up to 0.8.1 none of 0.11.1 and later. A refusal.
- *older than the window*: since 0.11.1 a release reads no artifact in the format of 0.8.1 and earlier. A refusal.
- *Failed to deserialize StableHLO*: the module needs a newer VHLO than the reader has. Nothing checks this before, so
  it is an error.
- *exported for 0 devices* in the full message: since 0.9.1 the number of devices is in a field that releases up to
  0.8.1 do not read. An error too.

"""


def releases(calendar: Calendar) -> list[str]:
    """Every jaxlib of the calendar from the first with the export API of today's artifacts on, by build date."""
    return [version for version in calendar.versions() if calendar.built(version) >= calendar.built(FIRST)]


def write(writers: Sequence[str], goldens: Path) -> None:
    """Let releases write that have not. Raises `SystemExit` when one cannot."""
    have = {golden.manifest.writer.jaxlib for golden in GoldenStore(goldens).goldens()}
    asked = [writer for writer in writers if writer not in have]
    if asked:
        # With "=", since pytest takes a folder that stands alone for one of its tests, and looks for an ini file there.
        jaxexport("backfill", "--writers", ",".join(asked), "--", f"--goldens={goldens}", good=(0,))


def read(writers: Sequence[str], readers: Sequence[str], goldens: Path, results: Path) -> list[Result]:
    """Replay what those writers wrote in those readers."""
    words = ["--goldens", str(goldens), "--writers", ",".join(writers), "--readers", ",".join(readers)]
    jaxexport("matrix", *words, "--results", str(results), "--quiet", good=(0, 1), quiet=True)
    return list(read_results(results))


def moved_inside(goldens: Path) -> set[str]:
    """The releases that could rewrite a program of theirs, and so moved what is rounded inside for its noise."""
    manifests = [golden.manifest for golden in GoldenStore(goldens).goldens()]
    return {manifest.writer.jaxlib for manifest in manifests if manifest.noise and manifest.noise.inside}


def jaxexport(*words: str, good: tuple[int, ...], quiet: bool = False) -> None:
    command = [sys.executable, "-m", "export_core", *words]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE if quiet else None, text=True, check=False)
    if done.returncode not in good:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout or '')[-4000:]}")


def told_of(results: Sequence[Result], writers: Sequence[str], readers: Sequence[str]) -> list[str]:
    """Everything that is printed of a run: the table, the counts, what was said."""
    verdicts = Counter(str(result.verdict) for result in results)
    wrote, have_read = len(passed(results, "writer")), len(passed(results, "reader"))
    inside = [result for result in results if result.promised]
    kept = sum(result.verdict is Verdict.PASS for result in inside)
    return [
        *table(results),
        "",
        f"{len(results)} cells: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.most_common())}. "
        f"Of {len(inside)} inside the window {kept} pass.",
        f"{wrote} of {len(writers)} releases wrote what some release reads, {have_read} of {len(readers)} read what "
        "some release wrote.",
        "",
        *kinds(results),
    ]


def passed(results: Sequence[Result], which: str) -> set[str]:
    """The releases that have a pass as writer, or as reader."""
    return {getattr(result, which).jaxlib for result in results if result.verdict is Verdict.PASS}


def page(lines: Sequence[str]) -> str:
    """The page of the documentation."""
    return f"{PAGE}{LEGEND}\n\n" + "".join(f"    {line}".rstrip() + "\n" for line in lines)


def table(results: Sequence[Result]) -> Iterator[str]:
    """The grid, its columns by number."""
    order = {which: number for number, which in enumerate(numbered(results), 1)}
    cells: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        cells[result.writer.jaxlib, result.reader.jaxlib].append(result)
    writers = sorted({writer for writer, _ in cells}, key=order.__getitem__)
    readers = sorted({reader for _, reader in cells}, key=order.__getitem__)
    built = {each.jaxlib: str(each.built) for result in results for each in (result.writer, result.reader)}
    jax = {each.jaxlib: each.jax for result in results for each in (result.writer, result.reader)}
    yield f"{'':<33}{''.join(f'{order[reader]:>5}' for reader in readers)}"
    for writer in writers:
        own = "" if jax[writer] == writer else f" jax {jax[writer]}"
        head = f"{order[writer]:>2} {writer}{own}"
        yield f"{head:<22}{built[writer]} {''.join(f'{told(cells[writer, reader]):>5}' for reader in readers)}"


def numbered(results: Sequence[Result]) -> list[str]:
    found = {(each.built, each.jaxlib) for result in results for each in (result.writer, result.reader)}
    return [
        jaxlib for _, jaxlib in sorted(found, key=lambda each: (each[0], [int(part) for part in each[1].split(".")]))
    ]


def told(results: Sequence[Result]) -> str:
    """One cell of the grid."""
    bad = [result for result in results if result.verdict is not Verdict.PASS]
    if len(bad) == len(results) > 1:
        return "R" if all(result.verdict is Verdict.REFUSED for result in bad) else "E"
    return "".join(letter for case, letter in LETTERS.items() if any(result.case == case for result in bad)) or "·"


def kinds(results: Sequence[Result]) -> Iterator[str]:
    """What was said where a program did not pass, each kind once."""
    found: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        if result.verdict is not Verdict.PASS:
            said = re.sub(r"^(vjp|call|refused)\d: ", "", result.message.partition("\n")[0])
            said = re.sub(r"\bFunction \S+", "Function F", re.sub(r"\d+", "N", said))[:150].rstrip()
            found[result.verdict, result.stage, said].append(result)
    for (verdict, stage, said), those in sorted(found.items(), key=lambda each: -len(each[1])):
        programs = "".join(letter for case, letter in LETTERS.items() if any(case == each.case for each in those))
        writers, readers = (span(those, which) for which in ("writer", "reader"))
        inside = sum(each.promised for each in those)
        promised = f", {inside} inside the window" if inside else ""
        yield f"{len(those)} × {verdict} in stage {stage} ({programs}; writers {writers}, readers {readers}{promised})"
        yield f"    {said}"


def span(results: Sequence[Result], which: str) -> str:
    """From the oldest to the newest."""
    found = sorted({(getattr(result, which).built, getattr(result, which).jaxlib) for result in results})
    return found[0][1] if len(found) == 1 else f"{found[0][1]} to {found[-1][1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", help="jaxlib releases V,V; all if not given")
    parser.add_argument("--readers", help="jaxlib releases V,V; all if not given")
    parser.add_argument(
        "--goldens", type=Path, help="keep the goldens here; releases that have written there are not asked again"
    )
    parser.add_argument("--results", type=Path, help="keep the results here")
    parser.add_argument("--docs", type=Path, help="write the page of the documentation too")
    options = parser.parse_args()
    known = releases(load_policy(POLICY).calendar())
    writers, readers = (named.split(",") if named else known for named in (options.writers, options.readers))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        goldens = options.goldens.resolve() if options.goldens else Path(scratch) / "golden"
        write(writers, goldens)
        folder = options.results.resolve() if options.results else Path(scratch) / "results"
        results = read(writers, readers, goldens, folder)
        not_moved = [writer for writer in writers if writer not in moved_inside(goldens)]
    lines = told_of(results, writers, readers)
    lines += ["", f"{len(writers) - len(not_moved)} of {len(writers)} releases moved what is rounded inside"]
    lines += [f"not {', '.join(not_moved)}"] if not_moved else []
    print(LEGEND, *lines, f"{time.monotonic() - started:.0f} s", sep="\n")
    if options.docs:
        options.docs.write_text(page(lines))
    return 0 if {*writers} <= passed(results, "writer") and {*readers} <= passed(results, "reader") else 1


if __name__ == "__main__":
    sys.exit(main())

"""A table of libraries for JAX whose computations can be exported, and read by other releases.

`nox -s libraries [-- --writers V --readers V,V --only keras,jraph --goldens DIR --results DIR --docs FILE]`. Marked
tests of each library write goldens, and releases read the goldens. The exit code is 1 if a promised cell does not pass,
or if a test fails that `REFUSED` does not list. It is also 1 if a listed test does not fail as listed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from export_core.goldens import GoldenStore
from export_core.judge import Result
from export_core.matrix import Verdict
from studies.corpus.choosing import ROOT, Group, case_of, choose
from tools.stored_results import read_results

POLICY = Path(__file__).parent / "export_compat.yaml"
WRITER = "0.11.2-jax0.11.2"
READERS = "0.11.1,0.11.2,0.12.0.1"

LIBRARIES = {group.name: group for group in choose("library")}
"""The tests of each library, and the packages that they need, by the name of the library."""
COLUMNS = {
    "test_forward": "forward",
    "test_gradient": "gradient",
    "test_random_key": "random key",
    "test_symbolic_batch": "symbolic batch",
    "test_model_argument": "model as an argument",
}
# What cannot be exported: who refuses it, and a part of the message.
REFUSED = {
    ("distrax", "test_model_argument"): ("JAX", "Too many leaves for PyTreeDef"),
    ("optimistix", "test_least_squares"): ("JAX", "lapack_sormqr_ffi"),
    ("penzai", "test_symbolic_batch"): ("Penzai", "NamedArray.named_axes must be an ordered dictionary"),
}
PAGE = """# Libraries

What libraries for JAX compute, exported by marked tests as their maintainers would write them, and read where no
library is installed. Made by `nox -s libraries -- --docs docs/reference/libraries.md`: it installs them, writes goldens
with jax {jax} and jaxlib {jaxlib}, and replays these with `jaxexport matrix` in environments that contain jax,
jaxlib and numpy: {readers}.

| column | what is exported |
|---|---|
| forward | a call, with the model in the function |
| gradient | the same with `vjp_order=1`: the reader differentiates it |
| random key | dropout, a sample or a chain that takes the key as an argument; Keras takes the state of its seed |
| symbolic batch | a function of `b` rows, called with two sizes |
| model as an argument | a step of training, a solver or a sampler: it takes and returns the library's own trees |

*Works*: written, and the same in all these readers.

"""
NOTES = """
Diffrax, Lineax and Optimistix were exported with the environment variable `EQX_ON_ERROR=nan`: a check of Equinox then
makes outputs NaN where it fails. Without it, the check calls back into Python, which no artifact can contain: refused
are `throw=True`, all of Diffrax but the neural ODE with fixed steps (*model as an argument*), and gradients by Lineax
and Optimistix. `EQX_ON_ERROR=raise nox -s libraries -- --only diffrax,lineax,optimistix` shows it.

The tests are [`tests/compat/test_equinox.py`](../../tests/compat/test_equinox.py) and
[`test_optax.py`](../../tests/compat/test_optax.py), which CI runs too, and those of the other libraries in
[`studies/corpus/programs`](../../studies/corpus/programs).
"""


@dataclass(frozen=True)
class Row:
    """The outcome of a test of a library. `outcome` is "works", or what the table says instead."""

    library: str
    version: str
    test: str
    outcome: str
    message: str = ""

    @property
    def expected(self) -> bool:
        """Whether the test works, or is refused as `REFUSED` lists it."""
        by, message = REFUSED.get((self.library, self.test), ("", ""))
        return self.outcome == f"refused by {by}" and message in self.message if by else self.outcome[:5] == "works"


def write(libraries: Sequence[Group], writer: str, goldens: Path, junit: Path) -> dict[str, str]:
    """Write the goldens of these libraries with a release, and return the message of each failing test, by case.

    Args:
        libraries: the tests of the libraries.
        writer: the release.
        goldens: the folder to write into.
        junit: a file for the tests' outcomes.
    """
    install = dict.fromkeys(["pytest-xdist", *(name for library in libraries for name in library.packages)])
    # The warnings of the libraries are no errors here.
    words = ["-W", "ignore", "-n", "2", "--dist", "loadfile", f"--junitxml={junit}", f"--goldens={goldens}"]
    files = [path for library in libraries for path in library.paths]
    jaxexport(
        "goldens", "backfill", "--writers", writer, *(f"--install={name}" for name in install), "--", *words, *files
    )
    return {
        f"{test.get('classname')}.{test.get('name')}": problem.get("message", "")
        for test in ElementTree.parse(junit).iter("testcase")
        for problem in test
        if problem.tag in ("failure", "error")
    }


def read(readers: str, goldens: Path, folder: Path) -> list[Result]:
    """Replay the goldens in these readers, separated by commas; write the results into `folder`, and return them."""
    where = ("--goldens", str(goldens), "--readers", readers, "--results", str(folder))
    jaxexport("matrix", "--policy", str(POLICY), *where, "--quiet")
    return read_results(folder)


def jaxexport(*words: str) -> None:
    """Run `jaxexport`, also with tests or cells that fail.

    Raises:
        SystemExit: the exit code is neither 0 nor 1.
    """
    # Failures are what is looked for here: only what was not run at all ends this program.
    command = [sys.executable, "-m", "export_core", *words]
    variables = {"EQX_ON_ERROR": "nan", **os.environ}
    if (code := subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode) not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {code}.")


def rows_of(library: Group, store: GoldenStore, failed: Mapping[str, str], results: Iterable[Result]) -> Iterator[Row]:
    """Yield the outcome of each test of a library.

    Args:
        library: the tests of the library.
        store: the goldens, which have the version of the library.
        failed: the messages of tests that wrote no golden, by case.
        results: the results of all goldens.
    """
    cells: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        cells[result.case].append(result)
    for test in library.tests:
        case, name = case_of(test), test.partition("::")[2]
        outcome, message = outcome_of(library.name, name, cells[case], failed.get(case, ""))
        packages = next((golden.manifest.packages for golden in store.generations(case)), {})
        yield Row(library.name, packages.get(library.packages[0], ""), name, outcome, message)


def outcome_of(library: str, test: str, cells: Sequence[Result], failure: str) -> tuple[str, str]:
    """Return what the table says of a test, and the message that is shown below the table.

    Args:
        library: the name of the library.
        test: the name of the test.
        cells: the results of its golden; none if it wrote no golden.
        failure: the message of the test if it wrote no golden.
    """
    if not cells:
        return f"refused by {REFUSED.get((library, test), ('JAX',))[0]}", in_a_line(failure)
    bad = [cell for cell in cells if cell.verdict is not Verdict.PASS]
    if not bad:
        return "works", ""
    readers = ", ".join(cell.reader.jaxlib for cell in bad)
    start = "fails" if any(cell.promised for cell in bad) else "works, outside not"
    return f"{start} in {readers}", in_a_line(bad[0].message)


def in_a_line(message: str) -> str:
    """Return the beginning of a message on one line, without the test's name."""
    return textwrap.shorten(re.sub(r"^Failed: \S+: ", "", message), 320, placeholder=" …")


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table, then those of a list: messages, and tests that have no column in the table."""
    libraries: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        libraries[row.library][row.test] = row
    yield f"| library | version | {' | '.join(COLUMNS.values())} |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for library, tests in libraries.items():
        version = max(row.version for row in tests.values())
        yield f"| {library} | {version} | {' | '.join(tests[test].outcome for test in COLUMNS)} |"
    yield "\nThe messages, and tests that have no column:\n"
    for row in rows:
        if row.message or row.test not in COLUMNS:
            what = row.test.removeprefix("test_").replace("_", " ")
            text = f"- {row.library}, {what}: {row.outcome}{': ' * bool(row.message)}{row.message}"
            yield textwrap.fill(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def page(rows: Sequence[Row], store: GoldenStore, results: Sequence[Result]) -> str:
    """Return the text of docs/reference/libraries.md."""
    writer = next(golden.manifest.writer for golden in store.goldens())
    readers = {(result.reader.built, result.reader.jaxlib): result.promised for result in results}
    named = [f"{jaxlib} ({'inside' if readers[built, jaxlib] else 'outside'})" for built, jaxlib in sorted(readers)]
    head = PAGE.format(jax=writer.jax, jaxlib=writer.jaxlib, readers=", ".join(named))
    return head + "\n".join(table(rows)) + "\n" + NOTES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", default=WRITER, help="a jaxlib release, or one with its jax; default: %(default)s")
    parser.add_argument("--readers", default=READERS, help="jaxlib releases V,V; default: %(default)s")
    parser.add_argument("--only", help="these libraries, such as keras,jraph")
    parser.add_argument("--goldens", type=Path, help="keep the goldens here")
    parser.add_argument("--results", type=Path, help="keep the results here")
    parser.add_argument("--docs", type=Path, help="write the page of the documentation too")
    options = parser.parse_args()
    libraries = [one for name, one in LIBRARIES.items() if not options.only or name in options.only.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        goldens, folder = (
            path.resolve() if path else Path(scratch) / name
            for path, name in ((options.goldens, "golden"), (options.results, "results"))
        )
        failed = write(libraries, options.writers, goldens, Path(scratch) / "junit.xml")
        results = read(options.readers, goldens, folder)
        store = GoldenStore(goldens)
        rows = [row for library in libraries for row in rows_of(library, store, failed, results)]
        text = page(rows, store, results)
    print(text)
    if options.docs:
        options.docs.write_text(text, encoding="utf-8")
    for row in (wrong := [row for row in rows if not row.expected]):
        print(f"{row.library}, {row.test}: not as expected: {row.outcome} {row.message}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

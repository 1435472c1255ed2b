"""A measurement of how outputs of functions depend on their kernels: `python -m studies.numbers.kernels`.

It runs functions in the environments of releases. Then it runs them again with environment variables that make OpenBLAS
or XLA use the code for a different processor. It prints how many elements have different bits, and the largest error.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from export_core.policy import load_policy
from export_core.readers.environment import Environment, ReaderEnvironments, with_variables
from export_core.readers.hardware import instruction_set
from export_core.readers.placement import Placement
from studies.corpus.choosing import ROOT
from studies.numbers.__main__ import WRITERS, write_page
from studies.numbers.collect import POLICY
from studies.numbers.tables import WIDTH

BEGIN, END = "<!-- kernels -->\n", "<!-- end -->\n"
COLUMNS = {
    "`OPENBLAS_CORETYPE` Haswell, Sandybridge, Prescott": [
        {"OPENBLAS_CORETYPE": core} for core in ("Haswell", "Sandybridge", "Prescott")
    ],
    "`XLA_FLAGS=--xla_cpu_max_isa` AVX, SSE4_2": [
        {"XLA_FLAGS": f"--xla_cpu_max_isa={instructions}"} for instructions in ("AVX", "SSE4_2")
    ],
}
"""The environment variables of each further run, by column of the table."""
Outputs = Mapping[str, Sequence[Any]]
"""The floating-point outputs of each function, by its name."""


@dataclass(frozen=True)
class Change:
    """The change that different kernels make in the outputs of a function.

    `share` is the share of elements with different bits. `error` is the largest error, in units in the last place of
    the largest element of the output.
    """

    share: float
    error: float


def compare(expected: Sequence[Any], found: Sequence[Any]) -> Change:
    """Return the change between two runs of a function, over all its outputs. 0 and -0 count as different bits."""
    pairs = list(zip(expected, found, strict=True))
    changed = np.concatenate([_other_bits(want, got) for want, got in pairs])
    error = max(np.abs(want - got).max() / np.spacing(np.abs(want).max()) for want, got in pairs)
    return Change(float(changed.mean()), float(error))


def _other_bits(expected: Any, found: Any) -> Any:
    one, other = (np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8) for array in (expected, found))
    return (one != other).any(axis=1)


NO_CHANGE = "0"


def text_of(changes: Iterable[Change]) -> str:
    """Return the text for several changes in a cell of the table: the range of shares, and the largest error.

    The text is "0" if no bit changes.
    """
    changes = list(changes)
    shares = sorted(change.share for change in changes)
    if not shares[-1]:
        return NO_CHANGE
    ends = dict.fromkeys(f"{100 * share:.0f}" for share in (shares[0], shares[-1]))
    return f"{'–'.join(ends)} %, {max(change.error for change in changes):.3g}"


def run(environment: Environment, variables: Mapping[str, str]) -> Outputs:
    """Run the functions in an environment, in a new process with these variables, and return their outputs."""
    given = {**with_variables(environment, **variables).variables, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "outputs.npz"
        words = [str(environment.python), "-m", "studies.numbers.kernel_programs", str(file)]
        subprocess.run(words, cwd=ROOT, env=given, check=True)
        answers: dict[str, list[Any]] = {}
        with np.load(file) as outputs:
            for name, array in outputs.items():
                if array.dtype.kind in "fc":  # pivots and permutations have no error
                    answers.setdefault(name.rpartition(" ")[0], []).append(array)
    return answers


def changes_in(environment: Environment) -> dict[str, dict[str, list[Change]]]:
    """Return what the environment variables of each column change in the outputs, by function and by column.

    Raises:
        SystemExit: two runs with the same variables differ.
    """
    native, again = run(environment, {}), run(environment, {})
    if unsteady := [name for name in native if compare(native[name], again[name]).share]:
        problem = f"expected the same bits in two equal runs, found others in {', '.join(unsteady)}"
        raise SystemExit(f"jaxlib {environment.release.jaxlib}: {problem}")
    others = {column: [run(environment, variables) for variables in given] for column, given in COLUMNS.items()}
    return {
        name: {column: [compare(answer, one[name]) for one in ones] for column, ones in others.items()}
        for name, answer in native.items()
    }


def markdown(releases: Sequence[str], found: Sequence[Mapping[str, Mapping[str, Sequence[Change]]]]) -> str:
    """Return the table of changes as Markdown, with a sentence about what ran.

    Args:
        releases: the releases.
        found: the changes in each release, in the same order, by function and by column.
    """
    ran = (
        f"On {instruction_set()}, jaxlib {', '.join(releases)}: the share of elements with other bits, from the least "
    )
    ran += "to the most, and the largest error, in units in the last place of the largest element of the output."
    cells = {
        name: [text_of(change for one in found for change in one[name][column]) for column in COLUMNS]
        for name in found[0]
    }
    rows = [("", *COLUMNS), ("-",) * (len(COLUMNS) + 1)]
    rows += [(name, *texts) for name, texts in cells.items() if set(texts) != {NO_CHANGE}]
    steady = ", ".join(name for name, texts in cells.items() if set(texts) == {NO_CHANGE})
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{textwrap.fill(ran, WIDTH)}\n\n{table}\n\nNo bit changes in: {steady or 'none'}."


def main() -> None:
    parser = argparse.ArgumentParser(prog="studies.numbers.kernels", description=__doc__)
    parser.add_argument("--readers", default=WRITERS, help=f"releases that run the functions. Default: {WRITERS}")
    parser.add_argument("--docs", type=Path, help="write this into the page: docs/evidence/numbers-measured.md")
    options = parser.parse_args()
    releases, calendar = options.readers.split(","), load_policy(POLICY).calendar()
    with ReaderEnvironments(calendar) as environments:
        built = [environments.build(Placement(calendar.release(release))) for release in releases]
        text = markdown(releases, [changes_in(environment) for environment in built])
    print(text)
    if options.docs:
        write_page(options.docs, text, BEGIN, END)


if __name__ == "__main__":
    main()

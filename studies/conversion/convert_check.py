"""A measurement of what conversion fixes: `nox -s convert_check`.

Each of WRITERS exports some thirty programs of tests/compat, and each of READERS replays them. The artifact of each
cell that fails is converted for the reader by the smallest change that works, and replayed in it. A cell that works
must need no conversion. A row for each reader is printed. The exit code is 0 if 90 % of the failing cells are fixed, no
converted artifact gives wrong numbers, and no working cell got worse, else 1. `--docs FILE` writes the table into that
page, and a row for each writer and reader into a CSV file beside it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from export_core.features.convert.convert import UNCHANGED, convert, find_reader
from export_core.features.convert.errors import ConversionRefused
from export_core.features.convert.fix import FixByConversion, Level
from export_core.features.convert.fixed_by_conversion import try_conversions
from export_core.features.convert.programs import ModuleRewriter
from export_core.goldens import GoldenStore
from export_core.matrix import Cell, CellLimits, Verdict
from export_core.matrix.cached_replay import replay_here
from export_core.matrix.comparisons import under_policy
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import load_policy

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / ".nox" / "convert_check" / "golden"
WRITERS = (
    *("0.4.30", "0.5.0", "0.6.0", "0.6.2", "0.7.0", "0.7.2", "0.8.1", "0.9.0.1", "0.9.2", "0.10.0", "0.10.2"),
    *("0.11.1", "0.12.0.1"),
)
READERS = ("0.6.2", "0.7.2", "0.8.1", "0.9.2", "0.10.2", "0.11.0", "0.11.2", "0.12.0.1")
PROGRAMS = {
    "models": "",
    "programs": "random or scan or sort or special or top_k or while",
    "derivatives": "custom_vjp or first_order or third_order",
    "linear_algebra": "",
    "symbolic_shapes": "one_dimension or several_dimensions or with_derivative",
    "platforms": "every_platform or targets_of_each or derivative_lowered_by_platform",
    "effects": "ordered",
    "shardings": "constraint or derivative or four_devices or reduction or shard_map or two_devices",
    "trees": "custom_node or namedtuple",
    "dtypes": "bfloat16 or float8_e4m3fn",
}
"""Files of tests/compat, each with the tests that are run, as `pytest -k` selects them; "" for all tests."""
BUDGET = 0.9
MARKED = re.compile(r"(<!-- nox -s convert_check: begin -->\n).*?(<!-- nox -s convert_check: end -->)", re.DOTALL)
COLUMNS = ("works", "fails", "envelope", "module", "custom calls", "refused", "wrong", "writer's own", "worse")


@dataclass(frozen=True)
class Ended:
    """A cell with the column of the table in which it counts, and the reason for that."""

    cell: Cell
    column: str
    why: str = ""


def main() -> None:
    """Write the goldens, replay them, convert the cells that fail, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", default=",".join(WRITERS), help="jaxlib releases, with commas")
    parser.add_argument("--readers", default=",".join(READERS), help="jaxlib releases, with commas")
    parser.add_argument("--docs", type=Path, help="write the table into this page, and each writer's into a .csv")
    options = parser.parse_args()
    writers, readers = options.writers.split(","), options.readers.split(",")
    write_goldens(writers)
    ended = check(writers, readers)
    counts = count_cells(ended)
    text = "\n".join([*table(counts), "", *reasons(ended)])
    print(text)
    if options.docs:
        page = options.docs.read_text()
        options.docs.write_text(MARKED.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page))
        options.docs.with_suffix(".csv").write_text("\n".join([*rows_of_writers(counts), ""]))
    sys.exit(verdict(ended))


def write_goldens(writers: Sequence[str]) -> None:
    """Export the programs with each of these releases, except releases that have exported them in an earlier run."""
    written = (
        {golden.manifest.writer.jaxlib for golden in GoldenStore(GOLDENS).goldens()} if GOLDENS.is_dir() else set()
    )
    if not (missing := [writer for writer in writers if writer not in written]):
        return
    files = [f"tests/compat/test_{name}.py" for name in PROGRAMS]
    chosen = " or ".join(f"test_{name} and ({words})" if words else f"test_{name}" for name, words in PROGRAMS.items())
    command = [
        sys.executable,
        "-m",
        "export_core",
        "goldens",
        "backfill",
        "--writers",
        ",".join(missing),
        "--install",
        ".",
    ]
    # Some releases cannot export some of the programs: these tests fail, and nothing is converted.
    subprocess.run([*command, "--", "--goldens", str(GOLDENS), *files, "-k", chosen, "-q"], cwd=ROOT, check=False)


def check(writers: Sequence[str], readers: Sequence[str]) -> list[Ended]:
    """Replay each golden in each reader and in its own writer, and convert the cells that fail.

    Raises:
        SystemExit: a cell could not be run.
    """
    policy = load_policy(ROOT / "export_compat.yaml")
    calendar = policy.calendar()
    replay_options = ReplayOptions(calendar, policy, CellLimits(jobs=os.cpu_count() or 1))
    goldens = [golden for golden in GoldenStore(GOLDENS).goldens() if golden.manifest.writer.jaxlib in writers]
    goldens = [golden for golden in under_policy(goldens, policy) if "cpu" in golden.manifest.replayed_on]
    own = [Cell(golden, calendar.release(golden.manifest.writer.jaxlib), "cpu") for golden in goldens]
    cells = [Cell(golden, calendar.release(reader), "cpu") for reader in readers for golden in goldens]
    rewrite = ModuleRewriter(calendar, note)
    # A golden whose numbers differ even in its own writer is wrong itself: no conversion can fix that.
    wrong = {one.golden for _, one in replay_here(own, replay_options, notify=note) if one.verdict is Verdict.NUMERICS}
    today = {one.key: one for _, one in replay_here(cells, replay_options, notify=note)}
    ended: list[Ended] = []
    failing: dict[str, list[Cell]] = {reader: [] for reader in readers}
    for cell in cells:
        outcome = today[cell.key]
        if outcome.verdict is Verdict.NOT_RUN:
            raise SystemExit(f"{cell.key}: expected that it runs, found that it did not: {outcome.message}")
        if outcome.verdict is Verdict.PASS:
            reader = find_reader(cell.reader.jaxlib, calendar)
            try:
                way = convert(cell.golden.read_artifact(), reader, rewrite, replace_custom_calls=True).way
                unchanged = way == UNCHANGED
                ended.append(Ended(cell, "works" if unchanged else "worse", "" if unchanged else "it was converted"))
            except ConversionRefused as refused:
                ended.append(Ended(cell, "works", f"works, and conversion refuses it: {refused}"))
        elif cell.golden.id in wrong:
            ended.append(Ended(cell, "writer's own", outcome.message))
        else:
            failing[cell.reader.jaxlib].append(cell)
    for tried in failing.values():
        ended += [Ended(cell, *column_of(fix)) for cell, fix in try_conversions(tried, rewrite, replay_options, note)]
    return ended


def column_of(fix: FixByConversion) -> tuple[str, str]:
    """Return the column of a failing cell whose conversion was tried, and the reason."""
    if fix.fixes:
        assert fix.level is not None
        return fix.level, fix.message
    if fix.verdict is None:
        return "refused", fix.message
    # A crash or wrong numbers after a conversion are worse than a failure without one.
    return "wrong" if fix.verdict in (Verdict.NUMERICS, Verdict.CRASH) else "refused", fix.message


def count_cells(ended: Sequence[Ended]) -> dict[tuple[str, str], Counter[str]]:
    """Return the number of cells in each column, by writer and reader.

    A failing cell counts in two columns: as failing, and as fixed, refused or wrong.
    """
    counts: dict[tuple[str, str], Counter[str]] = {}
    for one in ended:
        key = one.cell.golden.manifest.writer.jaxlib, one.cell.reader.jaxlib
        columns = (one.column, "fails") if one.column in (*Level, "refused", "wrong") else (one.column,)
        counts.setdefault(key, Counter()).update(columns)
    order = [(writer, reader) for writer in WRITERS for reader in READERS]
    return dict(sorted(counts.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def table(counts: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """Return the lines of a Markdown table with a row for each reader, and a row for all readers together."""
    readers: dict[str, Counter[str]] = {}
    for (_, reader), count in counts.items():
        readers.setdefault(reader, Counter()).update(count)
    rows = [*readers.items(), ("all", sum(readers.values(), Counter()))]
    head = [f"| {' | '.join(('reader', *COLUMNS))} |", f"|{' - |' * (len(COLUMNS) + 1)}"]
    return head + [f"| {name} | {' | '.join(str(count[column]) for column in COLUMNS)} |" for name, count in rows]


def rows_of_writers(counts: dict[tuple[str, str], Counter[str]]) -> list[str]:
    """Return the lines of a CSV file: a head, and a line for each writer and reader."""
    head = ",".join(("writer", "reader", *COLUMNS))
    return [head, *(",".join((*key, *(str(count[column]) for column in COLUMNS))) for key, count in counts.items())]


def reasons(ended: Sequence[Ended]) -> list[str]:
    """Return a line for each reason why cells are not fixed, with an example; the most frequent reason comes first."""
    by_reason: dict[tuple[str, str], list[Ended]] = {}
    for one in ended:
        if one.column in ("refused", "wrong", "worse"):
            # Without the names of artifact, reader and interface, so that equal reasons are equal.
            reason = re.sub(r"^.*?: (not converted for jaxlib \S+: )?", "", one.why).split(". JAX's own bypass")[0]
            reason = reason[:300].rstrip(".").replace("_ffi ", " ")
            by_reason.setdefault((one.column, reason), []).append(one)
    return [
        f"- {len(found)} {column}, such as {found[0].cell.golden.id} in {found[0].cell.reader.jaxlib}: {reason}"
        for (column, reason), found in sorted(by_reason.items(), key=lambda item: -len(item[1]))
    ]


def verdict(ended: Sequence[Ended]) -> int:
    """Print how many cells are fixed, and return the exit code: 0 if the budgets are met, else 1."""
    count = Counter(one.column for one in ended)
    fixed = sum(count[level] for level in Level)
    fails = fixed + count["refused"] + count["wrong"]
    share = fixed / fails if fails else 1.0
    good = share >= BUDGET and not count["wrong"] and not count["worse"]
    print(
        f"{fixed} of {fails} failing cells are fixed, {share:.1%} (budget {BUDGET:.0%}); wrong: {count['wrong']}, "
        f"worse: {count['worse']} (budget 0): {'ok' if good else 'MISSED'}"
    )
    return 0 if good else 1


def note(text: str) -> None:
    """Print a line to stderr."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

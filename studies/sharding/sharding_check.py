"""A check that adopted artifacts for several devices give the right numbers in every reader.

`nox -s sharding_check [-- --versions 0.6.2,0.12.0.1 --devices 4 --programs grid,psum]`. Releases export the programs of
sharded_programs.py in their own environments; their artifacts, inputs and outputs are all that `jaxexport goldens
add` gets. Then each golden is replayed in each of the releases. A cell is right where it passes. It is unavailable
where the same release also fails when the artifact is called by hand, on the mesh of its source. All others are wrong.
The exit code is 1 for a wrong cell.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from export_core.cli.app import jaxexport
from export_core.judge import Result
from export_core.matrix import Selection, Verdict
from export_core.policy import Policy
from export_core.policy.run_options import RunOptions
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar
from export_core.run.session import run_matrix

PROGRAMS = Path(__file__).with_name("sharded_programs.py")
VERSIONS = ("0.6.2", "0.7.2", "0.9.2", "0.10.2", "0.12.0.1")


def run_programs(version: str, made: Path, *words: str) -> None:
    """Run the programs' script in the environment of a release; the folder's name is the number of devices."""
    calendar = load_calendar()
    environment = ReaderEnvironments(calendar).build(Placement(calendar.release(version)))
    command = [str(environment.python), "-W", "ignore", str(PROGRAMS), str(made), made.name, *words]
    done = subprocess.run(command, env=dict(environment.variables), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"jaxlib {version}, {made.name} devices: expected exports, found:\n{done.stderr[-2000:]}")


def called_by_hand(reader: str, made: Path) -> dict[str, str]:
    """Call each artifact of a folder by hand in a release; return why each fails, empty for those that work."""
    report = made / f"called-{reader}.json"
    run_programs(reader, made, "--call", str(report))
    return dict(json.loads(report.read_bytes()))


def adopt(made: Path, version: str, goldens: Path) -> list[str]:
    """Add each artifact of a folder as a golden; return the refusals."""
    problems = []
    for file in sorted(made.glob("*.jaxexport")):
        arrays = [
            word for what in ("inputs", "outputs") for word in (f"--{what}", str(made / f"{file.stem}.{what}.npz"))
        ]
        words = ["--artifact", str(file), *arrays, "--cases", f"{file.stem}.{made.name}", "--writers", version]
        # The matrix replays it in its writer too, whose failures are compared with a call by hand.
        words.append("--no-replay")
        ended = CliRunner().invoke(jaxexport, ["goldens", "add", *words, "--goldens", str(goldens)])
        if ended.exit_code:
            problems.append(f"{version}: {ended.output}{ended.exception}")
    return problems


@dataclass(frozen=True)
class Cell:
    """A replayed cell, with the reason why a call by hand fails there, empty where that works."""

    result: Result
    by_hand: str

    @property
    def kind(self) -> str:
        """The kind of the cell: right, unavailable or wrong."""
        if self.result.verdict is Verdict.PASS:
            return "right"
        return "unavailable" if self.by_hand and self.result.verdict in (Verdict.REFUSED, Verdict.ERROR) else "wrong"


def adopt_all(
    versions: Sequence[str], devices: Sequence[int], folder: Path, programs: Sequence[str] = ()
) -> tuple[list[tuple[str, Path]], list[str]]:
    """Export and adopt with each release; return each writer with the folder of its exports, and the refusals."""
    made = [(version, folder / version / str(count)) for version in versions for count in devices]
    refused: list[str] = []
    for version, made_by in made:
        run_programs(version, made_by, *programs)
        refused += adopt(made_by, version, folder / "golden")
    return made, refused


def replay_all(readers: Sequence[str], folder: Path) -> list[Result]:
    """Replay the adopted goldens in each of these readers."""
    options = RunOptions(results=folder / "results", goldens=folder / "golden", cache=False)
    return [*run_matrix(Policy(), Selection(readers=",".join(readers)), options).results]


def beside_calls_by_hand(results: Sequence[Result], made: Sequence[tuple[str, Path]]) -> list[Cell]:
    """Return the cells, each with the result of a call by hand in the same reader."""
    readers = {result.reader.jaxlib for result in results}
    by_hand = {
        (writer, made_by.name, reader): called_by_hand(reader, made_by)
        for writer, made_by in made
        for reader in readers
    }
    cells = []
    for result in results:
        program, _, count = result.case.rpartition(".")
        cells.append(Cell(result, by_hand[result.writer.jaxlib, count, result.reader.jaxlib][program]))
    return cells


def table(cells: Sequence[Cell], versions: Sequence[str]) -> list[str]:
    """Return a line for each writer and number of devices: right, unavailable and wrong cells in each reader."""
    counts = Counter(
        (cell.result.writer.jaxlib, cell.result.case.rpartition(".")[2], cell.result.reader.jaxlib, cell.kind)
        for cell in cells
    )
    lines = [f"{'writer':<12}{'devices':>8}" + "".join(f"{version:>12}" for version in versions)]
    for writer in versions:
        for count in sorted({key[1] for key in counts}, key=int):
            in_readers = (
                "/".join(str(counts[writer, count, reader, kind]) for kind in ("right", "unavailable", "wrong"))
                for reader in versions
            )
            lines.append(f"{writer:<12}{count:>8}" + "".join(f"{text:>12}" for text in in_readers))
    return lines


def main() -> int:
    """Print the table and each wrong cell; return 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", default=",".join(VERSIONS))
    parser.add_argument("--devices", default="2,4,8")
    parser.add_argument("--programs", default="", help="some of them; default: all")
    parser.add_argument("--folder", type=Path, help="store artifacts, goldens and results here")
    options = parser.parse_args()
    versions, devices = options.versions.split(","), [int(count) for count in options.devices.split(",")]
    programs = [name for name in options.programs.split(",") if name]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        made, refused = adopt_all(versions, devices, folder, programs)
        cells = beside_calls_by_hand(replay_all(versions, folder), made)
    wrong = [cell.result for cell in cells if cell.kind == "wrong"]
    for result in wrong:
        print(f"{result.golden} in {result.reader.jaxlib}: {result.verdict} in {result.stage}: {result.message[:400]}")
    print(*(f"refused when added: {text}" for text in refused), *table(cells, versions), sep="\n")
    counts = Counter(cell.kind for cell in cells)
    print(f"right/unavailable/wrong: {dict(counts)} of {len(cells)} cells, in {time.monotonic() - started:.0f} s")
    return 1 if wrong or refused or not cells else 0


if __name__ == "__main__":
    sys.exit(main())

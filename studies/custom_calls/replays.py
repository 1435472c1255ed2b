"""The replays that docs/how-to/change-a-custom-call.md shows: `nox -s custom_calls` writes their results. Needs g++.

Two real releases write goldens, each with the lowering of its day. Five real releases, from before the change to after
its end, read the goldens, each with the library of its day.
"""

import datetime
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from export_core.features.adopt.adopt_command import add as add_golden
from export_core.goldens import GoldenStore
from export_core.judge import Result, RunFacts, judge
from export_core.matrix import Selection, make_plan
from export_core.matrix.replay import replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.policy import load_policy
from export_core.policy.run_options import CellLimits
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar
from export_core.run.plan_record import record_of
from export_core.run.results import Journal, finish_run
from export_core.run.run import judge_run
from studies.custom_calls.building import HERE, build_libraries, with_library

AS_OF = datetime.date(2026, 11, 21)
CASE = "scale"
WRITERS = {"0.9.0.1": "D-1", "0.9.1": "D+21"}
READERS = {"0.9.0.1": "D-1", "0.9.1": "D", "0.10.2": "D", "0.11.1": "D", "0.11.2": "RELEASE+180"}
"""The releases that read, each with the day whose library it has. In `WRITERS`, the day is that of the lowering."""


def write_goldens(store: Path, folder: Path, libraries: dict[str, Path]) -> None:
    """Write a golden by each writer, from an artifact that the writer exports with jax alone.

    Args:
        store: the folder of the goldens.
        folder: a scratch folder.
        libraries: the library of each day.
    """
    for writer, day in WRITERS.items():
        made = folder / writer
        made.mkdir()
        environment = with_library(_environment(writer), libraries["D-1" if day == "D-1" else "D"])
        variables = {**environment.variables, "PYTHONPATH": str(HERE)}
        subprocess.run([environment.python, HERE / "write_scale.py", day, made], env=variables, check=True)
        files = [f"--{name}={made / name}.npz" for name in ("inputs", "outputs")]
        files.append(f"--artifact={made / 'artifact.jaxexport'}")
        add_golden.main(
            [
                *files,
                "--cases",
                CASE,
                "--register",
                str(HERE / "scale_targets.py"),
                "--writers",
                writer,
                "--goldens",
                str(store),
                "--no-replay",  # its writer needs the library of its day
            ],
            standalone_mode=False,
        )


def run(results: Path) -> Sequence[Result]:
    """Write the goldens, replay them in every reader, and store plan, results and summary in `results`."""
    policy = load_policy(HERE / "export_compat.yaml")
    windows, calendar = policy.window_lengths(), policy.calendar()
    with tempfile.TemporaryDirectory() as scratch:
        oldest = _environment(min(READERS, key=calendar.built))
        headers = subprocess.run(
            [oldest.python, "-c", "import jax.ffi; print(jax.ffi.include_dir())"],
            env=dict(oldest.variables), capture_output=True, text=True, check=True,
        )  # fmt: skip
        libraries = build_libraries(Path(scratch) / "libraries", headers.stdout.strip())
        write_goldens(Path(scratch) / "golden", Path(scratch), libraries)

        def environment_for(placement: Placement) -> Environment:
            reader = placement.reader.jaxlib
            return with_library(_environment(reader), libraries[READERS[reader]])

        selection = Selection(readers=",".join(READERS))
        plan = make_plan(GoldenStore(Path(scratch) / "golden").goldens(), calendar, windows, selection, AS_OF)
        outcomes = replay(plan.cells, environment_for, ReplayOptions(calendar, policy))
        found = [judge(outcome, cell.golden, policy) for cell, outcome in outcomes]
        record = record_of(plan, policy, CellLimits())
    facts = RunFacts(len(plan.cells), AS_OF, plan.recorded_selection, record.calendar, 0.0, plan=record.digest)
    with Journal(results, record) as journal:
        return finish_run(journal, results, judge_run(found, policy, facts)).results


def _environment(jaxlib: str) -> Environment:
    calendar = load_calendar()
    return ReaderEnvironments(calendar).build(Placement(calendar.release(jaxlib)))


if __name__ == "__main__":
    for each in run(Path(*sys.argv[1:] or [str(HERE / "results")])):
        click.echo(f"{each.golden} in {each.reader.jaxlib}: {each.verdict}, {each.judgement} {each.message[:100]}")

"""A check of the forecast "this reader loads it": real releases write artifacts, and real releases load them.

`nox -s forecast_check [-- --releases 22 --seed 0]` prints a table. The artifacts are this project's goldens, and new
artifacts that each release exports from programs to which the rules were not fitted. The exit code is 1 if a "loads" is
false, or if more than one in 200 forecasts is a false "does not load". It is also 1 if the main function of an artifact
is reported to break its calling convention.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from export_core.artifact import read
from export_core.artifact.main_check import check_main
from export_core.artifact.readers import loads, readers_of
from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import load_calendar
from export_core.releases.calendar_entries import calendar_entries

PROGRAMS = Path(__file__).with_name("forecast_programs.py")
GOLDEN = Path(__file__).parents[2] / "golden"
OLDEST = "2024-06"  # 0.4.30, the first with jax.export
LEAST_RELEASES = 20
FALSE_ALARMS = 1 / 200


def chosen(versions: list[str], count: int) -> list[str]:
    """Return `count` of these versions, or all if they are fewer: evenly spread, in order, and with the last one."""
    count = min(count, len(versions))
    step = len(versions) / count
    return [versions[len(versions) - 1 - int(step * number)] for number in range(count)][::-1]


def in_environment(environment: Environment, *words: str) -> str:
    command = [str(environment.python), "-W", "ignore", str(PROGRAMS), *words]
    done = subprocess.run(command, env=dict(environment.variables), capture_output=True, text=True, check=False)
    if done.returncode:
        problem = f"expected {words[0]} to work, found an error"
        raise SystemExit(f"jaxlib {environment.release.jaxlib}: {problem}:\n{done.stderr[-2000:]}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=22, help="how many write and read")
    parser.add_argument("--seed", default="0", help="of the composed programs")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    started = time.monotonic()
    calendar = load_calendar()
    versions = chosen([v for v in calendar.versions() if str(calendar.built(v)) >= OLDEST], options.releases)
    readers = readers_of(calendar_entries(calendar))
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:

        def written(version: str) -> Environment:
            environment = ReaderEnvironments(calendar).build(Placement(calendar.release(version)))
            folder = Path(scratch) / version
            folder.mkdir()
            in_environment(environment, "write", str(folder), options.seed)
            return environment

        environments = list(pool.map(written, versions))
        print(
            f"{len(versions)} releases, {versions[0]} to {versions[-1]}: {time.monotonic() - started:.0f} s", flush=True
        )
        new = sorted(Path(scratch).glob("*/*.jaxexport"))
        goldens = sorted(GOLDEN.glob("*/*/artifact.jaxexport"))
        names = Path(scratch) / "names"
        names.write_text("\n".join(map(str, [*new, *goldens])))
        really = list(
            pool.map(lambda environment: json.loads(in_environment(environment, "read", str(names))), environments)
        )
        artifacts = {str(path): read(path) for path in (*new, *goldens)}
    alarms = [f"{name.removeprefix(scratch)}: {text}" for name, each in artifacts.items() for text in check_main(each)]
    print(f"{len(artifacts)} artifacts, {len(alarms)} contradictions of their calling convention:", *alarms, sep="\n")
    table: Counter[tuple[bool | None, bool]] = Counter()
    for version, errors in zip(versions, really, strict=True):
        for name, error in errors.items():
            (forecast,) = loads(artifacts[name], [readers[version]])
            table[forecast.ok, not error] += 1
            if forecast.ok is not (not error):
                foreseen = f"{forecast.ok} {forecast.reasons}"
                print(f"{name.removeprefix(scratch)} in {version}: foreseen {foreseen}; really {error or 'loads'}")
    return report(table, len(versions), len(new), len(goldens), time.monotonic() - started) or int(bool(alarms))


def report(table: Counter[tuple[bool | None, bool]], releases: int, new: int, goldens: int, seconds: float) -> int:
    """Print how often each forecast was true; return 0 if the forecasts are good enough, else 1.

    Args:
        table: the number of artifacts for each forecast (None if unknown), and whether the release really loads them.
        releases: how many releases wrote and read.
        new: how many artifacts they wrote.
        goldens: how many goldens were loaded too.
        seconds: how long all of it took.
    """
    print(
        f"\n{new} new artifacts by {releases} releases and {goldens} goldens, loaded by {releases} releases, in "
        f"{seconds:.0f} s\n"
    )
    print(f"{'foreseen':<18}{'really loads':>14}{'does not':>14}")
    for word, answer in (("loads", True), ("does not load", False), ("cannot be known", None)):
        print(f"{word:<18}{table[answer, True]:>14}{table[answer, False]:>14}")
    false_loads, false_alarms = table[True, False], table[False, True]
    total = table.total()
    print(f'\nfalse "loads": {false_loads}; false "does not load": {false_alarms} of {total}')
    enough = releases >= LEAST_RELEASES and table[True, True] and table[False, False]
    return 0 if enough and not false_loads and false_alarms <= FALSE_ALARMS * total else 1


if __name__ == "__main__":
    sys.exit(main())

"""The writer of the tables of docs/reference/platforms.md: ``python tools/platforms_page.py RESULTS_DIR PAGE``.

The first tables count the verdicts of a matrix run on tpu and cuda. The other tables say which devices the readers of
that run can describe without the hardware.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from export_core.judge import Result, judge_again
from export_core.policy import find_policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed
from export_core.readers.placement import Mode, Placement, Target, load_devices
from export_core.releases import load_calendar
from export_core.run.results import read_run
from tools import renew

START, END = "<!-- measured: start -->", "<!-- measured: end -->"
PLATFORMS = ("tpu", "cuda")
VERDICTS = ("pass", "compiled", "converted", "numerics", "refused", "error", "crash", "timeout", "not_run")
_DESCRIBE = """
import json, os, sys
from jax.experimental import topologies
for name, options in json.load(sys.stdin).items():
    if not os.fork():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            if topologies.get_topology_desc(platform=sys.argv[1], topology_name=options.pop("name"), **options).devices:
                print(name, flush=True)
        finally:
            os._exit(0)
    os.wait()
"""


def tables(results: Sequence[Result], command: str, seconds: float) -> Iterator[str]:
    """Yield lines of Markdown: the command that was run, the seconds that it took, and a table for each platform."""
    readers = readers_of(results)
    yield f"`{command}`:"
    yield f"{len(results)} cells, on cpu too, in {seconds:.0f} s on two cores, including those from earlier runs."
    for platform in PLATFORMS:
        yield from platform_table(platform, [result for result in results if result.platform == platform], readers)


def readers_of(results: Sequence[Result]) -> list[str]:
    """Return the jaxlib versions of the readers, oldest build first."""
    return sorted({result.reader.jaxlib for result in results}, key=load_calendar().built)


def platform_table(platform: str, results: Sequence[Result], readers: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table with a row for each reader and a column for each verdict that occurs."""
    verdicts = [name for name in VERDICTS if any(result.verdict == name for result in results)]
    device = next((f", {result.device}" for result in results if result.device), "")
    yield f"\n| {platform}{device} | " + " | ".join(verdicts) + " | seconds for a cell (median) |"
    yield "|---" * (len(verdicts) + 2) + "|"
    for reader in readers:
        cells = [result for result in results if result.reader.jaxlib == reader]
        counts = Counter(str(result.verdict) for result in cells)
        seconds = statistics.median(result.seconds for result in cells) if cells else 0.0
        yield f"| {reader} | " + " | ".join(str(counts[name] or "") for name in verdicts) + f" | {seconds:.2f} |"


def devices(readers: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table for each plugin: which devices each reader can describe with the plugin.

    Consecutive readers with the same answers share a row.
    """
    for platform, known in load_devices().items():
        names = list(known.devices)
        for plugin in known.plugins:
            yield f"\n| {plugin} | " + " | ".join(names) + " |"
            yield "|---" * (len(names) + 1) + "|"
            usual = plugin in ("libtpu", "cuda12")
            asked = readers if usual else readers[-1:]
            answers = [(reader, describable(reader, platform, plugin, names)) for reader in asked]
            for described, group in itertools.groupby(answers, lambda answer: answer[1]):
                alike = [reader for reader, _ in group]
                row = f"| {alike[0]}{f' to {alike[-1]}' if alike[1:] else ''} |"
                if described is None:
                    yield row + " no plugin |" * len(names)
                else:
                    yield row + "".join(f" {'yes' if name in described else 'no'} |" for name in names)


def describable(reader: str, platform: str, plugin: str, names: Sequence[str]) -> list[str] | None:
    """Return the devices that a reader can describe with a plugin, or None if the plugin cannot be installed.

    Args:
        reader: the jaxlib version of the reader.
        platform: tpu or cuda.
        plugin: the plugin of the platform, such as cuda12.
        names: the devices to ask for.
    """
    calendar = load_calendar()
    targets = {name: Target(platform, plugin, name) for name in names}
    placement = Placement(calendar.release(reader), platform, Mode.COMPILE, targets[names[0]])
    try:
        environment = ReaderEnvironments(calendar).build(placement)
    except EnvironmentFailed:
        return None
    questions = {}
    for name, target in targets.items():
        device = target.described(4)
        questions[name] = {"name": device.name, **device.options}
    process = subprocess.run(
        [str(environment.python), "-c", _DESCRIBE, platform],
        input=json.dumps(questions),
        env=dict(environment.variables),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return process.stdout.split()


def main(folder: Path, page: Path) -> None:
    """Write the tables into a page, between `START` and `END`.

    Args:
        folder: the folder with the results of the matrix.
        page: the page.
    """
    policy = find_policy(Path())
    run = read_run(folder)
    results = [judge_again(result, policy) for result in run.results]
    selection = msgspec.to_builtins(run.summary.selection)
    options = f"--readers {selection['readers']} --platforms {','.join(selection['platforms'])}"
    lines = [*tables(results, f"jaxexport matrix {options}", run.summary.seconds), *devices(readers_of(results))]
    text = page.read_text(encoding="utf-8")
    before, after = text.partition(START)[0], text.partition(END)[2]
    renew(page, f"{before}{START}\n\n" + "\n".join(lines) + f"\n\n{END}{after}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

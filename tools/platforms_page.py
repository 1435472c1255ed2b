"""Make the tables of docs/platforms.md: python tools/platforms_page.py RESULTS_DIR docs/platforms.md.

The first two are of the cells of a matrix run on cpu, tpu and cuda; the third asks the same readers which devices can be described to them.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from export_core.environments.environment import Environments
from export_core.environments.errors import EnvironmentFailed
from export_core.environments.placement import Mode, Placement, Target, load_devices
from export_core.judge import Result, judge_again
from export_core.matrix import Verdict
from export_core.policy import find_policy
from export_core.releases import load_calendar
from export_core.runs.results import read_results, read_summary

START, END = "<!-- measured: start -->", "<!-- measured: end -->"
PLATFORMS = ("cpu", "tpu", "cuda")
VERDICTS = ("pass", "compiled", "numerics", "refused", "error", "crash", "timeout", "not_run")
_ASK = """
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
    """What came of each platform, by reader; then what was not run and what failed, with the reasons."""
    calendar = load_calendar()
    readers = sorted({result.reader.jaxlib for result in results}, key=calendar.built)
    yield f"`{command}`: {len(results)} cells in {seconds:.0f} s on two cores, those that were known from earlier runs among them."
    for platform in PLATFORMS:
        counts = Counter(str(result.verdict) for result in results if result.platform == platform)
        yield f"\n{platform}: {', '.join(f'{count} {verdict}' for verdict, count in counts.most_common())}."
    for platform in PLATFORMS:
        some = [result for result in results if result.platform == platform]
        shown = [name for name in VERDICTS if any(result.verdict == name for result in some)]
        device = next((f", {result.device}" for result in some if result.device), "")
        yield f"\n| {platform}{device} | " + " | ".join(shown) + " | seconds for a cell (median) |"
        yield "|---" * (len(shown) + 2) + "|"
        for reader in readers:
            cells = [result for result in some if result.reader.jaxlib == reader]
            counts = Counter(str(result.verdict) for result in cells)
            time = statistics.median(result.seconds for result in cells) if cells else 0.0
            yield f"| {reader} | " + " | ".join(str(counts[name] or "") for name in shown) + f" | {time:.2f} |"
    yield "\nInside the window, on tpu and cuda, what did not compile, and why:\n"
    kinds: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for result in results:
        if result.platform != "cpu" and result.promised and result.verdict is not Verdict.COMPILED:
            first = re.sub(r"\S*/(?=export_core/)", "", (result.message.splitlines() or [""])[0])[:150].rstrip("`")
            key = (result.case.rpartition(".")[2], result.platform, str(result.judgement), str(result.verdict), first)
            kinds.setdefault(key, set()).add((result.writer.jaxlib, result.reader.jaxlib))
    for (case, platform, judgement, verdict, first), pairs in sorted(kinds.items()):
        told = ", ".join(f"{writer} → {reader}" for writer, reader in sorted(pairs, key=lambda p: calendar.built(p[1])))
        yield f"- {case} on {platform}, {told}: {verdict}, {judgement}: `{first}`"


def devices(readers: Sequence[str]) -> Iterator[str]:
    """Which devices can be described to which release."""
    calendar = load_calendar()
    for platform, of in load_devices().items():
        names = list(of.devices)
        for plugin in of.plugins:
            yield f"\n| {plugin} | " + " | ".join(names) + " |"
            yield "|---" * (len(names) + 1) + "|"
            usual = plugin in ("libtpu", "cuda12")
            for reader in readers if usual else readers[-1:]:
                targets = {name: Target(platform, plugin, name) for name in names}
                placement = Placement(calendar.release(reader), platform, Mode.COMPILE, targets[names[0]])
                try:
                    environment = Environments(calendar).build(placement)
                except EnvironmentFailed:
                    yield f"| {reader} |" + " no plugin |" * len(names)
                    continue
                asked = {}
                for name, target in targets.items():
                    described = target.described(4)
                    asked[name] = {"name": described.name, **described.options}
                done = subprocess.run(
                    [str(environment.python), "-c", _ASK, platform],
                    input=json.dumps(asked),
                    env=dict(environment.variables),
                    stdout=subprocess.PIPE,
                    text=True,
                    check=False,
                )
                known = done.stdout.split()
                yield f"| {reader} | " + " | ".join("yes" if name in known else "no" for name in names) + " |"


def main(folder: Path, page: Path) -> None:
    """Put the tables between the marks of the page."""
    policy = find_policy(Path())
    windows, known = policy.window_lengths(), policy.known_failures
    summary = read_summary(folder)
    results = [judge_again(result, windows, known) for result in read_results(folder)]
    selection = msgspec.to_builtins(summary.selection)
    words = f"--readers {selection['readers']} --platforms {','.join(selection['platforms'])}"
    readers = sorted({result.reader.jaxlib for result in results}, key=load_calendar().built)
    measured = [*tables(results, f"jaxexport matrix {words}", summary.seconds), *devices(readers)]
    text = page.read_text(encoding="utf-8")
    before, after = text.partition(START)[0], text.partition(END)[2]
    page.write_text(f"{before}{START}\n\n" + "\n".join(measured) + f"\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

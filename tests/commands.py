"""The command `jaxexport` in a process of its own; the fixture `jaxexport` of shared_fixtures.py runs it here.

Also: waiting for a process, checking a usage error, and writing the results folder of a finished run.
"""

import datetime
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from making import summarize, with_causes

from export_core.base.json_text import safe_json
from export_core.goldens import GoldenStore
from export_core.goldens.store import sha256
from export_core.judge import Result, Summary, judge_again
from export_core.matrix.cache_keys import tool
from export_core.policy import Policy
from export_core.run.plan_record import PLAN, Evidence, PlanRecord, cells_by_place, hash_of, policy_hash
from export_core.run.results import RESULTS, SUMMARY, write_summary


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def process(*words: str | Path, **options: Any) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "export_core", *words], capture_output=True, text=True, check=False, **options
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def timeless_summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a run without times, the hash that depends on them, and how many cells ran before."""
    summary = json.loads(re.sub(rb" --executor dask:[^\s\"]+", b"", (folder / SUMMARY).read_bytes()))
    summary["identity"] |= {"started": "", "ended": ""}
    return {**summary, "seconds": 0, "results_sha256": "", "resumed": 0}


def timeless(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the results of a run and its summary, without times and without the executor."""
    data = re.sub(rb" --executor dask:[^\s\"]+", b"", (folder / RESULTS).read_bytes())
    lines = [{**json.loads(line), "seconds": 0, "timings": None} for line in data.splitlines()]
    return lines, timeless_summary(folder)


def written_to(terminal: int) -> Iterator[bytes]:
    """Yield what is written to a pseudo terminal, until its other end is closed."""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # so Linux reports that it is closed
            return
        if not part:
            return
        yield part


def wait_for(what: Callable[[], object], description: str, seconds: float = 120) -> Any:
    """Wait for the first true value of `what`, and return it. The deadline only prevents a test from hanging."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if value := what():
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s for {description}")


def is_alive(pid: int) -> bool:
    """Return whether a process runs. One that has ended and that its parent has not asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_bad_input(ended: Ended, *texts: str) -> None:
    """Check for exit code 2, nothing on stdout, and one line on stderr with these texts."""
    assert ended.code == 2, ended
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.startswith("jaxexport: error: ")
    for text in texts:
        assert text in ended.err


NO_POLICY = Policy()
DAY = datetime.date(2026, 11, 21)  # The day as of which these runs are judged.


def finished(
    folder: Path, *results: Result, planned: int | None = None, plan: dict[str, Any] | None = None, **fields: Any
) -> Summary:
    """Write a results folder as a run with these results leaves it.

    `fields` are those of its summary, `plan` those of its plan. With more `planned` cells than results it is a merged
    run that lacks a shard.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = tuple(with_causes(results))
    lines = b"".join(safe_json(result) + b"\n" for result in results)
    (folder / RESULTS).write_bytes(lines)
    summary = summarize(
        results,
        planned=len(results) if planned is None else planned,
        seconds=1,
        **{"selection": {"whole": True}, "policy": NO_POLICY, "as_of": DAY, **fields},
    )
    here = GoldenStore(folder.parent / "golden")
    goldens = {result.golden: "hash" for result in results}
    goldens |= {golden.id: hash_of(golden.manifest) for golden in here.goldens()} if here.root.is_dir() else {}
    goldens = (plan or {}).get("goldens", goldens)
    own_cells = cells_by_place({result.key for result in results}, goldens)
    record = PlanRecord(
        tool=tool(),
        as_of=str(summary.as_of),
        selection=summary.selection,
        goldens=goldens,
        cells=hash_of(own_cells),
        planned=summary.planned,
        policy=policy_hash(summary.policy),
        limits={},
        wheels="",
        calendar=summary.calendar,
        own_cells=own_cells,
        shard=f"{summary.shard.index}/{summary.shard.count}" if summary.shard else "",
        evidence=Evidence.of({"tool": tool()}),
    )
    record = msgspec.structs.replace(record, **(plan or {}))
    (folder / PLAN).write_bytes(msgspec.json.encode(record))
    summary = msgspec.structs.replace(summary, plan=record.digest, results_sha256=sha256(lines))
    write_summary(folder, summary)
    return summary


def stored(*results: Result, folder: str = ".jaxexport", policy: Policy = NO_POLICY) -> list[Result]:
    """Write a finished run with these results of the goldens here, and return them as the policy judges them."""
    goldens = {golden.id: hash_of(golden.manifest) for golden in GoldenStore(Path("golden")).goldens()}
    judged = with_causes(judge_again(each, policy, DAY) for each in results)
    named = {each.golden: goldens[each.golden] for each in judged}
    finished(Path(folder), *judged, plan={"goldens": named}, policy=policy)
    return judged

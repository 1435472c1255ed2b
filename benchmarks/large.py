"""A large matrix, run twice: `python -m benchmarks.large --writers 12 --readers 20 --goldens DIR`.

First the newest writers write goldens of all cases into DIR, unless the goldens exist; the project's own goldens are
copied. The program prints minutes, cells per second, the most memory and the verdicts.
docs/explanation/performance.md has the results of one run.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import yaml

from export_core.goldens import GoldenStore
from export_core.policy import load_policy
from export_core.run.results import read_summary

ROOT = Path(__file__).parents[1]
CASES = ROOT / "tests" / "compat"
LOOK_SECONDS = 2.0
MOST_KNOWN = 1000
"""The most promised cells that a known failure may cover in a run of this size."""


def main() -> None:
    """Write the goldens, run the matrix, and run it again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=12, help="how many of the newest releases write")
    parser.add_argument("--readers", type=int, default=20, help="how many of the newest releases read")
    parser.add_argument("--goldens", type=Path, required=True, help="a folder for the goldens, which stay there")
    parser.add_argument("--results", type=Path, default=Path(".jaxexport-large"), help="a folder for the results")
    options = parser.parse_args()
    versions = load_policy(ROOT / "export_compat.yaml").calendar().versions()
    goldens = options.goldens.resolve()
    write(versions[-options.writers :], goldens)
    policy = goldens.with_name(f"{goldens.name}.yaml")
    policy.write_text(wider_policy())
    words = [
        "matrix",
        "--goldens",
        str(goldens),
        "--policy",
        str(policy),
        "--readers",
        ",".join(versions[-options.readers :]),
    ]
    words += ["--results", str(options.results.resolve()), "--quiet"]
    for title in ("first", "again"):
        peak, seconds = watched([sys.executable, "-m", "export_core", *words])
        summary = read_summary(options.results)
        writers = {golden.manifest.writer.id for golden in GoldenStore(goldens).goldens()}
        print(
            f"{title}: {summary.results} of {summary.planned} cells, "
            f"{len(writers)} writers x {options.readers} readers: {seconds / 60:.1f} min, "
            f"{summary.results / seconds:.1f} cells per second, "
            f"at most {peak[0] / 1e6:.0f} MB of memory in the coordinator and {peak[1] / 1e6:.0f} MB in all processes\n"
            f"  verdicts {summary.verdicts}\n  judgements {summary.judgements}, exit code {summary.exit_code}",
            flush=True,
        )


def wider_policy() -> str:
    """Return the project's policy as YAML, with known failures that may cover `MOST_KNOWN` cells each."""
    policy = yaml.safe_load((ROOT / "export_compat.yaml").read_bytes())
    for entry in policy["known_failures"]:
        entry["at_most"] = MOST_KNOWN
    return yaml.safe_dump(policy)


def write(writers: list[str], goldens: Path) -> None:
    """Copy this project's goldens into a folder, and let each writer write there, unless it did so in an earlier run.

    Args:
        writers: the versions of jaxlib that write.
        goldens: the folder.
    """
    shutil.copytree(ROOT / "golden", goldens, dirs_exist_ok=True)
    for writer in writers:
        marker = goldens / f".{writer}"
        if not marker.exists():
            command = [sys.executable, "-m", "export_core", "goldens", "backfill", "--writers", writer, "--"]
            # A release that lacks something that a case needs fails that test; its other goldens are written.
            subprocess.run([*command, str(CASES), f"--goldens={goldens}", "-q", "--no-header"], cwd=ROOT, check=False)
            marker.touch()


def watched(
    command: list[str], cwd: Path = ROOT, env: dict[str, str] | None = None, look: float = LOOK_SECONDS
) -> tuple[tuple[int, int], float]:
    """Run a command; return its peak memory in bytes, and its wall seconds.

    The memory is a pair: of the command's own process, and of this process and all below it together.

    Args:
        command: the words of the command, whose exit code must be 0, 1 or 4.
        cwd: the folder to run it in.
        env: its environment variables; those of this process if None.
        look: the seconds between two measurements of memory.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL)
    peak = (0, 0)
    ended = threading.Event()
    threading.Thread(target=lambda: (process.wait(), ended.set()), daemon=True).start()
    while not ended.wait(look):
        alone, family = proportional(process.pid), sum(map(proportional, descendants(process.pid)))
        peak = max(peak[0], alone), max(peak[1], alone + family)
    if process.returncode not in (0, 1, 4):
        raise SystemExit(f"{command}: expected exit code 0, 1 or 4, found {process.returncode}")
    return peak, time.perf_counter() - started


def descendants(process: int) -> list[int]:
    """Return the ids of the children of a process, of their children, and so on, by /proc."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # the process has ended
    family = [process]
    for member in family:  # the loop also visits what it appends
        family += [child for child, parent in parents.items() if parent == member]
    return family[1:]


def proportional(process: int) -> int:
    """Return the memory of a process in bytes (its Pss), or 0 if the process has ended.

    Memory that several processes share is divided among them.
    """
    try:
        lines = (Path("/proc") / str(process) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()

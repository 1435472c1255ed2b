"""The cost of a matrix of this project against JAX's own back-compat runner, on the same goldens."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.jax_runner import RTOL
from benchmarks.line import Line
from export_core.artifact import read
from export_core.export.produce import installed_writer
from export_core.goldens import Comparison, GoldenStore
from export_core.goldens.adopt import adopt_artifact
from export_core.policy import load_policy
from export_core.run.results import read_summary

ROOT = Path(__file__).parents[1]
RUNS = 3
# JAX's runner puts an old module into a new envelope. No release writes that, so such a golden would be refused.
MATRIX = """
from export_core.goldens import verify

verify.contradiction = lambda *artifact_and_writer: ""

from export_core.cli.app import main

main()
"""


def measure() -> list[Line]:
    """Measure our matrix and JAX's runner on the same goldens, each as a whole process, in turn.

    The matrix starts a cold process for each golden. JAX's runner runs all goldens in a single warm process.
    """
    writer = installed_writer(load_policy(ROOT / "export_compat.yaml").calendar())
    with tempfile.TemporaryDirectory() as scratch:
        theirs = Path(scratch) / "theirs"
        theirs.mkdir()
        _seconds("-m", "benchmarks.jax_runner", "write", str(theirs))
        store = GoldenStore(Path(scratch) / "golden")
        for path in sorted(theirs.glob("*.jaxexport")):
            arrays = [path.with_suffix(f".{which}.npz") for which in ("inputs", "outputs")]
            manifest, files = adopt_artifact(read(path), *arrays, path.stem, writer)
            store.write(msgspec.structs.replace(manifest, comparison=Comparison(rtol=RTOL, atol=RTOL)), files)
        count = len(store.goldens())
        results = str(Path(scratch) / "results")
        command = ["-c", MATRIX, "matrix", "--goldens", str(store.root), "--readers", writer.jaxlib, "--no-cache"]
        _seconds(*command, "--results", results, "--quiet")  # builds the environment
        runner, ours = [], []
        for _ in range(RUNS):
            runner.append(_seconds("-m", "benchmarks.jax_runner", "run", str(theirs)))
            ours.append(_seconds(*command, "--results", results, "--quiet"))
        summary = read_summary(Path(results))
    assert summary.verdicts == {"pass": count}, summary.verdicts
    return [
        Line(
            f"JAX's {count} CPU goldens of LAPACK, each in a cold process",
            f"{min(ours):.1f} s",
            f"{min(runner):.1f} s for JAX's own runner, all in one warm process",
            f"{min(ours) / min(runner):.2f} times",
            "",
            True,
        )
    ]


def _seconds(*arguments: str) -> float:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{arguments} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return time.perf_counter() - started

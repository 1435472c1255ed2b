"""A comparison of the matrix with a replay that shares no code with it: ten lines, run by a new interpreter for a cell.

By default it takes a sample of the cases, in three readers. JAXEXPORT_INDEPENDENT=all takes every case, in eight
readers, which needs many minutes.
"""

from __future__ import annotations

import datetime
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from replaying import replayed

from export_core.goldens import GoldenStore
from export_core.matrix import Cell, Selection, Verdict, make_plan
from export_core.policy import load_policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement

ROOT = Path(__file__).parents[2]

TEN_LINES = """
import sys, jax, jax.export, numpy as np
load = lambda path: [(name, z[name]) for z in [np.load(path)] for name in sorted(z.files)]
exported = jax.export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
keyed = lambda name, array: jax.random.wrap_key_data(array) if "key" in name else array
leaves = [keyed(name, array) for name, array in load(sys.argv[2])]
args, kwargs = jax.tree_util.tree_unflatten(exported.in_tree, leaves)
results = jax.tree_util.tree_leaves(exported.call(*args, **kwargs))
data = [jax.random.key_data(r) if "key" in str(r.dtype) else np.asarray(r) for r in results]
close = all(np.allclose(d, w, 1e-4, 1e-5) for d, (_, w) in zip(data, load(sys.argv[3])))
sys.exit(0 if close and len(data) == len(load(sys.argv[3])) else 42)
"""


def independent_verdict(cell: Cell, python: Path) -> set[str]:
    folder = cell.golden.folder
    paths = [str(folder / name) for name in ("artifact.jaxexport", "inputs.npz", "outputs.npz")]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "PYTHON"))}
    code = subprocess.run(
        [str(python), "-c", TEN_LINES, *paths], env={**clean, "JAX_PLATFORMS": "cpu"}, capture_output=True, check=False
    ).returncode
    if code < 0:
        return {f"crash by signal {-code}"}
    # Only the table of refusals tells a refusal from an error, and ten lines do not have it.
    return {0: {Verdict.PASS}, 42: {Verdict.NUMERICS}}.get(code, {Verdict.ERROR, Verdict.REFUSED})


@pytest.mark.weekly
def test_a_new_interpreter_for_each_cell_gives_the_same_verdicts():
    policy = load_policy(ROOT / "export_compat.yaml")
    whole = os.environ.get("JAXEXPORT_INDEPENDENT") == "all"
    # Signs of factors may differ, which ten lines do not accept: eigh, qr and svd are compared where they crash.
    cases = ("*",) if whole else ("*test_cholesky", "*test_qr", "*test_scan", "*test_top_k", "*test_random")
    readers = "0.6.2,0.7.2,0.8.1,0.9.2,0.10.2,0.11.0,0.11.2,0.12.0.1" if whole else "0.6.2,0.9.2,0.12.0.1"
    selection = Selection(readers=readers, cases=cases, writers=("0.9.2", "0.12.0.1"))
    goldens = GoldenStore(ROOT / "golden").goldens()
    day = datetime.date(2026, 11, 21)
    plan = make_plan(goldens, policy.calendar(), policy.window_lengths(), selection, day)
    environments = {reader: ReaderEnvironments(plan.calendar).build(Placement(reader)) for reader in plan.readers}

    ours = {outcome.key: outcome for _, outcome in replayed(plan.cells, environments.__getitem__, plan.calendar)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        theirs = list(pool.map(lambda cell: independent_verdict(cell, environments[cell.reader].python), plan.cells))

    assert len(ours) == len(plan.cells) >= 30
    different = []
    for cell, expected in zip(plan.cells, theirs, strict=True):
        outcome = ours[cell.key]
        found = f"crash by signal {outcome.signal}" if outcome.verdict is Verdict.CRASH else outcome.verdict
        free_signs = cell.golden.compared_as.comparison.compare != "allclose"
        if found not in expected and not (free_signs and expected == {Verdict.NUMERICS} and found == Verdict.PASS):
            different.append(f"{cell.id}: {found}, independent: {expected}")
    assert not different
    verdicts = {outcome.verdict for outcome in ours.values()}
    assert {Verdict.PASS, Verdict.CRASH, Verdict.ERROR, Verdict.REFUSED} <= verdicts

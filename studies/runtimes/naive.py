"""A replay of a matrix's cells without this package's workers, to compare the verdicts of both.

`python -m studies.runtimes.naive RESULTS --runtime tensorflow --cells 300`

For each cell, a new interpreter of its runtime's environment runs naive_calls.py, which has the calls as a user of that
runtime writes them. Outputs are compared with the golden's, within its noise. A cell works, gives wrong numbers, or
fails. A few cells have no verdict, since the runtime's own command does not accept their arguments. Goldens for several
devices are left out, since a matrix does not run them. Verdicts are stored in a file beside the results, so that an
interrupted run continues. The exit code is 1 if a verdict differs from the matrix's.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import math
import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from export_core.goldens import Check, Golden, GoldenStore
from export_core.goldens.arrays import KEYS, Leaf, from_npz, key_leaf, leaf_of
from export_core.matrix.comparisons import under_policy
from export_core.numbers.compare import GoldenOutputs
from export_core.policy import load_policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases.runtimes import runtime_readers

ROOT = Path(__file__).parents[2]
CALLS = Path(__file__).with_name("naive_calls.py")
CLASSES = {"pass": "works", "numerics": "numerics"}
"""The names that verdicts of a matrix have here. Any other verdict is called `fails`, even if a Python binding cannot
pass an argument."""
NOT_TAKEN = "sub-byte aligned element types cannot be indexed"
"""The message with which iree-run-module, in some releases, refuses arguments of 4 bits. IREE's Python binding accepts
such arguments."""
KEY_WORDS = {"key<fry>": 2, "key<rbg>": 4, "key<urbg>": 4}
SECONDS = 300.0


@dataclasses.dataclass(frozen=True)
class Cell:
    """A golden in a reader, with the verdict of the matrix."""

    golden: Golden
    reader: str
    verdict: str

    @property
    def key(self) -> str:
        return f"{self.golden.id} in {self.reader}"


def main() -> int:
    """Replay the cells without a stored verdict, and print each cell whose verdict differs from the matrix's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the folder of a matrix")
    parser.add_argument("--runtime", required=True, help="a runtime, or one release of it: iree==3.13.0")
    parser.add_argument("--cells", type=int, default=300, help="how many cells, spread over all")
    parser.add_argument("--goldens", type=Path, default=ROOT / "golden")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--matching", default="", help="only cells with this in their name, known or not")
    options = parser.parse_args()
    policy = load_policy(ROOT / "export_compat.yaml")
    goldens = {golden.id: golden for golden in under_policy(GoldenStore(options.goldens).goldens(), policy)}
    cells = chosen(options, goldens)
    path = options.results / f"naive-{options.runtime}.jsonl"
    known = {line["cell"]: line for line in map(json.loads, lines_of(path))}
    missing = [cell for cell in cells if cell.key not in known or options.matching]
    with ReaderEnvironments(policy.calendar(), notify=print) as environments, ThreadPoolExecutor(options.jobs) as pool:

        @functools.cache
        def environment(reader: str) -> Any:
            (release,) = runtime_readers(reader, policy.calendar())
            return environments.build(Placement(release))

        for cell in missing:
            environment(cell.reader)
        tries = pool.map(lambda cell: (cell, *replay(cell, environment(cell.reader), policy.tolerances)), missing)
        with path.open("a", encoding="utf-8") as file:
            for number, (cell, found, why) in enumerate(tries, 1):
                line = known[cell.key] = {"cell": cell.key, "naive": found, "why": why[:1000]}
                file.write(json.dumps(line) + "\n")
                file.flush()
                same = found in ("no verdict", class_of(cell))
                print(f"{number}/{len(missing)} {cell.key}: {found}{'' if same else f', not {cell.verdict}: {why}'}")
    compared = [cell for cell in cells if known[cell.key]["naive"] != "no verdict"]
    differing = [cell for cell in compared if known[cell.key]["naive"] != class_of(cell)]
    for cell in differing:
        print(f"DIFFERS {cell.key}: {cell.verdict}, naive {known[cell.key]['naive']}: {known[cell.key]['why'][:500]}")
    counted = Counter((cell.reader, class_of(cell)) for cell in compared)
    print(", ".join(f"{reader} {name}: {count}" for (reader, name), count in sorted(counted.items())))
    print(f"{options.runtime}: {len(compared) - len(differing)} of {len(compared)} verdicts agree")
    return bool(differing) or not compared


def class_of(cell: Cell) -> str:
    return CLASSES.get(cell.verdict, "fails")


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def chosen(options: argparse.Namespace, goldens: Mapping[str, Golden]) -> list[Cell]:
    """Return a fixed random sample of a runtime's cells: the first `options.cells` by hashes of their names."""
    rows = map(json.loads, lines_of(options.results / "results.jsonl"))
    cells = [
        Cell(goldens[row["golden"]], row["reader"]["runtime"], row["verdict"])
        for row in rows
        if options.runtime in (row["reader"].get("runtime", ""), row["reader"].get("runtime", "").partition("==")[0])
    ]
    cells = [cell for cell in cells if devices_of(cell.golden) == 1 and options.matching in cell.key]
    return sorted(cells, key=lambda cell: hashlib.sha256(cell.key.encode()).digest())[: options.cells]


def devices_of(golden: Golden) -> int:
    own = golden.manifest.options
    return max(own.devices, math.prod(own.mesh.values()))


def checks_of(golden: Golden) -> Iterator[Check]:
    """Yield the calls of a golden, except calls that need a mesh, or a derivative that the artifact lacks."""
    own = golden.manifest.options
    yield Check("", inputs="inputs.npz", outputs=None if own.without_outputs else "outputs.npz")
    for check in golden.manifest.checks:
        if not check.mesh and not check.spread and check.vjp <= own.vjp_order:
            yield check


def replay(cell: Cell, environment: Any, tolerances: Any) -> tuple[str, str]:
    """Replay a cell; return `works`, `numerics`, `fails` or `no verdict`, and the reason.

    Args:
        cell: the cell.
        environment: the environment of its reader.
        tolerances: the tolerances of the policy.
    """
    golden, runtime = cell.golden, cell.reader.partition("==")[0]
    checks = list(checks_of(golden))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calls = [call_of(golden, check, folder, number) for number, check in enumerate(checks)]
        (folder / "job.json").write_text(json.dumps({"runtime": runtime, "calls": calls}))
        variables = {name: value for name, value in environment.variables.items() if name != "JAXEXPORT_SAVED_MODEL"}
        command = [str(environment.python), str(CALLS), str(folder / "job.json")]
        try:
            done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "fails", f"still running after {SECONDS:g} s"
        errors = [json.loads(line) for line in done.stdout.splitlines() if line]
        problem = f"ended with {done.returncode}: {done.stderr.strip()[-300:]}" if len(errors) < len(checks) else ""
        wanted = GoldenOutputs(golden, "cpu", tolerances)
        for check, call, error in zip(checks, calls, errors, strict=False):
            if check.refused is not None:
                if error is None:
                    return "fails", f"{check.name}: expected a refusal"
                continue
            if error is not None:
                return "no verdict" if NOT_TAKEN in error else "fails", f"{check.name}: {error}"
            if check.outputs is None or problem:
                continue
            expected = from_npz(golden.folder / check.outputs)
            difference = wanted.compare(check, expected, found_in(Path(call["results"]), call["types"], expected))
            if not difference.ok:
                problem = problem or f"numerics {check.name}: {difference}"
        if problem.startswith("numerics"):
            return "numerics", problem
        return ("fails" if problem else "works"), problem


def call_of(golden: Golden, check: Check, folder: Path, number: int) -> dict[str, Any]:
    """Return a call as plain data for naive_calls.py, and write its StableHLO module into a file.

    Args:
        golden: the golden.
        check: the call.
        folder: the folder to write into.
        number: the number of the call, which names its files.
    """
    envelope = golden.read_artifact().envelope
    assert envelope
    own = envelope.levels[check.vjp]
    (folder / f"{number}.mlirbc").write_bytes(own.module_source.copy())
    return {
        "module": str(folder / f"{number}.mlirbc"),
        "leaves": str(golden.folder.resolve() / (check.inputs or "inputs.npz")),
        "results": str(folder / f"{number}.pickle"),
        "version": own.calling_convention_version,
        "platforms": list(own.platforms),
        "kept": list(own.module_kept_var_idx),
        "tokens": len(own.ordered_effects),
        "disabled_checks": [f"{one.kind}:{one.target}" if one.target else one.kind for one in own.disabled_checks],
        "inputs": [plain_type(aval) for aval in own.in_avals],
        "outputs": [plain_type(aval) for aval in own.out_avals],
        "types": [aval.dtype for aval in own.out_avals],
        "x64": bool(golden.manifest.flags.get("jax_enable_x64")),
        "shardy": bool(golden.manifest.flags.get("jax_use_shardy_partitioner")),
    }


def plain_type(aval: Any) -> tuple[str, list[int | None]]:
    shape = [size if isinstance(size, int) else None for size in aval.shape]
    if aval.dtype in KEY_WORDS:
        return "uint32", [*shape, KEY_WORDS[aval.dtype]]
    return ("bool" if aval.dtype == "float0" else aval.dtype), shape


def found_in(path: Path, types: list[str], expected: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """Return the outputs of a call, which naive_calls.py has pickled, in the form that comparators take.

    Args:
        path: the file with the outputs.
        types: the dtype of each output in the artifact.
        expected: the golden's outputs, which have the shapes.
    """
    import ml_dtypes

    leaves = []
    for (dtype, shape, data), kind, leaf in zip(pickle.loads(path.read_bytes()), types, expected, strict=True):
        array = np.frombuffer(data, np.dtype(getattr(ml_dtypes, dtype, dtype))).reshape(shape)
        if array.shape != leaf.data.shape and array.shape == (leaf.data.size,):
            array = array.reshape(leaf.data.shape)
        if kind == "float0":
            leaves.append(leaf_of(np.zeros(array.shape, [("float0", "V")])))
        else:
            leaves.append(key_leaf(kind, array) if kind in KEYS else leaf_of(array))
    return tuple(leaves)


if __name__ == "__main__":
    sys.exit(main())

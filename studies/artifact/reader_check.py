"""A check that the artifact reader reads the same, field by field, as the releases that exported the artifacts.

`nox -s reader_check [-- --releases 20 --seed 0]`. Each release exports artifacts, and reads them by
`jax.export.deserialize` and by a walk over the module with jaxlib. The goldens inside this interpreter's jax wheel are
compared too. The exit code is 1 if there is any difference.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from stored_artifacts import counts, jax_goldens

from export_core.artifact import Artifact, ArtifactError, Envelope, HloSharding, Module, NamedSharding, read, read_bytes
from export_core.features.inspect.printed_module import module_text
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.releases import Calendar, load_calendar
from studies.artifact.forecast_check import OLDEST, PROGRAMS, chosen

MAKE = Path(__file__).with_name("jax_truth.py")


def exported_by(calendar: Calendar, version: str, folder: Path, seed: str) -> Path:
    """Let a release export programs, and write what it reads in the artifacts to truth.json; return their folder.

    Args:
        calendar: the known releases.
        version: the jaxlib version of the release.
        folder: where the release writes, into a folder of its own.
        seed: decides the programs that are composed at random.
    """
    environment = ReaderEnvironments(calendar).build(Placement(calendar.release(version)))

    def run(*words: str) -> None:
        command = [str(environment.python), "-W", "ignore", *words]
        done = subprocess.run(command, env=dict(environment.variables), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"jaxlib {version}: expected {words[0]} to work, but it failed:\n{done.stderr[-2000:]}")

    own = folder / version
    run(str(MAKE), str(own))
    (made,) = own.iterdir()
    run(str(PROGRAMS), "write", str(made), seed)
    run(str(MAKE), "--truth", str(made))
    return made


def differences(path: Path, theirs_by_level: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Compare the fields of an artifact and its derivatives; return how many there are, and a text for each difference.

    Args:
        path: the artifact.
        theirs_by_level: what jax reads in the artifact, in its derivative, and so on.
    """
    try:
        pairs = list(compared(read(path), theirs_by_level))
    except ArtifactError as error:
        return 1, [str(error)]
    wrong = [
        f"{name}: expected {theirs!r} as jax reads it, found {ours!r}" for name, ours, theirs in pairs if ours != theirs
    ]
    return len(pairs), wrong


def compared(artifact: Artifact, theirs_by_level: list[dict[str, Any]]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each field, what our reader reads in it, and what jax reads in it."""
    yield "derivatives", len(artifact.modules), len(theirs_by_level)
    level = artifact.envelope
    for order, (module, theirs) in enumerate(zip(artifact.modules, theirs_by_level, strict=False)):
        assert level is not None
        for name, ours in {**fields(level), **walked(module)}.items():
            if name in ("in_tree", "out_tree") and "CustomNode" in ours:
                continue  # jax prints the class, the file has the name under which it was registered
            yield f"{name}[{order}]", ours, theirs[name]
        yield f"unknown_fields[{order}]", level.unknown_fields, ()
        level = level.vjp


def fields(e: Envelope) -> dict[str, Any]:
    """Return the fields of an envelope, by the names that jax_truth.py gives them."""
    return {
        "fun_name": e.fun_name,
        "in_tree": str(e.in_tree),
        "out_tree": str(e.out_tree),
        "in_avals": list(map(str, e.in_avals)),
        "out_avals": list(map(str, e.out_avals)),
        "memory_spaces": [a.memory_space or "device" for a in (*e.in_avals, *e.out_avals)],
        "in_shardings": [sharding(x) for x in e.in_shardings],
        "out_shardings": [sharding(x) for x in e.out_shardings],
        "platforms": list(e.platforms),
        "nr_devices": e.nr_devices,
        "calling_convention_version": e.calling_convention_version,
        "module_kept_var_idx": list(e.module_kept_var_idx),
        "uses_global_constants": e.uses_global_constants,
        "ordered_effects": list(e.ordered_effects),
        "unordered_effects": list(e.unordered_effects),
        "disabled_checks": [str(check) for check in e.disabled_checks],
        "module_bytes": len(e.mlir_module_serialized),
        "module_sha256": hashlib.sha256(e.mlir_module_serialized).hexdigest(),
    }


def sharding(x: object) -> list[Any] | None:
    if isinstance(x, NamedSharding):
        mesh = x.mesh
        axes = [list(mesh.axis_names), list(mesh.axis_sizes), list(mesh.axis_types)]
        return ["named", *axes, str(x.spec).replace("PartitionSpec(", "P("), x.memory_kind]
    return ["hlo", x.proto.hex()] if isinstance(x, HloSharding) else None


def walked(module: Module) -> dict[str, Any]:
    """Return what our reader finds in a module, by the names that jax_truth.py gives these facts."""
    functions = {}
    for f in module.functions:
        results = f.outputs[0] if len(f.outputs) == 1 else f"({', '.join(f.outputs)})"
        functions[f.name] = f"({', '.join(f.inputs)}) -> {results}"
    targets = sorted(call.target for call in module.custom_calls for _ in range(call.count))
    return {"op_counts": counts(module.op_counts), "targets": targets, "functions": functions}


def shipped() -> tuple[int, list[str]]:
    """Compare what our reader and the installed jaxlib find in the goldens of the jax wheel, which are bare modules.

    Returns:
        The number of goldens, and a line for each difference.
    """
    from studies.artifact.jax_truth import of_module  # it imports jax, and sets variables for it

    wrong = []
    for name, golden in jax_goldens().items():
        artifact = read_bytes(golden["mlir_module_serialized"], name)
        ours, theirs = walked(artifact.module), of_module(module_text(artifact))  # type: ignore[no-untyped-call]
        wrong += [
            f"{name}: {fact}: expected {theirs[fact]} as jaxlib finds it, found {ours[fact]}"
            for fact in theirs
            if ours[fact] != theirs[fact]
        ]
    return len(jax_goldens()), wrong


def main() -> int:
    """Print a line for each release and for each difference; return 1 if there is a difference, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=20, help="how many, evenly spread")
    parser.add_argument("--seed", default="0", help="of the composed programs")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    started = time.monotonic()
    calendar = load_calendar()
    versions = chosen([v for v in calendar.versions() if str(calendar.built(v)) >= OLDEST], options.releases)
    total, fields_compared, failed = 0, 0, 0
    print(f"{'jaxlib':<10}{'jax':<10}{'artifacts':>10}{'fields':>8}{'differences':>13}")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        for version, made in zip(
            versions, pool.map(lambda v: exported_by(calendar, v, Path(scratch), options.seed), versions), strict=True
        ):
            truth = json.loads((made / "truth.json").read_bytes())
            results = {
                name: differences(made / f"{name}.jaxexport", theirs_by_level)
                for name, theirs_by_level in truth.items()
            }
            number = sum(count for count, _ in results.values())
            wrong = [f"  {name}: {one}" for name, (_, all_) in results.items() for one in all_]
            print(
                f"{version:<10}{made.name:<10}{len(results):>10}{number:>8}{len(wrong):>13}",
                *wrong,
                sep="\n",
                flush=True,
            )
            total, fields_compared, failed = total + len(results), fields_compared + number, failed + len(wrong)
    goldens, wrong = shipped()
    print(f"{goldens} goldens of the jax wheel: {len(wrong)} differences", *wrong, sep="\n  ")
    seconds = time.monotonic() - started
    print(
        f"\n{total} artifacts by {len(versions)} releases, {fields_compared} fields, {failed} differences, in "
        f"{seconds:.0f} s"
    )
    return 1 if failed or wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())

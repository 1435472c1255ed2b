"""The use case "run a matrix": the command that reproduces a cell is made from the options of the run."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from pathlib import Path

import pytest
from making import day, golden, release

from export_core.environments.placement import Mode
from export_core.matrix import Cell, Plan, Selection
from export_core.matrix.limits import GIB
from export_core.matrix.shards import Shard
from export_core.releases import load_calendar
from export_core.run_options import RunOptions, command_options, reproduce_command, reproduce_options

CELL = Cell(golden("t.test_f[a b;$(rm)]", "0.9.2"), release("0.10.2"), "cpu")


def reproduced(options: RunOptions, cell: Cell = CELL, **selection: object) -> list[str]:
    plan = Plan((cell,), day("2026-11-22"), load_calendar(), Selection(**selection))
    return shlex.split(reproduce_command(plan, cell, reproduce_options(plan.selection, options)))


def test_reproduce_names_one_cell_and_its_own_results():
    assert reproduced(RunOptions()) == [
        "jaxexport", "matrix", "--cases", "t.test_f[a b;$(rm)]", "--writers", "0.9.2", "--readers", "0.10.2",
        "--platforms", "cpu", "--no-cache", "--results", ".jaxexport/reproduced",
    ]  # fmt: skip


def test_reproduce_sets_the_kernels_that_this_machine_sets(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Has well")
    assert reproduced(RunOptions())[:3] == ["OPENBLAS_CORETYPE=Has well", "jaxexport", "matrix"]


def test_a_reproduction_does_not_overwrite_itself():
    assert reproduced(RunOptions(results=Path(".jaxexport/reproduced")))[-1] == ".jaxexport/reproduced/reproduced"


def test_reproduce_names_the_mode_of_a_cell():
    assert "tpu:compile" in reproduced(RunOptions(), dataclasses.replace(CELL, platform="tpu", mode=Mode.COMPILE))


def test_reproduce_carries_what_can_change_a_verdict():
    options = RunOptions(
        results=Path("my results"),
        goldens=Path("my goldens"),
        policy_file="strict.yaml",
        as_of=day("2026-10-25"),
        executor="dask:tcp://127.0.0.1:8786",
        timeout=0.5,
        memory=GIB // 2,
    )
    words = reproduced(options, targets=("tpu=v6e",), wheels=("dist",), indexes=("https://me:secret@host/simple",))
    pairs = dict(itertools.pairwise(words))
    chosen = {"--cases", "--writers", "--readers", "--no-cache"}
    assert {name: pairs[name] for name in pairs.keys() - chosen if name.startswith("--")} == {
        "--platforms": "cpu",
        "--target": "tpu=v6e",
        "--wheels": "dist",
        "--index": "https://host/simple",
        "--goldens": "my goldens",
        "--policy": "strict.yaml",
        "--as-of": "2026-10-25",
        "--executor": "dask:tcp://127.0.0.1:8786",
        "--timeout": "0.5",
        "--memory": "0.5",
        "--results": ".jaxexport/reproduced",
    }


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(RunOptions)])
def test_every_run_option_is_reproduced_or_harmless(field):
    """An option that is new must be put on one of the two lists."""
    harmless = {"results", "shard", "jobs", "device_jobs", "resume", "cache", "dump_ir", "convert"}
    other = {
        "results": Path("r"), "goldens": Path("g"), "policy_file": "p", "as_of": day("2026-01-02"),
        "shard": Shard(1, 2),
        "executor": "dask:tcp://h:1", "jobs": 7, "device_jobs": 3, "timeout": 7.0, "memory": GIB, "resume": True,
        "cache": False, "dump_ir": Path("d"), "repeat": 7, "convert": True,
    }[field]  # fmt: skip
    words = command_options(Selection(), dataclasses.replace(RunOptions(), **{field: other}))
    assert (words == command_options(Selection(), RunOptions())) == (field in harmless)

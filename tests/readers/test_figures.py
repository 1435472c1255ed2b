"""The cost of a cell: figures of the compiler, which repeat exactly, and times, which do not."""

import json
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

from export_core.goldens import GoldenStore
from export_core.matrix import Cell, Verdict
from export_core.matrix.replay import replay
from export_core.matrix.replay_options import ReplayOptions
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from export_core.readers.worker.jaxlib_worker import cost_of
from export_core.readers.worker.program import Transcript
from export_core.readers.worker.protocol import Cost, Timings
from export_core.releases import load_calendar

CALENDAR = load_calendar()
GOLDENS = Path(__file__).parents[2] / "golden"


class Compiled:
    """A stand-in for a compiled program: it gives these answers, and raises those that are exceptions."""

    def __init__(self, *, memory: Any = None, estimate: Any = None, text: Any = None) -> None:
        self.memory_analysis = lambda: answer(memory)
        self.cost_analysis = lambda: answer(estimate)
        self.as_text = lambda: answer(text)


def answer(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def cost(compiled: Any) -> Cost:
    return msgspec.convert(cost_of(compiled), Cost)


@pytest.fixture(scope="module")
def compiled() -> Any:
    def function(x: Any) -> Any:
        return jnp.linalg.qr(jax.nn.softmax(x @ x))

    return jax.jit(function).lower(np.ones((9, 9), np.float32)).compile()


def test_costs_agree_with_jaxs_memory_and_cost_analysis(compiled):
    found, memory, estimate = cost(compiled), compiled.memory_analysis(), compiled.cost_analysis()
    assert (found.temp_bytes, found.alias_bytes) == (memory.temp_size_in_bytes, memory.alias_size_in_bytes)
    assert (found.argument_bytes, found.output_bytes) == (9 * 9 * 4, memory.output_size_in_bytes)
    assert (found.flops, found.bytes_accessed) == (estimate["flops"], estimate["bytes accessed"])
    assert found.temp_bytes
    assert found.transcendentals


def test_counts_of_instructions_and_fusions_agree_with_the_module(compiled):
    computations = compiled.runtime_executable().hlo_modules()[0].computations()
    opcodes = [instruction.opcode.name for part in computations for instruction in part.instructions()]
    assert (cost(compiled).instructions, cost(compiled).fusions) == (len(opcodes), opcodes.count("kFusion"))
    assert opcodes.count("kFusion")


def test_tpu_layouts_and_metadata_are_not_counted_as_instructions():
    text = """HloModule jit_f, entry_computation_layout={(f32[8,128]{1,0:T(8,128)})->f32[]}

%fused (p: f32[8,128]) -> f32[] {
  %p = f32[8,128]{1,0:T(8,128)S(1)} parameter(0)
  ROOT %r.1 = f32[] reduce(%p), dimensions={0,1}, metadata={op_name="a = fusion(b)"}
}

ENTRY %main (x: f32[8,128]) -> (f32[], s32[2]) {
  %x = f32[8,128]{1,0:T(8,128)} parameter(0)
  %f = (f32[]{:T(128)}, /*index=1*/s32[2]{0:T(256)}) fusion(%x), kind=kLoop, calls=%fused
  ROOT %t = (f32[], s32[2]{0}) tuple(%f, %f)
}
"""
    assert cost(Compiled(text=text)) == Cost(instructions=5, fusions=1)


def test_costs_that_a_release_does_not_report_are_null():
    assert cost(Compiled()) == Cost()
    assert cost(Compiled(memory=RuntimeError("UNIMPLEMENTED"), text=RuntimeError("UNIMPLEMENTED"))) == Cost()
    assert cost(Compiled(estimate=[])) == Cost()


def test_costs_that_an_estimate_leaves_out_are_zero():
    found = cost(Compiled(estimate=[{"flops": 8.0}]))
    assert (found.flops, found.transcendentals, found.bytes_accessed) == (8.0, 0.0, 0.0)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, True, "8"])
def test_an_invalid_cost_estimate_is_null(value):
    assert cost(Compiled(estimate={"flops": value})).flops is None


@pytest.mark.parametrize(
    "message",
    [
        {"cost": {"temp_bytes": 1.5}},
        {"cost": {"temp_bytes": -1}},
        {"cost": {"temp_bytes": 2**63}},
        {"cost": {"flops": math.nan}},
        {"cost": {"no_such": 1}},
        {"cost": [1]},
        {"timings": {"runs": 0.5}},
        {"timings": {"run": True}},
    ],
)
def test_a_message_with_invalid_costs_or_times_is_not_a_result(message):
    transcript = Transcript()
    transcript.feed(json.dumps(message).encode() + b"\n")
    assert transcript.garbage


def test_costs_and_times_of_several_messages_are_merged():
    transcript = Transcript()
    for message in ({"timings": {"lower": 0.5}}, {"timings": {"run": 1, "runs": [0.25]}, "cost": {"flops": None}}):
        transcript.feed(json.dumps(message).encode() + b"\n")
    assert transcript.garbage == ""
    assert msgspec.convert(transcript.fields["timings"], Timings) == Timings(lower=0.5, run=1.0, runs=(0.25,))
    assert msgspec.convert(transcript.fields["cost"], Cost) == Cost()


def test_every_cost_that_a_worker_finds_is_a_field_of_cost(compiled):
    assert set(cost_of(compiled)) == set(Cost.__struct_fields__)


def test_a_cell_has_its_cost_and_times(run):
    outcome = run("waves", repeat=3)["waves"]
    assert None not in msgspec.structs.astuple(outcome.cost)
    assert outcome.cost.argument_bytes == 8
    assert (outcome.verdict, outcome.as_written) == (Verdict.PASS, True), "repetitions change nothing"
    times = outcome.timings
    assert 0 < times.deserialize + times.lower + times.compile + times.run < outcome.seconds
    assert len(times.runs) == 3
    assert all(0 < seconds < 1 for seconds in times.runs)
    assert times.peak_bytes > 50 << 20, "jax alone needs more"


def test_a_cell_that_compiles_nothing_has_no_cost(run):
    outcome = run("no_artifact")["no_artifact"]
    assert (outcome.cost, outcome.timings) == (None, None)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("version", "writer"), [("0.6.2", "0.6.2"), ("0.8.3", "0.6.2"), ("0.10.2", "0.6.2"), ("0.12.0.1", "0.9.2")]
)
def test_costs_repeat_exactly_in_real_releases(version, writer):
    """Each run has a worker of its own, so that the two share only the machine."""
    reader = CALENDAR.release(version)
    goldens = [
        golden
        for name in ("attention", "convolution", "while", "sort")
        for case in GOLDENS.glob(f"*.test_{name}")
        for golden in GoldenStore(GOLDENS).generations(case.name)
        if golden.manifest.writer.jaxlib == writer
    ]
    cells = [Cell(golden, reader, "cpu") for golden in goldens]
    environment = ReaderEnvironments(CALENDAR).build(Placement(reader))
    first, second = (
        {outcome.key: outcome.cost for _, outcome in replay(cells, lambda _: environment, ReplayOptions(CALENDAR))}
        for _ in range(2)
    )
    assert first == second
    costs = [cost for cost in first.values() if cost]
    assert len(costs) >= 3
    assert all(None not in msgspec.structs.astuple(cost) for cost in costs)

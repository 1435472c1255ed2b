"""The stub of `benchmarks.growth` gives every cell its result."""

from __future__ import annotations

from benchmarks import growth


def test_a_small_plan_of_stubs_passes_whole(tmp_path):
    run = growth._run(tmp_path, 2 * growth.READERS)
    assert run.cells == 2 * growth.READERS
    assert run.memory > 0

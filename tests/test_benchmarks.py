"""The benchmarks measure what they say: each stub has its result, goldens are written with and without noise."""

from __future__ import annotations

from warm_pytest import LITTLE_NOISE

from benchmarks import growth, writing
from export_core.goldens import GoldenStore


def test_a_small_plan_of_stubs_passes_whole(tmp_path):
    run = growth._run(tmp_path, 2 * growth.READERS)
    assert run.cells == 2 * growth.READERS
    assert run.memory > 0


def test_a_shard_of_stubs_has_its_part_of_the_plan(tmp_path):
    assert growth._run(tmp_path, 2 * growth.READERS, growth.READERS).cells == 2


def test_goldens_are_written_with_noise_and_without(tmp_path):
    for name, conftest in (("with", LITTLE_NOISE), ("without", writing.WITHOUT)):
        project = writing._project(tmp_path / name, conftest)
        assert writing.write_goldens(project, "goldens") > 0
    noises = [
        [golden.manifest.noise for golden in GoldenStore(tmp_path / name / "goldens").goldens()]
        for name in ("with", "without")
    ]
    assert [len(side) for side in noises] == [8, 8]
    assert None not in noises[0]
    assert noises[1] == [None] * 8

"""Adopted artifacts for several devices pass in each reader that loads them (all of them: nox -s sharding_check)."""

from __future__ import annotations

import pytest

from studies.sharding.sharding_check import adopt_all, replay_all

PROGRAMS = ("grid", "exchanged_axes", "unspecified", "explicit_axes", "two_meshes", "psum", "backward_devices")
READ_BY = {"0.6.2": {"0.6.2", "0.9.2"}, "0.9.2": {"0.9.2", "0.12.0.1"}, "0.12.0.1": {"0.12.0.1"}}
"""The readers that load each writer's artifacts for several devices."""


@pytest.mark.weekly
def test_adopted_four_device_artifacts_pass_in_readers(tmp_path):
    _, refused = adopt_all(tuple(READ_BY), (4,), tmp_path, PROGRAMS)
    assert not refused
    results = replay_all(tuple(READ_BY), tmp_path)
    cells = [result for result in results if result.reader.jaxlib in READ_BY[result.writer.jaxlib]]
    assert len(cells) == 5 * len(PROGRAMS)
    assert {f"{cell.golden} in {cell.reader.jaxlib}": cell.message for cell in cells if cell.verdict != "pass"} == {}

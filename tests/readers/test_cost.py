"""What environments cost is known before any is built: by those that are here, else by typical figures."""

from __future__ import annotations

import json
import sys

import pytest
from making import day

from export_core.readers.build import READY
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.inventory import MissingEnvironment, expected_cost
from export_core.readers.placement import TYPICAL, Mode, Placement, parse_targets
from export_core.releases import JaxlibRelease, JaxRelease, load_calendar

VERSIONS = ("9.0", "9.1", "9.2")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
CALENDAR = load_calendar().extended(
    {version: JaxlibRelease(day("2026-11-01"), python=(HERE,)) for version in VERSIONS},
    {version: JaxRelease(day("2026-11-01"), version) for version in VERSIONS},
)
ENVIRONMENTS = ReaderEnvironments(CALENDAR)
PLACEMENTS = [Placement(CALENDAR.release(version)) for version in VERSIONS]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path))
    return tmp_path / "environments"


def record(folder, **known):
    folder.mkdir(parents=True)
    (folder / READY).write_text(json.dumps(known))


def test_where_nothing_is_built_figures_are_typical(cache):
    cost = expected_cost(ENVIRONMENTS, PLACEMENTS)
    each = TYPICAL[""]
    assert (cost.needed, cost.built) == (3, 0)
    assert (cost.megabytes, cost.download_megabytes, cost.seconds) == (
        3 * each.megabytes,
        3 * each.download,
        3 * each.seconds,
    )
    assert cost.missing[0] == MissingEnvironment("9.0", "9.0", "cpu", each.megabytes, each.download, each.seconds)
    assert not cache.exists(), "nothing was built"


def test_built_ones_are_counted_and_lend_their_figures(cache):
    record(ENVIRONMENTS.folder(PLACEMENTS[0]), size=400e6, seconds=20)
    record(cache / "jaxlib-9.1-older", size=600e6)
    record(cache / "jaxlib-9.1-libtpu-other", size=9e9, seconds=900)
    (cache / "jaxlib-9.2-half").mkdir()
    cost = expected_cost(ENVIRONMENTS, PLACEMENTS)
    assert (cost.needed, cost.built) == (3, 1)
    assert [(one.jaxlib, one.megabytes, one.seconds) for one in cost.missing] == [("9.1", 600, 20), ("9.2", 500, 20)]


def test_one_environment_for_two_devices_is_counted_once():
    devices = [parse_targets((text,))["tpu"] for text in ("tpu=v5e", "tpu=v6e")]
    placements = [Placement(CALENDAR.release("9.0"), "tpu", Mode.COMPILE, device) for device in devices]
    assert expected_cost(ENVIRONMENTS, placements).needed == 1


def test_what_nobody_has_measured_is_not_known():
    cuda = Placement(CALENDAR.release("9.0"), "cuda", Mode.RUN, parse_targets(())["cuda"])
    cost = expected_cost(ENVIRONMENTS, [cuda])
    assert (cost.megabytes, cost.missing[0].megabytes, cost.missing[0].seconds) == (0, None, None)
    assert cost.download_megabytes == TYPICAL["cuda12-run"].download

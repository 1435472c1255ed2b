"""Forecasts, which are stored with outcomes: a run in which nothing has changed reads no artifact for them."""

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from making import golden, release
from replaying import StubEnvironments

from export_core.goldens import GoldenStore
from export_core.matrix import Cell, Verdict
from export_core.matrix.cache_keys import OutcomeKeys
from export_core.matrix.cached_replay import OutcomeCache, replay_unknown
from export_core.matrix.forecasts import CellForecasts
from export_core.matrix.replay import Replayed
from export_core.matrix.replay_options import ReplayOptions
from export_core.matrix.result import new_result
from export_core.policy import Policy
from export_core.policy.entries import ExtraReleases
from export_core.readers.environment import Environment, this_interpreter
from export_core.readers.worker.protocol import Stage
from export_core.releases import JaxlibRelease, load_calendar

CELL = Cell(golden(), release("0.12.0.1"), "cpu")


def environment(*_: object) -> Environment:
    return dataclasses.replace(this_interpreter(CELL.reader), content_hash="packages")


def passes(cells: Sequence[Cell], build: Callable[..., Environment]) -> Generator[Replayed, None, None]:
    """Yield each cell with a pass, in place of a replay."""
    build(cells[0].placement)
    yield from ((cell, new_result(cell, Stage.COMPARE, Verdict.PASS)) for cell in cells)


def test_an_unchanged_cell_is_not_forecast_again(tmp_path):
    forecast_cells: list[Cell] = []

    def forecast(cell: Cell) -> str:
        forecast_cells.append(cell)
        return "no: it crashes"

    options = ReplayOptions(load_calendar(), cache=True, forecast=forecast)
    forecasts = []
    for _ in range(2):
        with contextlib.closing(OutcomeCache(tmp_path)) as cache:
            replayed = replay_unknown([CELL], cache, StubEnvironments(environment, environment), options, passes)
            forecasts += [outcome.forecast for _, outcome in replayed]
    assert (forecasts, forecast_cells) == (["no: it crashes"] * 2, [CELL])


def test_the_releases_of_a_policy_change_the_cache_key():
    added = ExtraReleases(jaxlib={"0.99.0": JaxlibRelease(built=load_calendar().jaxlib["0.12.0.1"].built)})
    policies = Policy(), Policy(releases=added)
    keys = {OutcomeKeys(ReplayOptions(load_calendar(), policy)).of(CELL, environment()) for policy in policies}
    assert len(keys) == 2


def test_each_cell_has_the_forecast_of_its_own_reader():
    golden_folder = Path(__file__).parents[2] / "golden"
    _, cholesky = GoldenStore(golden_folder).find("tests.compat.test_linear_algebra.test_cholesky/0.9.2-cpu")
    cells = [Cell(cholesky, release(reader), "cpu") for reader in ("0.9.2", "0.12.0.1")]
    forecasts = CellForecasts(cells, load_calendar())
    newer, older = (forecasts.of(cell) for cell in reversed(cells))
    assert (older.partition(":")[0], newer) == ("no", "yes")
    assert forecasts.of(Cell(cholesky, release("0.11.2"), "cpu")) == "", "it is not a cell of the plan"

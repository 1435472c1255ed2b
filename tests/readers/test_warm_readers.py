"""Workers of other releases that are forks, as tests/warm_worker.py starts them for tests with real readers."""

import dataclasses

import pytest
from warm_worker import ForkedWorker

from export_core.readers.environment import Environment, ReaderEnvironments
from export_core.readers.errors import WorkerDied
from export_core.readers.placement import Placement
from export_core.readers.worker import client
from export_core.releases import load_calendar

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("forked_workers")]


@pytest.fixture
def environment() -> Environment:
    calendar = load_calendar()
    return ReaderEnvironments(calendar).build(Placement(calendar.release("0.9.2")))


def test_a_forked_worker_of_another_release_has_imported_that_release(environment):
    worker = client.ForkingWorker(environment)
    assert isinstance(worker._process, ForkedWorker)
    assert worker._greeting["imported"]["jaxlib"] == "0.9.2"
    worker.close()


def test_a_worker_in_an_environment_that_a_test_built_is_not_forked(environment, tmp_path):
    with pytest.raises(WorkerDied, match="cannot start"):
        client.ForkingWorker(dataclasses.replace(environment, folder=tmp_path, python=tmp_path / "bin" / "python"))

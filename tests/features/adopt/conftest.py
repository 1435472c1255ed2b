"""A fixture for both ways to adopt artifacts."""

import pytest

from export_core.readers.environment import ReaderEnvironments
from export_core.readers.errors import EnvironmentFailed


@pytest.fixture
def no_environments(monkeypatch) -> None:
    """A package index that does not answer, so that no environment can be built."""

    def build(*_) -> None:
        raise EnvironmentFailed("the index does not answer")

    monkeypatch.setattr(ReaderEnvironments, "build", build)

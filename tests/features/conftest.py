"""All tests of features run in an empty folder: no policy, no golden and no run is found there but the test's own."""

import pytest


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

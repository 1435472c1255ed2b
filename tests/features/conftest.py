"""All tests of features run in an empty folder, where only the test's own policy, goldens and runs are found."""

import pytest


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

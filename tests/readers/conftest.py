"""A fixture for a cache folder of the test's own."""

from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The folder of environments, which does not exist yet."""
    monkeypatch.setenv("JAXEXPORT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "environments"

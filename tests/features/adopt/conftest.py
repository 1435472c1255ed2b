import pytest
from artifacts import jaxexport

__all__ = ["jaxexport"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """No policy in the working folder but the test's own."""
    monkeypatch.chdir(tmp_path)

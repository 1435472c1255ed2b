"""A fixture for wheels as they are published."""

from pathlib import Path

import pytest
from making import make_wheel
from shipped import CALENDAR, LAST


@pytest.fixture
def wheels(tmp_path) -> Path:
    """A folder with small wheels of the last three releases, with the time stamps of the published ones."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in LAST:
        for python in CALENDAR.pythons(version):
            tag = f"cp{python.replace('.', '')}"
            make_wheel(folder, "jaxlib", version, stamps=("1980-01-01", str(CALENDAR.built(version))), python=tag)
        jax = CALENDAR.jax[version]
        make_wheel(folder, "jax", version, stamps=(str(jax.built),), needs=f"jaxlib<={version},>={jax.minimum_jaxlib}")
    return folder

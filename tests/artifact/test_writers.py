from __future__ import annotations

import pytest
from kept import DATA, FILES, NAMES

import export_core.releases
from export_core.artifact import read
from export_core.artifact.writers import writers


@pytest.fixture(scope="module")
def stablehlo():
    calendar = export_core.releases.load_calendar()
    return {version: calendar.jaxlib[version].stablehlo for version in calendar.versions()}


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_writer_is_among_the_few_that_fit(path, stablehlo):
    found = writers(read(path), stablehlo)
    assert path.parent.name in found
    assert len(found) <= (12 if path.parent.name == "0.4.30" else 4)


def test_the_format_tells_apart_what_the_module_cannot(stablehlo):
    assert writers(read(DATA / "0.8.1" / "platforms.jaxexport"), stablehlo) == ("0.8.1",)

"""The nightlies of an index: those of which both jax and jaxlib are there, by the day in their version."""

from pathlib import Path

import pytest

from export_core.releases import ReleaseError, load_calendar
from export_core.releases.index import with_nightlies_of


def index(folder: Path, **packages: list[str]) -> str:
    for name, files in packages.items():
        (folder / name).mkdir(parents=True)
        links = "".join(f'<a href="{file}">{file}</a>' for file in files)
        (folder / name / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    return str(folder)


def test_a_nightly_needs_a_jax_of_the_same_day(tmp_path):
    days = ("20261101", "20261102", "20261103")
    jaxlib = [
        f"jaxlib-0.13.0.dev{day}-cp3{minor}-cp3{minor}-manylinux_2_27_x86_64.whl" for day in days for minor in (12, 13)
    ]
    jax = [f"jax-0.13.0.dev{day}-py3-none-any.whl" for day in days[1:]]
    folder = index(
        tmp_path, jax=[*jax, "jax-0.13.0.dev20261103.tar.gz"], jaxlib=[*jaxlib, "jaxlib-0.12.0-cp312-cp312-any.whl"]
    )
    calendar = with_nightlies_of([folder], load_calendar())
    assert calendar.versions()[-2:] == ["0.13.0.dev20261102", "0.13.0.dev20261103"]
    assert str(calendar.built("0.13.0.dev20261102")) == "2026-11-02"
    assert calendar.pythons("0.13.0.dev20261102") == ("3.12", "3.13")
    assert calendar.release("0.13.0.dev20261103").jax == "0.13.0.dev20261103"
    assert calendar.versions()[:-2] == load_calendar().versions()


def test_an_index_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ReleaseError, match="cannot be reached"):
        with_nightlies_of([str(tmp_path / "nowhere")], load_calendar())

"""Wheel files: which release each one is, and when it was built, which is never guessed."""

import zipfile
from pathlib import Path

import pytest
from making import day, make_wheel

from export_core.releases import ReleaseError, load_calendar
from export_core.releases.wheels import read_wheel, wheels_in, with_wheels

NIGHTLY = "0.13.0.dev20261120"


@pytest.mark.parametrize(
    ("version", "stamps", "built"),
    [
        ("0.12.1", ("2026-11-18", "2026-11-19", "1980-01-01"), "2026-11-19"),
        (NIGHTLY, ("2026-11-21",), "2026-11-21"),
        (NIGHTLY, ("2010-01-01",), "2026-11-20"),
    ],
)
def test_a_wheel_is_dated_by_its_stamps_or_its_version(tmp_path, version, stamps, built):
    wheel = read_wheel(make_wheel(tmp_path, "jaxlib", version, stamps=stamps))
    assert (wheel.name, wheel.version, wheel.built, wheel.pythons) == ("jaxlib", version, day(built), ("3.12",))


@pytest.mark.parametrize("version", ["0.13.0", "0.13.0rc1", "0.13.0.dev0", "0.13.0.dev20261399"])
def test_a_wheel_without_any_date_is_an_error(tmp_path, version):
    path = make_wheel(tmp_path, "jaxlib", version, stamps=("1980-01-01",))
    with pytest.raises(
        ReleaseError, match=r"the build date of this wheel is not known: .*`SOURCE_DATE_EPOCH=.* wheel pack jaxlib-"
    ):
        read_wheel(path)


def test_a_jax_wheel_has_the_oldest_jaxlib_it_works_with(tmp_path):
    wheel = read_wheel(make_wheel(tmp_path, "jax", NIGHTLY, needs="jaxlib<=0.13.0,>=0.12.0"))
    assert (wheel.entry.minimum_jaxlib, wheel.pythons) == ("0.12.0", ())


OF_JAX, OF_AN_EXTRA = "jaxlib<=0.13.0,>=0.12.0", 'jaxlib<=0.12.1,>=0.12.1; extra == "tpu"'


@pytest.mark.parametrize("needs", [(OF_JAX, OF_AN_EXTRA), (OF_AN_EXTRA, OF_JAX)])
def test_the_jaxlib_of_an_extra_is_not_jaxs_minimum(tmp_path, needs):
    wheel = read_wheel(make_wheel(tmp_path, "jax", NIGHTLY, needs="\nRequires-Dist: ".join(needs)))
    assert wheel.entry.minimum_jaxlib == "0.12.0"


def test_a_jax_wheel_naming_jaxlib_only_in_an_extra_is_an_error(tmp_path):
    with pytest.raises(ReleaseError, match="expected a jax wheel that names the oldest jaxlib it works with"):
        read_wheel(make_wheel(tmp_path, "jax", NIGHTLY, needs=OF_AN_EXTRA))


def test_a_jax_wheel_without_a_jaxlib_is_an_error(tmp_path):
    with pytest.raises(ReleaseError, match="expected a jax wheel that names the oldest jaxlib it works with"):
        read_wheel(make_wheel(tmp_path, "jax", NIGHTLY, needs="numpy"))


@pytest.mark.parametrize("content", [None, b"", b"PK no zip"])
@pytest.mark.parametrize("name", ["jaxlib-0.12.1-cp312-cp312-any.whl", "jaxlib.whl"])
def test_a_file_that_is_not_a_wheel_is_an_error_with_its_name(tmp_path, content, name):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReleaseError, match=r"jaxlib.*\.whl: (not a wheel|expected a wheel file, found no such file)"):
        read_wheel(path)


def test_a_folder_gives_only_wheels_of_jax_and_jaxlib(tmp_path):
    make_wheel(tmp_path, "jaxlib", NIGHTLY)
    make_wheel(tmp_path, "jax", NIGHTLY, needs="jaxlib>=0.12.0")
    make_wheel(tmp_path, "jax_cuda12_plugin", NIGHTLY)
    assert [wheel.name for wheel in wheels_in(tmp_path)] == ["jax", "jaxlib"]
    with pytest.raises(ReleaseError, match=r"--wheels .*nothing: expected a folder with wheels of jax or jaxlib"):
        wheels_in(tmp_path / "nothing")


def test_wheels_add_releases_and_change_no_known_date(tmp_path):
    made = [
        make_wheel(tmp_path, "jaxlib", NIGHTLY),
        make_wheel(tmp_path, "jaxlib", NIGHTLY, stamps=("2026-11-21",), python="cp313"),
        make_wheel(tmp_path, "jax", NIGHTLY, needs="jaxlib>=0.12.0"),
        make_wheel(tmp_path, "jaxlib", "0.9.2"),
    ]
    calendar = with_wheels(load_calendar(), map(read_wheel, made))
    release = calendar.release(NIGHTLY)
    assert (release.jax, release.built, calendar.newest()) == (NIGHTLY, day("2026-11-21"), NIGHTLY)
    assert calendar.pythons(NIGHTLY) == ("3.12", "3.13")
    assert calendar.release("0.12.0").jax == NIGHTLY, "its rule lets it work on an older jaxlib"
    assert calendar.built("0.9.2") == load_calendar().built("0.9.2")


def test_a_wheel_with_an_impossible_date_is_an_error(tmp_path):
    path = make_wheel(tmp_path, "jaxlib", NIGHTLY)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        stamp = archive.infolist()[0]
    year, month, date = stamp.date_time[:3]
    packed = ((year - 1980) << 9 | month << 5 | date).to_bytes(2, "little")
    assert packed in data
    path.write_bytes(bytes(data).replace(packed, b"\xff\xff"))
    with pytest.raises(ReleaseError, match="not a wheel"):
        read_wheel(Path(path))

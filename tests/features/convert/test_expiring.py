"""`jaxexport convert DIR --expiring 30d`: what leaves the window soon, or has left it."""

import shutil

import pytest
from commands import assert_bad_input
from kept import DATA

from export_core.artifact import read
from export_core.goldens import GoldenStore

OLD, NEW = DATA / "0.9.2" / "mlp.jaxexport", DATA / "0.12.0.1" / "mlp.jaxexport"


@pytest.fixture
def archive(tmp_path):
    """An artifact by 0.9.2, promised until 2026-09-14, and one by 0.12.0.1, promised until 2027-04-18."""
    folder = tmp_path / "archive" / "models"
    folder.mkdir(parents=True)
    shutil.copy(OLD, folder / "old.jaxexport")
    shutil.copy(NEW, folder / "new.jaxexport")
    (folder / "README.txt").write_text("no artifact")
    return folder.parent


WORDS = ("--expiring", "30d", "--as-of", "2026-09-01")


def test_what_leaves_the_window_is_converted_into_the_same_folders(archive, convert, tmp_path):
    (archive / "broken.jaxexport").write_bytes(OLD.read_bytes()[:900])
    ended = convert("archive", *WORDS, "-o", "converted")
    assert (ended.code, "broken.jaxexport" in ended.err) == (2, True), "and the others are converted"
    (made,) = (tmp_path / "converted").rglob("*.jaxexport")
    assert made == tmp_path / "converted" / "models" / "old.jaxexport"
    assert read(made).envelope


@pytest.mark.parametrize(("until", "code"), [("2026-09-14", 3), ("2026-09-13", 0)])
def test_the_last_day_can_be_given(archive, convert, tmp_path, until, code):
    """No golden has it: exit code 3."""
    assert convert("archive", "--expiring", until, "-o", "converted").code == code
    assert (tmp_path / "converted").exists() is (code == 3)


def test_nothing_to_convert_is_well(archive, convert):
    ended = convert("archive", "--expiring", "30", "--as-of", "2026-04-01", "-o", "converted")
    assert (ended.code, ended.out) == (0, "no artifact leaves the window by 2026-05-01: nothing to convert\n")


def test_what_exists_is_not_replaced(archive, convert, tmp_path):
    (tmp_path / "out" / "models").mkdir(parents=True)
    there = tmp_path / "out" / "models" / "old.jaxexport"
    there.write_bytes(NEW.read_bytes())
    ended = convert("archive", *WORDS, "-o", "out", code=2)
    assert "expected nothing there, found another file or golden, which stays" in ended.err
    assert "--replace out/models/old.jaxexport" in ended.err
    assert there.read_bytes() == NEW.read_bytes()
    assert convert("archive", *WORDS, "-o", "out", "--replace", "out/models/old.jaxexport").code == 3
    assert there.read_bytes() != NEW.read_bytes()
    converted = there.read_bytes()
    assert convert("archive", *WORDS, "-o", "out").code == 3, "the same once more"
    assert there.read_bytes() == converted


@pytest.mark.parametrize("kind", ["link", "broken link", "record"])
def test_a_link_or_a_record_that_exists_is_not_replaced(archive, convert, tmp_path, kind):
    folder = tmp_path / "out" / "models"
    folder.mkdir(parents=True)
    if kind != "record":
        (folder / "old.jaxexport").symlink_to(archive / "models" / ("new.jaxexport" if kind == "link" else "nothing"))
    else:
        (folder / "old.jaxexport.converted.json").write_text("notes")
    assert convert("archive", *WORDS, "-o", "out").code == 2
    assert len(list(folder.iterdir())) == 1
    assert (archive / "models" / "new.jaxexport").read_bytes() == NEW.read_bytes()


def test_of_two_files_with_one_name_none_is_lost(archive, convert, tmp_path):
    shutil.copytree(archive, tmp_path / "other")
    ended = convert("archive", "other", *WORDS, "-o", "out")
    assert (ended.code, "would both be written to out/models/old.jaxexport" in ended.err) == (2, True), ended
    assert not (tmp_path / "out").exists()


def test_no_original_is_replaced_through_a_link(archive, convert, tmp_path):
    (tmp_path / "link").symlink_to(archive)
    assert_bad_input(convert("archive/models", *WORDS, "-o", "link/models"), "whose artifacts are never touched")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.jaxexport").symlink_to(archive / "models" / "old.jaxexport")
    assert_bad_input(convert("archive/models", *WORDS, "-o", "out"), "would replace the original")
    assert (archive / "models" / "old.jaxexport").read_bytes() == OLD.read_bytes()


def test_a_golden_is_converted_as_a_golden(convert, refused_golden, tmp_path, here):
    convert("golden", "--expiring", "2031-01-31", "-o", "converted", code=0)
    (golden,) = GoldenStore(tmp_path / "converted").goldens()
    assert golden.id == refused_golden.id
    assert golden.manifest.converted_from.reader == here.jaxlib
    again = convert("converted", "--expiring", "2031-01-31", "-o", "twice")
    assert (again.code, again.out) == (3, "no artifact leaves the window by 2031-01-31: nothing to convert\n")
    assert "left out: 1 artifact whose last promised day is not known" in again.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("archive", "--expiring", "soon", "-o", "converted"), "days such as 30d, or a date, found 'soon'"),
        (("archive/models/old.jaxexport", "--expiring", "3d", "-o", "converted"), "expects folders, found a file"),
        (("missing", "--expiring", "3d", "-o", "converted"), "expects folders, found nothing"),
        (("empty", "--expiring", "3d", "-o", "converted"), "empty: expected artifacts, found none in 1 file"),
        (("archive", "--expiring", "3d", "-o", "archive/converted"), "whose artifacts are never touched"),
    ],
)
def test_bad_input(archive, convert, tmp_path, words, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "README.txt").write_text("no artifact")
    assert_bad_input(convert(*words), said)

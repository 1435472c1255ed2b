"""Files are written by one module, never through a link, and never over what is not the program's own.

`OTHERS` has every module that writes without it, and why. A test finds each call in the source that writes a file.
"""

import ast
import os
import re
import sys
from pathlib import Path

import pytest

from export_core.base import atomic
from export_core.base.atomic import open_to_append, put_folder, write_new, write_whole

ROOT = Path(__file__).parents[2]

OTHERS = {
    "the writer": "base/atomic",
    "a scratch folder that this process has made": "base/scratch features/convert/proof features/convert/programs "
    "features/convert/rewriting/export_again features/convert/rewriting/rewriting_program features/remote/job "
    "features/why/reduce/editing/editing_program features/why/reduce/failing_alike features/why/reduce/reduced_program "
    "numbers/measuring_noise numbers/shows_nothing numbers/user_code readers/cell readers/worker/calls "
    "readers/worker/first_run "
    "features/backfill/backfill "
    "run/golden_writing runtimes/stablehlo_worker runtimes/tensorflow_worker ../pytest_jaxexport/second_export",
    "a scratch folder; texts of --dump-ir, no links followed": "readers/worker/jaxlib_worker",
    "a scratch folder; what modules a reader imports, in the user's cache, under a name that must be free": (
        "readers/worker/program"
    ),
    "an environment in the user's cache": "readers/build readers/sharing readers/cached_environments",
    "a database in the user's cache": "matrix/cached_replay",
    "a file of one process in the user's cache, which it locks": "../pytest_jaxexport/dead_processes",
    "bytes in memory": "goldens/arrays readers/packages",
    "an open descriptor, or /dev/null": "base/streams numbers/user_program ../pytest_jaxexport/second_run",
    "the terminal, where somebody is asked": "../pytest_jaxexport/reviewing",
    "renames of a golden's own folder": "goldens/store",
    "the lock of a run, and renames of its files, after a check for links": "run/results",
    "a file that `goldens backfill` names in an environment variable": "../pytest_jaxexport/missing_modules "
    "../pytest_jaxexport/plugin",
}
"""What is written, made or renamed without the writer, and the modules of export_core/ that do it."""

WRITERS = {
    "write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "rename", "renames", "copyfile", "copy2",
    "copytree", "move", "mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile", "savez",
    "savez_compressed", "tofile", "truncate", "link", "symlink", "FileLock", "connect", "fdopen", "mknod", "mkfifo",
}  # fmt: skip
FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}
CALL = re.compile(rf"\b(?:{'|'.join(WRITERS | {'replace', 'save', 'open', 'ZipFile'})})\s*\(")
"""What a source with a call of these functions has. Parsing all files takes two seconds."""


def writes(source: str) -> bool:
    """Return whether a module has a call that writes, makes or renames a file; folders may be made anywhere."""
    if not CALL.search(source):
        return False
    return any(isinstance(node, ast.Call) and is_writing(node) for node in ast.walk(ast.parse(source)))


def is_writing(call: ast.Call) -> bool:
    """Return whether a call may write, make or rename a file. A mode that is computed counts as one that writes."""
    name = getattr(call.func, "id", "") or getattr(call.func, "attr", "")
    owner = getattr(getattr(call.func, "value", None), "id", "")
    if name in WRITERS:
        return True
    if name == "replace":  # of os, or of a path; that of a text has two arguments, that of a record has keywords
        return owner == "os" or (len(call.args) == 1 and not call.keywords)
    if name == "save":
        return owner in ("np", "numpy")
    if owner == "os" and name == "open":
        return any(getattr(node, "attr", "") in FLAGS for node in ast.walk(call))
    if name in ("open", "ZipFile"):
        spelled = [word.value for word in call.keywords if word.arg == "mode"]
        # Of Path.open, the mode is the first argument, and webbrowser.open takes none.
        modes = [*spelled, *(call.args[:1] if is_method(call) else call.args[1:2])]
        return any(is_writing_mode(mode, known=is_method(call)) for mode in modes)
    return False


def is_method(call: ast.Call) -> bool:
    """Return whether a call is one of an object's method, and not of a function of a module."""
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") not in ("io", "zipfile")


def is_writing_mode(mode: ast.expr, *, known: bool) -> bool:
    """Return whether an argument is a mode that writes.

    Args:
        mode: the argument.
        known: whether only a constant counts. Otherwise an argument that is computed counts as a mode that writes.
    """
    if not isinstance(mode, ast.Constant):
        return not known
    return isinstance(mode.value, str) and bool(re.fullmatch("[wax][bt+]*|r[bt]*[+][bt]*", mode.value))


def test_only_listed_modules_write_files():
    modules = [path for package in ("export_core", "pytest_jaxexport") for path in (ROOT / package).rglob("*.py")]
    writing = {path for path in modules if writes(path.read_text("utf-8"))}
    named = {(ROOT / "export_core" / f"{name}.py").resolve() for names in OTHERS.values() for name in names.split()}
    assert writing == named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open(p, 'w')", True),
        ("open(p, mode='ab')", True),
        ("open(p, mode)", True),
        ("open(p, 'rb')", False),
        ("Path(p).open('x')", True),
        ("Path(p).open()", False),
        ("webbrowser.open(p)", False),
        ("zipfile.ZipFile(p, 'a')", True),
        ("os.open(p, os.O_RDONLY)", False),
        ("os.open(p, os.O_RDWR | os.O_CREAT)", True),
        ("p.replace(q)", True),
        ("text.replace('a', 'b')", False),
        ("shutil.move(p, q)", True),
    ],
)
def test_every_way_to_open_a_file_for_writing_is_found_in_source(text, expected):
    assert writes(text) == expected


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of another owner, beside the folder `here` that is written into."""
    (tmp_path / "here").mkdir()
    (tmp_path / "outside").write_text("mine")
    return tmp_path / "outside"


@pytest.mark.parametrize("write", [write_whole, write_new, lambda path, parts: open_to_append(path).write(parts[0])])
@pytest.mark.parametrize("target", ["../outside", "nowhere"])
def test_nothing_is_written_through_a_link(outside, write, target):
    link = outside.parent / "here" / "report.html"
    link.symlink_to(target)
    with pytest.raises(OSError, match=r"symbolic link|File exists"):
        write(link, [b"ours"])
    assert link.is_symlink()
    assert not link.exists() or outside.read_text() == "mine"
    assert [path.name for path in link.parent.iterdir()] == ["report.html"]


def test_a_link_made_after_the_check_is_not_followed(outside, monkeypatch):
    monkeypatch.setattr(atomic, "refuse_link", lambda path: None)
    link = outside.parent / "here" / "results.jsonl"
    link.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic links"):
        open_to_append(link)
    assert outside.read_text() == "mine"


def test_a_link_at_the_name_of_a_temporary_file_is_not_followed(outside, monkeypatch):
    path = outside.parent / "here" / "plan.json"
    waiting = path.with_name("waiting")
    waiting.symlink_to(outside)
    monkeypatch.setattr(atomic, "hidden_name", lambda prefix, file: waiting)
    with pytest.raises(FileExistsError):
        write_whole(path, [b"ours"])
    assert outside.read_text() == "mine"


def test_each_temporary_file_has_a_name_of_its_own(tmp_path):
    names = {atomic.hidden_name(atomic.STAGED, tmp_path / "plan.json") for _ in range(100)}
    assert len(names) == 100


def test_a_golden_is_not_written_through_a_link(outside):
    folder = outside.parent / "elsewhere"
    folder.mkdir()
    link = outside.parent / "here" / "0.12.0.1-cpu"
    link.symlink_to(folder)
    with pytest.raises(OSError, match="no symbolic link"):
        put_folder(link, {"golden.yaml": b"ours"})
    assert link.is_symlink()
    assert list(folder.iterdir()) == []


def test_a_linked_parent_folder_is_followed(outside):
    (outside.parent / "link").symlink_to("here")
    write_whole(outside.parent / "link" / "a.html", [b"ours"])
    assert (outside.parent / "here" / "a.html").read_bytes() == b"ours"


def test_a_descriptor_under_dev_fd_is_written_to(tmp_path):
    with (tmp_path / "out").open("wb") as file:
        file.write(b"before ")
        file.flush()
        write_whole(Path(f"/dev/fd/{file.fileno()}"), [b"one ", b"two"])
    assert (tmp_path / "out").read_bytes() == b"before one two"
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_new_file_has_the_modes_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", [b""])
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == (0o640 if sys.platform != "win32" else 0o666)

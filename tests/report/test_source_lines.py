"""The file and line of a test, for annotations and code scanning."""

import os

import pytest

from export_core.report.annotations import SourceLine, source_line

SOURCE = """\
import pytest

@pytest.mark.export_compat
def test_f(export_golden): ...

class TestA:
    def test_g(self): ...

    class TestB:
        async def test_h(self): ...
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "packages" / "one"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "test_a.py").write_text(SOURCE)
    (folder / "tests" / "test_b.py").write_text("def test_f(:\n")
    (folder / "outside.py").symlink_to("/etc/passwd")
    return folder


@pytest.mark.parametrize(
    ("names", "line"),
    [
        ("test_f", 4),
        ("test_f[a::b]", 4),
        ("TestA::test_g", 7),
        ("TestA::TestB::test_h", 10),
        ("TestA::test_of_its_base", 6),
        ("test_generated", 1),
    ],
)
def test_the_line_of_a_test_is_that_of_its_function_or_class(project, names, line):
    assert source_line(f"tests/test_a.py::{names}", project) == SourceLine("packages/one/tests/test_a.py", line)


def test_a_file_that_does_not_parse_has_line_1(project):
    assert source_line("tests/test_b.py::test_f", project).line == 1


def test_outside_a_repository_paths_are_relative_to_the_folder(tmp_path):
    (tmp_path / "test_a.py").write_text(SOURCE)
    assert source_line("test_a.py::test_f", tmp_path).file == "test_a.py"


@pytest.mark.parametrize(
    "test", ["", "test_gone.py::test_f", "../one/tests/test_a.py::test_f", "/etc/passwd", "outside.py::f", "a\0.py::f"]
)
def test_a_test_outside_the_folder_has_no_line(project, test):
    assert source_line(test, project) is None
    absolute = f"{os.fspath(project)}/tests/test_a.py::test_f"
    assert source_line(absolute, project) is None

"""The tests of docs/how-to/export.md, run as a project: its goldens are written and replayed."""

import re
from pathlib import Path

import pytest
from projects import Project, Projects
from warm_pytest import WHOLE_NOISE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "export.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w+ title=\"(\S+)\"\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TESTS = re.findall(r"^def (test_\w+)", PAGE, re.MULTILINE)


@pytest.fixture
def project(projects: Projects) -> Project:
    made = projects(noise=WHOLE_NOISE)
    for name in dict.fromkeys(name for name, _ in BLOCKS):
        text = "\n\n".join(block for title, block in BLOCKS if title == name)
        (made.folder / name).write_text(text, encoding="utf-8")
    return made


@pytest.mark.matrix  # not for other releases: with the noise of all goldens it takes 20 s, and .ci/run runs it there
def test_goldens_of_the_guide_are_written_and_kept(project):
    unused = ("-p", "no:hypothesispytest", "-p", "no:jaxtyping")  # as in the ini file of other projects
    written = project.pytest("--update-goldens", *unused)
    assert (written.code, f"{len(TESTS)} goldens new" in written.text) == (0, True), written.text
    replayed = len(TESTS) - 2  # the kernels for TPU
    checked = project.pytest(*unused)
    assert f"{len(TESTS)} cases checked against {replayed} goldens: {replayed} kept" in checked.text, checked.text
    assert checked.code == 0


def test_the_guide_shows_every_export_option():
    from dataclasses import fields

    from export_core.export.case import ExportOptions

    assert [field.name for field in fields(ExportOptions) if not re.search(rf"\b{field.name}=", PAGE)] == []

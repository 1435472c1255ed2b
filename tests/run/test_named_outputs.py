"""Named output files, which never replace files of a golden, a policy or a run, and are never links."""

from pathlib import Path

import pytest
from making import manifest, write_golden

from export_core.goldens import GoldenStore
from export_core.matrix import Verdict
from export_core.matrix.result import new_result
from export_core.readers.worker.protocol import Stage
from export_core.run import session
from export_core.run.errors import RunError
from export_core.run.named_outputs import check_output

GOLDEN = "golden/t.a/0.12.0.1-cpu"


@pytest.fixture
def project(cwd, monkeypatch) -> Path:
    """A project with a finished run, a policy and one golden, in which no process is started."""
    write_golden(GoldenStore(cwd / "golden"), manifest("t.a", "0.12.0.1"))
    (cwd / "mine.policy").write_text("goldens: golden\n")
    (cwd / "pyproject.toml").write_text("")
    (cwd / "other.yaml").write_text("goldens: golden\n")
    (cwd / "outside").write_text("mine")
    (cwd / "link.html").symlink_to("outside")
    monkeypatch.setattr(session, "_replay_by", lambda *_: ran)
    return cwd


def ran(cells, *_, **__):
    """Yield each cell with a pass, in place of a replay."""
    yield from ((cell, new_result(cell, Stage.COMPARE, Verdict.PASS)) for cell in cells)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


MATRIX = ("matrix", "--readers", "0.12.0.1", "--as-of", "2026-11-21", "--policy", "mine.policy")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".jaxexport/results.jsonl", "expected a name that no file of a run has"),
        (".jaxexport/summary.json", "expected a name that no file of a run has"),
        (".jaxexport/plan.json", "expected a name that no file of a run has"),
        (f"{GOLDEN}/golden.yaml", "found one in the golden"),
        (f"{GOLDEN}/artifact.jaxexport", "found one in the golden"),
        (f"{GOLDEN}/new.html", "found one in the golden"),
        ("other.yaml", "found a policy or another file written by hand"),
        ("pyproject.toml", "found a policy or another file written by hand"),
        ("mine.policy", "found a policy or another file written by hand"),
        ("link.html", "cannot write there: expected no symbolic link, found one"),
    ],
)
def test_a_report_does_not_replace_files_of_other_kinds(jaxexport, project, name, message):
    jaxexport(*MATRIX, code=0)
    before = contents(project)
    for words in (MATRIX, ("report", "--policy", "mine.policy")):
        for option in ("--html", "--markdown"):
            ended = jaxexport(*words, option, name, code=2)
            assert message in " ".join(ended.err.split())
            assert contents(project) == before


def test_a_badge_does_not_replace_files_of_a_run(jaxexport, project):
    jaxexport(*MATRIX, code=0)
    before = contents(project)
    jaxexport("report", "--badge", ".jaxexport/summary.json", code=2)
    assert contents(project) == before


def test_a_named_report_or_badge_is_replaced(jaxexport, project):
    jaxexport(*MATRIX, code=0)
    for _ in range(2):
        jaxexport("report", "--html", ".jaxexport/report.html", "--badge", "golden/badge.json", code=0)
    assert b"<html" in (project / ".jaxexport" / "report.html").read_bytes()


def test_a_report_through_a_link_into_a_golden_is_refused(project):
    (project / "link").symlink_to(GOLDEN)
    with pytest.raises(RunError, match="found one in the golden"):
        check_output(Path("link/report.html"))

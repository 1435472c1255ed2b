"""What a report advises about cells that ended by their time limit: more time, before a release is blamed."""

import io

import pytest
from making import document, of_runtime, result
from rich.console import Console

from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.matrix.reproduce_command import with_more_time
from export_core.readers.worker.protocol import Stage
from export_core.report.junit import junit_xml
from export_core.report.markdown import markdown_text
from export_core.report.page import html_page
from export_core.report.terminal import print_report
from export_core.report.view import broken_cell

CELL = "--case t.f --writer 0.9.2 --reader"
BLAMES = ("Do not deploy", "convert it", "upgrade the deployment", "Check the test")


def timed_out(reader: str = "0.10.2", judgement: Judgement = Judgement.BROKEN, **changes: object) -> Result:
    changes = {"message": "still in stage compile after 120 s, killed", "stage": Stage.COMPILE, **changes}
    return result(Verdict.TIMEOUT, judgement, **{"case": "t.f", "reader": reader, **changes})


def to_do(*results: Result) -> str:
    (finding,) = document(results).findings
    return dict(finding.details)["to do"]


@pytest.mark.parametrize(
    "cell",
    [
        timed_out(),
        timed_out(judgement=Judgement.OWED, deployed=("farm",), promised=False),
        timed_out(reader="0.9.2"),  # its own writer
    ],
    ids=["broken", "owed", "own writer"],
)
def test_the_first_advice_on_a_timeout_is_a_longer_limit(cell):
    reader = cell.reader.jaxlib
    advice = (
        "Run it again, alone and with a longer limit, since a busy machine and an endless compilation look alike. The "
        f"command: `jaxexport matrix --cases t.f --writers 0.9.2 --readers {reader} --platforms cpu --timeout 480`."
    )
    assert to_do(cell).startswith(f"{advice} Only if it ")
    assert f"`jaxexport bisect {CELL} {reader} --timeout 480`, and report it to JAX." in to_do(cell)
    made = document([cell])
    (shown := io.StringIO()), print_report(Console(file=shown, width=100), made)
    texts = [shown.getvalue(), broken_cell(cell).text, markdown_text(made), html_page(made), junit_xml(made)]
    for text in texts:
        assert "Run it again, alone and with a longer limit, since" in " ".join(text.split())
        assert not any(words in text for words in BLAMES), text
    assert f"next       {with_more_time(cell.reproduce)}\n" in shown.getvalue()


def test_the_advised_limit_is_at_least_four_times_the_cells_limit():
    command = "OPENBLAS_CORETYPE=Haswell jaxexport matrix --cases t.f --timeout 300 --no-cache --results r"
    assert with_more_time(command) == command.replace("300", "1200")
    assert with_more_time("jaxexport matrix --timeout 2.5") == "jaxexport matrix --timeout 120", "the usual limit"
    assert with_more_time("jaxexport matrix --timeout x") == "jaxexport matrix --timeout 480", "by a file of others"


def test_a_timeout_in_a_runtime_advises_to_report_it_to_that_runtime():
    cell = of_runtime(timed_out(judgement=Judgement.OWED, deployed=("robot",)), "iree==3.13.0", "2026-10-19")
    assert to_do(cell).endswith(", and report it to iree.")


def test_a_timeout_in_the_goldens_writer_does_not_blame_the_golden():
    (finding,) = document([timed_out("0.9.2"), timed_out()]).findings
    assert finding.title == "BROKEN PROMISE"
    assert "own writer" not in finding.text

"""A joined run that lacks a shard: no medium takes the cells that arrived for all planned cells."""

import io

import pytest
from making import document, result, summarize
from rich.console import Console

from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.policy.run_options import Shard
from export_core.readers.worker.protocol import Stage
from export_core.report.badge import badge
from export_core.report.markdown import markdown_text
from export_core.report.page import html_page
from export_core.report.terminal import print_report

KEPT = result(reader="0.9.2")
CRASH = result(Verdict.CRASH, Judgement.BROKEN, case="t.b", reader="0.9.2", stage=Stage.RUN, message="signal 11")
BONUS = result(judgement=Judgement.BONUS, writer="0.12.0.1", reader="0.9.2", promised=False)
NOT_RUN = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="t.n", reader="0.9.2", stage=Stage.ENVIRONMENT)
LOST = Shard(2, 2)
SENTENCE = "Shard 2/2 is missing: 3 planned cells are not shown."


def joined(*results, lost=(LOST,), planned=3):
    """Build the report of shards, of which those in `lost` with `planned` cells in all are missing."""
    return document(results, summarize(results, planned=len(results) + planned, missing_shards=[*lost]))


def reported(made) -> str:
    file = io.StringIO()
    print_report(Console(file=file, width=200), made)
    return file.getvalue()


@pytest.mark.parametrize(
    ("results", "lost", "line"),
    [
        (
            [KEPT, CRASH],
            [LOST],
            "BROKEN: 1 of at least 2 promised cells, 1 cause; incomplete: 3 of 5 planned cells have no result that "
            "counts, since shard 2/2 is missing; reader affected so far 0.9.2.",
        ),
        ([KEPT], [LOST], "INCOMPLETE: 3 of 4 planned cells have no result that counts, since shard 2/2 is missing."),
        (
            [KEPT, NOT_RUN],
            [Shard(2, 3), Shard(3, 3)],
            "INCOMPLETE: 4 of 5 planned cells have no result that counts, 3 of them since shards 2/3, 3/3 are missing.",
        ),
    ],
    ids=["broken", "kept so far", "others were not run"],
)
def test_a_headline_counts_missing_cells_and_names_their_shards(results, lost, line):
    assert joined(*results, lost=lost).headline[0] == line


def test_the_badge_of_a_run_without_a_shard_says_at_least():
    assert badge(joined(KEPT, CRASH).run.summary)["message"] == "broken: 1 of at least 2 promised cells"
    assert badge(joined(KEPT).run.summary)["message"] == "incomplete: 3 of 4 planned cells have no result that counts"


def test_the_table_says_not_known_for_cells_of_a_missing_shard():
    def row_of_newest(made):
        (row,) = [line for line in reported(made).splitlines() if line.startswith("0.12.0.1 ")]
        return " ".join(row.split())

    assert row_of_newest(joined(KEPT, BONUS)) == "0.12.0.1 1 not known 1 of 1 ok"
    assert row_of_newest(document([KEPT, BONUS])) == "0.12.0.1 1 none 1 of 1 ok"


@pytest.mark.parametrize("draw", [reported, markdown_text, html_page])
def test_each_report_format_says_how_many_cells_are_not_shown(draw):
    assert SENTENCE in draw(joined(KEPT, BONUS))
    assert "is missing" not in draw(document([KEPT, BONUS]))

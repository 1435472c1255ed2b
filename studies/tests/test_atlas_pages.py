"""The breaks on the atlas's page: their part of the corpus, JAX's issue, and the commands that repeat them."""

from __future__ import annotations

from pathlib import Path

import making
import msgspec
import pytest

from export_core.judge import Judgement
from export_core.judge.causes import find_causes
from export_core.matrix import Verdict
from studies.atlas.pages import Break, break_table, breaks_in, closed_issue, label_of, part_table
from studies.atlas.parts import CORPUS, part_of
from studies.atlas.scores import Atlas
from studies.atlas.tables import atlas_markdown
from tools.marked import filled

ATLAS = Path(__file__).parents[2] / "docs" / "atlas"
REGRESSIONS = CORPUS / "regressions"
CLOSED = "studies.corpus.regressions.fusions.test_rows_times_a_matrix"


@pytest.mark.parametrize(
    ("case", "part", "label"),
    [
        ("jax.cpu_qr.data", "jax", "JAX's own goldens"),
        ("tests.compat.test_rng.test_key", "own", "goldens of this project"),
        (CLOSED, "regressions", "closed regressions"),
        ("studies.corpus.programs.network_programs.test_block", "programs-plain", "real programs"),
        ("studies.corpus.programs.flax_programs.test_norm", "programs-flax", "real programs"),
        ("studies.corpus.harnesses.harnesses.test_harness.add", "harnesses", "JAX's harnesses"),
    ],
)
def test_the_id_of_a_case_tells_its_part_of_the_atlas(case, part, label):
    assert (part_of(case), label_of(case)) == (part, label)


def test_a_programs_closed_issue_is_read_from_its_docstring():
    assert closed_issue(CLOSED, REGRESSIONS) == "https://github.com/jax-ml/jax/issues/39103"
    assert closed_issue("tests.compat.test_rng.test_key", REGRESSIONS) == ""


def test_a_broken_promise_is_listed_with_issue_and_commands():
    broken = [
        making.result(Verdict.NUMERICS, Judgement.BROKEN, case=CLOSED, message="output 0", writer=writer)
        for writer in ("0.9.2", "0.10.1")
    ]
    crash = making.result(Verdict.CRASH, Judgement.BROKEN, case="tests.compat.test_rng.test_key")
    kept = making.result(case="jax.cpu_qr.data")
    first, second = breaks_in(find_causes([kept, *broken, crash])[0], REGRESSIONS)
    assert (first.verdict, first.promised, first.known) == ("crash", 1, "")
    assert break_table([second]).splitlines()[2:] == [
        "| 2 | numerics | `test_rows_times_a_matrix` | 0.10.2 "
        "| [jax 39103](https://github.com/jax-ml/jax/issues/39103) |"
    ]
    assert second.again == (
        "nox -s atlas -- --parts regressions --writers 0.9.2 --only write",
        f"jaxexport matrix --cases {CLOSED} --writers 0.9.2 --readers 0.10.2 --platforms cpu",
    )
    assert part_table([kept, *broken]).splitlines()[2:] == [
        "| JAX's own goldens | 1 | 1 | 1 | 1 | 100.0 |",
        "| closed regressions | 1 | 2 | 2 | 2 | 0.0 |",
    ]


def test_the_page_of_the_atlas_shows_its_recorded_data():
    atlas = msgspec.json.decode((ATLAS / "atlas.json").read_bytes(), type=Atlas)
    breaks = msgspec.json.decode((ATLAS / "breaks.json").read_bytes(), type=list[Break])
    page = (ATLAS / "index.md").read_text(encoding="utf-8")
    tables = {"tables": atlas_markdown(atlas), "breaks": break_table(breaks)}
    assert page == filled(page, tables)

"""The atlas of a run: the score of each release, how long goldens live, and what ends them."""

from __future__ import annotations

import datetime

from making import result

from export_core.judge import Judgement, Result
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Cost, Stage
from studies.atlas.scores import Atlas, atlas_of
from studies.atlas.tables import atlas_markdown, percent, score_row

DAY = datetime.date(2026, 11, 23)
REFUSED = "ValueError: version 3 is too old"


def works(reader: str, **changes: object) -> Result:
    return result(reader=reader, **changes)


def fails(reader: str, verdict: Verdict = Verdict.REFUSED, **changes: object) -> Result:
    named = {"stage": Stage.DESERIALIZE, "message": REFUSED, **changes}
    return result(verdict, Judgement.BROKEN, reader=reader, **named)


def atlas(*results: Result) -> Atlas:
    return atlas_of(results, DAY)


def scores(made: Atlas) -> dict[str, tuple[int, int, int, int]]:
    return {row.reader.jaxlib: (row.promised, row.kept, row.outside, row.working) for row in made.readers}


def lives(made: Atlas) -> list[tuple[str, int, int, int, float]]:
    return [(row.writer.jaxlib, row.goldens, row.alive, row.shortest, row.median) for row in made.writers]


def test_a_score_is_the_share_of_promised_cells_that_work():
    made = atlas(
        works("0.10.2", case="a"),
        fails("0.10.2", case="b"),
        works("0.10.2", case="c"),
        works("0.12.0", case="a", promised=False, judgement=Judgement.BONUS),
        fails("0.12.0", case="b", promised=False),
    )
    assert scores(made) == {"0.10.2": (3, 2, 0, 0), "0.12.0": (0, 0, 2, 1)}
    assert [row.share for row in made.readers] == [2 / 3, None]
    assert made.readers[0].causes == (("refused: ValueError: version _ is too old", 1),)


def test_a_known_failure_counts_as_a_failure():
    (row,) = atlas(result(Verdict.CRASH, Judgement.KNOWN, reader="0.10.2")).readers
    assert (row.promised, row.kept) == (1, 0)


def test_known_issues_of_jax_are_counted_apart():
    known = fails("0.10.2", Verdict.CRASH, case="b", upstream="cpu-rank-8")
    made = atlas(works("0.10.2", case="a"), known, fails("0.10.2", case="c"), works("0.11.0", case="a"))
    assert [(row.promised, row.kept, row.known) for row in made.readers] == [(3, 1, 1), (1, 1, 0)]
    assert [score_row(row)[2:] for row in made.readers] == [("33.3", "50.0"), ("100.0", "100.0")]
    (row,) = atlas(known).readers
    assert score_row(row)[2:] == ("0.0", "-")


def test_a_cell_that_was_not_run_is_not_scored():
    made = atlas(works("0.10.2"), result(Verdict.NOT_RUN, Judgement.INCOMPLETE, reader="0.11.0"))
    assert scores(made) == {"0.10.2": (1, 1, 0, 0)}
    assert made.cells == 2


def test_releases_are_in_the_order_of_their_build_dates():
    made = atlas(works("0.10.0"), works("0.8.3"), works("0.9.0"))
    assert [row.reader.jaxlib for row in made.readers] == ["0.9.0", "0.8.3", "0.10.0"]


def test_a_golden_lives_until_its_first_failing_release():
    made = atlas(
        *(works("0.9.2", case="a"), works("0.10.0", case="a"), fails("0.10.2", case="a"), works("0.11.0", case="a")),
        *(works("0.10.0", case="b"), works("0.11.0", case="b")),
        fails("0.9.0", case="b"),  # an older reader does not count
    )
    # From 2026-03-18 to 2026-04-16, and to 2026-07-16.
    assert lives(made) == [("0.9.2", 2, 1, 29, (29 + 120) / 2)]
    (end,) = made.writers[0].ends
    assert (end.reader.jaxlib, end.verdict, end.message, end.goldens) == ("0.10.2", Verdict.REFUSED, REFUSED, 1)
    assert made.ends == (end,)


def test_a_golden_failing_in_its_writer_has_no_lifetime():
    own = fails("0.9.2", Verdict.CRASH, case="a")
    assert lives(atlas(own, works("0.10.0", case="a"))) == []
    assert scores(atlas(own, works("0.10.0", case="a")))["0.9.2"] == (1, 0, 0, 0)


def test_a_golden_that_only_its_writer_ran_has_no_lifetime():
    assert lives(atlas(works("0.9.2"))) == []


def test_lifetimes_that_ended_are_counted_by_release_and_verdict():
    made = atlas(
        fails("0.10.2", case="a", message="ValueError: version 3 is too old"),
        fails("0.10.2", case="b", message="ValueError: version 4 is too old"),
        fails("0.10.2", Verdict.CRASH, case="c", message="died by signal 11"),
    )
    assert [(end.verdict, end.goldens) for end in made.ends] == [(Verdict.REFUSED, 2), (Verdict.CRASH, 1)]


def test_new_bits_or_more_memory_count_in_the_first_such_release():
    def read(reader: str, bits: str, memory: int) -> Result:
        return works(reader, outputs=bits, as_written=bits == "a", cost=Cost(temp_bytes=memory))

    made = atlas(read("0.9.2", "a", 10_000), read("0.10.0", "b", 10_000), read("0.10.2", "b", 20_000))
    assert [(row.reader.jaxlib, row.moved, row.grown) for row in made.readers] == [
        *(("0.9.2", 0, 0), ("0.10.0", 1, 0), ("0.10.2", 0, 1)),
    ]


def test_wrong_numbers_are_counted_outside_the_window_too():
    made = atlas(result(Verdict.NUMERICS, Judgement.BROKEN, reader="0.12.0", promised=False), works("0.12.0", case="b"))
    assert [row.wrong for row in made.readers] == [1]


def test_percent_is_rounded_down_below_100():
    assert percent(9999, 10_000) == "99.9"
    assert percent(10_000, 10_000) == "100.0"
    assert percent(0, 7) == "0.0"


def test_newest_release_is_first_and_equal_rows_are_merged():
    late = fails("0.12.0", case="b", promised=False)
    crash = fails("0.11.0", Verdict.CRASH, case="a")
    kept = [works(reader, case=case) for reader in ("0.10.1", "0.10.2") for case in "ab"]
    lines = atlas_markdown(atlas(*kept, crash, late)).splitlines()
    assert lines == [
        "6 cells of 2 goldens of 2 cases, in 4 readers, as of 2026-11-23",
        "",
        "| release | promised cells | kept, % | but for known issues, % |",
        "| - | - | - | - |",
        "| 0.12.0 | 0 | - | - |",
        "| 0.11.0 | 1 | 0.0 | 0.0 |",
        "| 0.10.1 to 0.10.2 | 2 | 100.0 | 100.0 |",
        "",
        "| writer | goldens | run by all later releases | days (median) |",
        "| - | - | - | - |",
        "| 0.9.2 | 2 | 0 | 91 |",
    ]

"""How a matrix looks on a terminal: nothing is cut off, nothing is taken for markup."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import msgspec
import pytest
from making import day, golden, release, result, summarize
from rich.console import Console

from export_core.environments.placement import Mode
from export_core.judge import Judgement
from export_core.matrix import Selection, Verdict, make_plan
from export_core.policy import Policy
from export_core.releases import Windows, load_calendar
from export_core.report import print_plan, print_report, print_table
from export_core.report.progress import RunProgress
from export_core.worker.protocol import Stage

READERS = ("0.9.0", "0.8.3", "0.9.2", "0.10.0", "0.10.1", "0.10.2", "0.11.0", "0.11.1", "0.12.0.1")


def drawn(draw, *args, width=160) -> str:
    file = io.StringIO()
    draw(Console(file=file, width=width), *args)
    return file.getvalue()


def matrix_of(readers=READERS):
    return [
        result(case=case, writer=writer, reader=reader)
        for case in ("t.a", "t.b")
        for writer in ("0.9.2", "0.11.0")
        for reader in readers
    ]


def versions_across(lines: list[str]) -> list[list[str]]:
    """The first line of each header, above the dates."""
    return [above.split() for above, line in pairwise(lines) if line.startswith("writer, case")]


def reported(results, planned=None, width=160):
    made = summarize(
        results, planned=len(results) if planned is None else planned, policy=Policy(), as_of=day("2026-11-21"),
        selection={"whole": True}, seconds=12.4,
    )  # fmt: skip
    return drawn(print_report, results, made, width=width)


def test_columns_are_readers_by_build_date_and_rows_are_writers():
    lines = drawn(print_table, matrix_of()).splitlines()
    assert versions_across(lines) == [list(READERS)]
    assert [line.rstrip() for line in lines if "  built " in line] == [
        "0.9.2  built 2026-03-18",
        "0.11.0  built 2026-07-16",
    ]
    assert [line.split()[0] for line in lines if line.startswith("  ") and " ok" in line] == ["a", "b", "a", "b"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_gets_the_table_in_blocks(width):
    text = drawn(print_table, matrix_of(), width=width)
    blocks = versions_across(text.splitlines())
    assert len(blocks) > 1
    assert [version for block in blocks for version in block] == list(READERS)
    table = text[: text.index("ok agrees")]
    assert max(map(len, table.splitlines())) <= width
    assert "…" not in text
    assert table.count("ok") == len(matrix_of())


def test_each_cell_is_a_word_with_what_it_means():
    cells = {
        "ok": result(reader="0.9.2"),
        "[ok]": result(judgement=Judgement.BONUS, reader="0.10.0", promised=False),
        "sig11!": result(Verdict.CRASH, Judgement.BROKEN, reader="0.10.1", signal=11, stage=Stage.RUN),
        "[num]!": result(Verdict.NUMERICS, Judgement.BROKEN, reader="0.10.2", promised=False),
        "errk": result(Verdict.ERROR, Judgement.KNOWN, reader="0.11.0", stage=Stage.COMPILE),
        "[ref]": result(Verdict.REFUSED, Judgement.OUTSIDE, reader="0.11.1", promised=False),
        "time!": result(Verdict.TIMEOUT, Judgement.BROKEN, reader="0.11.2", stage=Stage.RUN),
        "-": result(Verdict.NOT_RUN, Judgement.INCOMPLETE, reader="0.12.0.1", stage=Stage.ENVIRONMENT),
        "sig!": result(Verdict.CRASH, Judgement.BROKEN, reader="0.9.1", stage=Stage.RUN),
        "ok~": result(reader="0.8.1", flaky="was crash on 2026-11-20"),
        "num!~": result(Verdict.NUMERICS, Judgement.BROKEN, reader="0.8.2", flaky="was pass on 2026-11-20"),
    }
    text = drawn(print_table, list(cells.values()))
    row = next(line for line in text.splitlines() if line.startswith("  tests.test_a.test_f"))
    assert sorted(row.split()[1:]) == sorted(cells)


def test_goldens_of_one_jaxlib_with_different_jax_are_two_rows():
    plain = result(Verdict.CRASH, Judgement.BROKEN, writer="0.11.2", reader="0.12.0.1", stage=Stage.RUN)
    older = msgspec.structs.replace(
        result(writer="0.11.2", reader="0.12.0.1"),
        golden="tests.test_a.test_f/0.11.2-cpu",
        writer=msgspec.structs.replace(plain.writer, jax="0.11.2"),
    )
    text = drawn(print_table, [plain, older])
    assert "0.11.2 with jax 0.12.0.1  built 2026-09-17" in text
    table = text[: text.index("ok agrees")].split()
    assert table.count("sig!") == table.count("ok") == 1


def test_cases_are_shown_without_the_folders_that_all_share():
    results = [result(case=f"tests.deep.test_{name}.test_f") for name in ("a", "b")]
    assert "\n  test_a.test_f " in drawn(print_table, results)


def test_names_with_brackets_are_no_markup():
    text = reported(
        [result(Verdict.CRASH, Judgement.BROKEN, case="t.test_f[bold]", stage=Stage.RUN, message="[red]no[/red] [/]")]
    )
    assert "test_f[bold]" in text
    assert "[red]no[/red] [/]" in text


@pytest.mark.parametrize(
    ("results", "planned", "said"),
    [
        ([result()], 1, "KEPT: all 1 promised cells. 1 of 1 planned cells: 1 kept."),
        (
            [result(Verdict.CRASH, Judgement.BROKEN)],
            1,
            "BROKEN: 1 of 1 promised cells, 1 cause; only reader affected 0.10.2. 1 of 1 planned cells: 1 broken.",
        ),
        (
            [result(Verdict.COMPILED, platform="tpu", mode=Mode.COMPILE)],
            1,
            "KEPT: all 1 promised cells, 1 compiled only. 1 of 1 planned cells: 1 kept.",
        ),
        ([result()], 2, "INCOMPLETE: 1 of 2 planned cells have no result that counts. 1 of 2 planned cells: 1 kept."),
        ([], 0, "INCOMPLETE: the run does not cover what it must. 0 of 0 planned cells: no cell."),
    ],
)
def test_the_last_two_lines_say_it_all(results, planned, said):
    last = " ".join(reported(results, planned).strip().splitlines()[-2:])
    code = {"K": 0, "B": 1, "I": 3}[said[0]]
    assert last == f"{said} As of 2026-11-21, 12 s, exit code {code}."


def test_a_flaky_pass_is_kept_and_not_silently_green():
    text = reported([result(flaky="was crash on 2026-11-20"), result(case="t.b")])
    assert "KEPT: all 2 promised cells, 1 flaky." in text
    assert "FLAKY  1 cell had another verdict last time" in text
    assert "exit code 0" in text


def test_a_finding_keeps_its_lines_whole_on_a_narrow_terminal():
    text = reported([result(Verdict.CRASH, Judgement.BROKEN, stage=Stage.RUN, message="m" * 90)], width=60)
    assert "m" * 90 in text, "a command that is copied must not be broken by the terminal's width"


def plan():
    goldens = [golden("a"), golden("b", "0.9.2")]
    return make_plan(goldens, load_calendar(), Windows(), Selection("0.12.0.1,0.9.2"), day("2026-11-21"))


def test_a_plan_is_told_in_two_lines():
    assert drawn(print_plan, plan()).splitlines() == [
        "4 cells as of 2026-11-21: 2 goldens of 2 cases by jaxlib 0.9.2, 0.12.0.1, in 2 readers",
        "readers by build date: 0.9.2, 0.12.0.1",
    ]


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_has_a_line_for_each_finished_reader():
    def follow(console):
        clock = Clock()
        with RunProgress(console, plan(), clock=clock) as progress:
            progress.note("environment of jaxlib 0.9.2 is ready")
            for number, told in enumerate(
                (
                    result(reader="0.9.2"),
                    result(reader="0.12.0.1"),
                    result(Verdict.CRASH, Judgement.BROKEN, reader="0.9.2", message="died by signal 11 (SIGSEGV)\n.."),
                )
            ):
                clock.now = number + 1.0
                progress.result(told)

    assert drawn(follow).splitlines() == [
        "  environment of jaxlib 0.9.2 is ready",
        "  broken: tests.test_a.test_f/0.9.2-cpu in jaxlib 0.9.2: died by signal 11 (SIGSEGV)",
        "[3/4] jaxlib 0.9.2: 1 crash, 1 pass · environments 2/2 · so far 1 broken · about 0:00:01 left",
    ]


def test_a_log_is_never_silent_for_long_while_cells_end():
    def follow(console):
        clock = Clock()
        with RunProgress(console, plan(), clock=clock) as progress:
            for now in (20.0, 40.0):
                clock.now = now
                progress.result(result(reader="0.9.2" if now == 20 else "0.12.0.1"))

    assert drawn(follow).splitlines() == ["[2/4] · environments 2/2 · about 0:00:40 left"]


def test_only_the_first_20_failures_are_shown_as_they_happen():
    def follow(console):
        with RunProgress(console, plan(), clock=Clock()) as progress:
            for number in range(30):
                progress.result(result(Verdict.NOT_RUN, Judgement.INCOMPLETE, reader="0.12.0.1", case=f"t.{number}"))

    lines = [line for line in drawn(follow).splitlines() if not line.startswith("[")]
    assert lines[0] == "  incomplete: t.0/0.9.2-cpu in jaxlib 0.12.0.1: not_run"
    assert lines[20:] == ["  further failures are only counted here; the report at the end lists them"]


def test_a_terminal_has_a_bar_and_quiet_has_nothing():
    file, clock = io.StringIO(), Clock()
    with RunProgress(Console(file=file, force_terminal=True, width=120), plan(), clock=clock) as progress:
        for reader in ("0.9.2", "0.12.0.1"):
            clock.now += 1
            progress.environment(release(reader))
            progress.result(result(Verdict.CRASH, Judgement.BROKEN, reader=reader))
    shown = file.getvalue()
    assert "environments 2/2" in shown
    assert "2 broken" in shown
    assert "2/4" in shown
    assert "0:00:02 left 0:00:02" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)

    def quiet(console):
        with RunProgress(console, plan(), quiet=True) as progress:
            progress.note("something")
            progress.result(result(reader="0.9.2"))

    assert drawn(quiet) == ""

"""A matrix on a terminal: its report, its plan and its progress."""

import io
import itertools
import re
import textwrap
from pathlib import Path

import msgspec
import pytest
from example_runs import broken_document, large_run
from making import day, document, golden, of_runtime, release, result, run_of, summarize
from rich.console import Console
from rich_run import assert_shown, rich_document

from export_core.judge import Judgement, Result
from export_core.judge.accepted import Accepted
from export_core.matrix import Selection, Verdict, make_plan
from export_core.policy import Policy
from export_core.policy.entries import DeploymentTarget, KnownFailure
from export_core.policy.run_options import RESULTS
from export_core.readers.placement import Mode
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows, load_calendar
from export_core.report.document import by_kind
from export_core.report.plan_report import print_plan
from export_core.report.progress import RunProgress
from export_core.report.terminal import print_cells, print_report, table_lines

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


def reported(results, planned=None, width=160):
    return drawn(print_report, document(results, summarize(results, planned=planned, seconds=12.4)), width=width)


def test_the_full_report_shows_everything_but_pictures():
    text = drawn(lambda console: print_report(console, rich_document(), full=True), width=10_000)
    # Of a cell, what numbers look like is a part of its message.
    assert_shown(text, lambda element: element.sort not in ("picture", "row line", "looks like"))


def test_the_short_report_gives_the_reason_for_an_accepted_tolerance():
    text = drawn(print_report, rich_document(), width=10_000)
    assert "\naccepted  A tolerance of 0.1 (bfloat16): t.kept.\n" in text


def test_the_short_report_shows_one_finding_of_each_kind():
    reported = rich_document()
    text = drawn(print_report, reported, width=10_000)
    assert_shown(
        text,
        lambda element: (
            element.sort not in ("picture", "row line", "table", "sentence", "detail")
            and not (
                element.sort == "change" and element.finding and element.finding.title in ("changed", "new", "gone")
            )
            and not (element.sort == "looks like" and element.finding.title == "BROKEN PROMISE")
        ),
    )
    for kind, (first, *_) in by_kind(reported.findings).items():
        counted = kind is Judgement.KNOWN.facts.kind  # cells that fail no run
        assert f"{kind.title}  {'1 cause, 1 cell' if counted else first.brief or first.sentence}" in text


def test_each_golden_is_listed_below_its_writer():
    lines = drawn(print_cells, run_of(matrix_of())).splitlines()
    assert lines[:6] == [
        "0.11.0  built 2026-07-16", "  a: ok 0.9.0 to 0.12.0.1", "  b: ok 0.9.0 to 0.12.0.1",
        "0.9.2  built 2026-03-18", "  a: ok 0.9.0 to 0.12.0.1", "  b: ok 0.9.0 to 0.12.0.1",
    ]  # fmt: skip
    assert lines[6].startswith("ok agrees")


def test_a_reader_with_another_outcome_splits_a_range():
    cells = [
        one if one.reader.jaxlib != "0.10.1" else result(Verdict.CRASH, Judgement.BROKEN, case="t.a", reader="0.10.1")
        for one in reversed(matrix_of())
        if (one.case, one.writer.jaxlib) == ("t.a", "0.9.2")
    ]
    (row,) = (line for line in drawn(print_cells, run_of(cells)).splitlines() if line.startswith("  "))
    assert row == "  t.a: ok 0.9.0 to 0.10.0; crash! 0.10.1; ok 0.10.2 to 0.12.0.1"


@pytest.mark.parametrize("width", [40, 60])
def test_a_paragraph_is_wrapped_in_a_narrow_terminal(width):
    verdicts = itertools.cycle([{}, {"verdict": Verdict.CRASH, "judgement": Judgement.BROKEN}])
    cells = [result(reader=reader, **facts) for reader, facts in zip(READERS, verdicts, strict=False)]
    text = drawn(print_cells, run_of(cells), width=width)
    table = text[: text.index("ok agrees")]
    assert max(map(len, table.splitlines())) <= width
    assert table.split("test_f: ")[1].replace("\n     ", "").strip().count("; ") == len(READERS) - 1


def test_each_verdict_and_judgement_has_its_mark():
    cells = {
        "ok": result(reader="0.9.2"),
        "[ok]": result(judgement=Judgement.BONUS, reader="0.10.0", promised=False),
        "crash!": result(Verdict.CRASH, Judgement.BROKEN, reader="0.10.1", signal=11, stage=Stage.RUN),
        "[num]!": result(Verdict.NUMERICS, Judgement.BROKEN, reader="0.10.2", promised=False),
        "err k": result(Verdict.ERROR, Judgement.KNOWN, reader="0.11.0", stage=Stage.COMPILE),
        "[ref]": result(Verdict.REFUSED, Judgement.OUTSIDE, reader="0.11.1", promised=False),
        "time!": result(Verdict.TIMEOUT, Judgement.BROKEN, reader="0.11.2", stage=Stage.RUN),
        "-": result(Verdict.NOT_RUN, Judgement.INCOMPLETE, reader="0.12.0.1", stage=Stage.ENVIRONMENT),
        "ok~": result(reader="0.8.1", flaky="was crash on 2026-11-20"),
        "num!~": result(Verdict.NUMERICS, Judgement.BROKEN, reader="0.8.2", flaky="was pass on 2026-11-20"),
    }
    text = drawn(print_cells, run_of(list(cells.values())), width=300)
    row = next(line for line in text.splitlines() if line.startswith("  tests.test_a.test_f: "))
    printed = [part.rpartition(" ") for part in row.partition(": ")[2].split("; ")]
    assert {mark: reader for mark, _, reader in printed} == {mark: one.reader.jaxlib for mark, one in cells.items()}


def test_one_jaxlib_with_two_jax_makes_two_rows():
    plain = result(Verdict.CRASH, Judgement.BROKEN, writer="0.11.2", reader="0.12.0.1", stage=Stage.RUN)
    older = msgspec.structs.replace(
        result(writer="0.11.2", reader="0.12.0.1"),
        golden="tests.test_a.test_f/0.11.2-jax0.11.2-cpu",
        writer=msgspec.structs.replace(plain.writer, jax="0.11.2"),
    )
    text = drawn(print_cells, run_of([plain, older]))
    assert "0.11.2 (jax 0.12.0.1)  built 2026-09-17\n  tests.test_a.test_f: crash! 0.12.0.1\n" in text
    assert "0.11.2 (jax 0.11.2)  built 2026-09-17\n  tests.test_a.test_f: ok 0.12.0.1\n" in text
    rows = [line.plain.split("  ")[0] for line in table_lines(run_of([plain, older]), 100)]
    assert rows == ["writer", "0.11.2 (jax 0.12.0.1)", "0.11.2 (jax 0.11.2)"]


def test_the_platform_is_named_if_there_are_several():
    plain = result()
    text = drawn(print_cells, run_of([plain, msgspec.structs.replace(plain, platform="tpu")]))
    assert "\n  tests.test_a.test_f cpu: ok 0.10.2\n  tests.test_a.test_f tpu: ok 0.10.2\n" in text


def test_cases_are_shown_without_their_common_folders():
    results = [result(case=f"tests.deep.test_{name}.test_f") for name in ("a", "b")]
    assert "\n  test_a.test_f: " in drawn(print_cells, run_of(results))


def test_brackets_in_names_are_printed_and_not_read_as_markup():
    text = reported(
        [result(Verdict.CRASH, Judgement.BROKEN, case="t.test_f[bold]", stage=Stage.RUN, message="[red]no[/red] [/]")]
    )
    assert "test_f[bold]" in text
    assert "[red]no[/red] [/]" in text


@pytest.mark.parametrize(
    ("results", "planned", "expected"),
    [
        ([result()], 1, "KEPT: the 1 promised cell. 1 of 1 planned cells: 1 kept."),
        (
            [result(Verdict.CRASH, Judgement.BROKEN)],
            1,
            "BROKEN: 1 of 1 promised cells, 1 cause; only reader affected 0.10.2. 1 of 1 planned cells: 1 broken.",
        ),
        (
            [result(Verdict.COMPILED, platform="tpu", mode=Mode.COMPILE)],
            1,
            "KEPT: the 1 promised cell, 1 compiled only. 1 of 1 planned cells: 1 kept.",
        ),
        ([result()], 2, "INCOMPLETE: 1 of 2 planned cells has no result that counts. 1 of 2 planned cells: 1 kept."),
        ([], 0, "INCOMPLETE: nothing was planned: expected at least one cell. 0 of 0 planned cells: no cell."),
    ],
)
def test_the_last_two_lines_have_counts_and_exit_code(results, planned, expected):
    last = " ".join(reported(results, planned).strip().splitlines()[-2:])
    code = {"K": 0, "B": 1, "I": 3}[expected[0]]
    assert last == f"{expected} As of 2026-11-21, 12 s, exit code {code}."


def test_an_accepted_comparison_is_shown_with_its_reason():
    accepted = [Accepted("comparison: svd", "factors are unique up to signs", ("t.svd",))]
    shown = document([result()], summarize([result()], accepted=accepted))
    assert "accepted  comparison: svd (factors are unique up to signs): t.svd.\n" in drawn(print_report, shown)


def test_a_narrow_terminal_does_not_break_a_findings_lines():
    text = reported([result(Verdict.CRASH, Judgement.BROKEN, stage=Stage.RUN, message="m" * 90)], width=60)
    assert "m" * 90 in text, "a command that is copied must not be broken by the terminal's width"


def plan(*targets):
    goldens = [golden("a"), golden("b", "0.9.2")]
    return make_plan(
        goldens, load_calendar(), Windows(), Selection("0.12.0.1,0.9.2"), day("2026-11-21"), targets=targets
    )


def test_a_plan_is_reported_in_two_lines():
    assert drawn(print_plan, plan()).splitlines() == [
        "4 cells as of 2026-11-21: 2 goldens of 2 cases by jaxlib 0.9.2, 0.12.0.1, in 2 readers",
        "readers by build date: 0.9.2, 0.12.0.1",
    ]


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def logged(*timed: tuple[float, Result]) -> list[str]:
    """Return the lines of a log with these results, each at its second."""

    def follow(console):
        clock = Clock()
        with RunProgress(console, plan(), clock=clock) as progress:
            progress.note("environment of jaxlib 0.9.2 is ready")
            for clock.now, one in timed:
                progress.result(one)

    first, *lines = drawn(follow).splitlines()
    assert first == "  environment of jaxlib 0.9.2 is ready"
    return lines


def test_a_log_has_a_line_for_each_finished_reader():
    crash = result(Verdict.CRASH, Judgement.BROKEN, reader="0.9.2", message="died by signal 11 (SIGSEGV)\n..")
    assert logged((11, result(reader="0.9.2")), (12, result(reader="0.12.0.1", promised=False)), (13, crash)) == [
        "  broken: tests.test_a.test_f/0.9.2-cpu in jaxlib 0.9.2: died by signal 11 (SIGSEGV)",
        "promised cells done: 2 of 2, 1 cause · so far 1 broken; the cells that are left were not promised",
        "[3/4] jaxlib 0.9.2: 1 crash, 1 pass · promised cells done: 2 of 2, 1 cause · environments 2/2 · "
        "so far 1 broken · 0:00:01 to 0:00:01 left",
    ]


def test_a_log_names_the_jax_of_a_jaxlib_with_two_jax():
    readers = Selection("0.12.0,0.12.0-jax0.12.0,0.12.0.1")
    of_three = make_plan([golden("a")], load_calendar(), Windows(), readers, day("2026-11-21"))

    def follow(console):
        with RunProgress(console, of_three, clock=Clock()) as progress:
            for cell in of_three.cells:
                failed = result(Verdict.ERROR, Judgement.BROKEN, case="a", message=cell.reader.jax)
                progress.result(msgspec.structs.replace(failed, reader=cell.reader))

    lines = drawn(follow).splitlines()
    titles = {"jaxlib 0.12.0 (jax 0.12.0)", "jaxlib 0.12.0 (jax 0.12.0.1)", "jaxlib 0.12.0.1"}
    assert {line.partition("] ")[2].partition(": ")[0] for line in lines if line.startswith("[")} == titles
    assert {line.partition(" in ")[2].partition(": ")[0] for line in lines if line.startswith("  broken")} <= titles


def test_the_log_says_done_only_after_the_cells_of_deployment_targets():
    serving = DeploymentTarget(name="serving", jaxlib="0.9.2", cases=("a",))
    owed = result(Verdict.REFUSED, Judgement.OWED, case="a", writer="0.12.0.1", reader="0.9.2", promised=False)
    owed = msgspec.structs.replace(owed, deployed=("serving",))

    def follow(console):
        with RunProgress(console, plan(serving), clock=Clock()) as progress:
            for one in (result(reader="0.9.2"), result(reader="0.12.0.1"), owed):
                progress.result(one)

    *_, line, after = drawn(follow).splitlines()
    assert line == (
        "promised cells done: 2 of 2 · so far 1 owed; the cells that are left are neither promised nor of a deployment "
        "target"
    )
    assert after.startswith("[3/4]"), "not before the target's cell has ended"


def test_a_log_has_a_line_at_least_every_40_seconds():
    assert logged((20, result(reader="0.9.2")), (40, result(reader="0.12.0.1", promised=False))) == [
        "[2/4] · promised cells done: 1 of 2 · environments 2/2"
    ]


def test_a_promised_cell_that_was_not_run_is_not_done():
    not_run = result(Verdict.NOT_RUN, reader="0.9.2")
    assert logged((40, not_run), (80, result(reader="0.9.2")))[-1].startswith(
        "[2/4] jaxlib 0.9.2: 1 not_run, 1 pass · promised cells done: 1 of 2"
    )


def test_progress_includes_promised_cells_that_a_runtime_refused():
    calendar, reader = load_calendar(), Selection("pjrt==0.12.0.1")
    one_cell = make_plan([golden("t.a")], calendar, Windows(), reader, day("2026-11-21"))
    (cell,) = one_cell.cells
    refused = result(Verdict.REFUSED, case="t.a", writer="0.12.0.1", promised=False)
    refused = msgspec.structs.replace(refused, golden=cell.golden.id, reader=cell.reader)

    def follow(console):
        with RunProgress(console, one_cell, clock=Clock()) as progress:
            progress.result(refused)

    assert cell.promised, "the promise of a runtime does not depend on what it refuses, until it has run"
    assert "[1/1]" in drawn(follow)
    assert "promised cells done: 1 of 1, 1 of them outside" in drawn(follow), "as the headline counts it"


def test_a_flaky_pass_is_counted_in_the_log():
    (line,) = logged((40, result(reader="0.9.2", flaky="was crash on 2026-11-20")))
    assert " · so far 1 flaky" in line


def failing(*messages: str) -> list[str]:
    """Return the lines of a log in which cells fail with these messages."""
    failed = {"reader": "0.12.0.1", "verdict": Verdict.ERROR, "judgement": Judgement.BROKEN}
    cells = [result(case=f"t.{number}", message=message, **failed) for number, message in enumerate(messages)]
    return [line for line in logged(*((0, cell) for cell in cells)) if line.startswith("  ")]


def test_only_the_first_of_similar_failures_is_logged():
    assert failing("out of 3", "other", "out of 4") == [
        "  broken: t.0/0.9.2-cpu in jaxlib 0.12.0.1: out of 3",
        "  broken: t.1/0.9.2-cpu in jaxlib 0.12.0.1: other",
    ]


def test_only_the_first_20_kinds_of_failure_are_logged():
    lines = failing(*(f"no {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"))
    assert lines[20:] == ["  further failures are only counted here; the report at the end lists them"]


def test_progress_is_a_bar_on_a_terminal_and_nothing_if_quiet():
    file, clock = io.StringIO(), Clock()
    screen = Console(file=file, force_terminal=True, force_interactive=True, width=80, _environ={"TERM": "xterm"})
    with RunProgress(screen, plan(), clock=clock) as progress:
        for reader in ("0.9.2", "0.12.0.1"):
            clock.now += 1
            progress.environment(release(reader))
            progress.result(result(Verdict.CRASH, Judgement.BROKEN, reader=reader))
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue()).replace("\r", "\n").splitlines()
    assert any("environments 0/2 · promised done: 0 of 2 " in line for line in lines)
    last = [line for line in lines if "2/4" in line][-1]
    assert last.startswith("promised done: 2 of 2, 1 cause ")
    assert last.rstrip().endswith(" 2/4 0:00:02"), "no time left before some cells have ended"
    assert len(last) <= 80

    def quiet(console):
        with RunProgress(console, plan(), quiet=True) as progress:
            progress.note("something")
            progress.result(result(reader="0.9.2"))

    assert drawn(quiet) == ""


# --- the end of a run: one screen -------------------------------------------------------------------------------------


def ended(width=80, folder=RESULTS, **options) -> str:
    """Return the last screen of the example run, with 67 of 1,350 promises broken by three causes."""
    return drawn(lambda console: print_report(console, broken_document(folder), **options), width=width)


@pytest.mark.parametrize("width", [80, 140])
def test_the_end_of_a_run_is_one_screen(width):
    lines = ended(width).strip().splitlines()
    assert len(lines) <= 45
    commands = [line for line in lines if re.search("jaxexport (matrix --cases|explain --case)", line)]
    assert all(len(line) <= width for line in lines if line not in commands)


def test_the_end_of_a_run_names_explain_for_a_failing_cell():
    lines = ended(130).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("  next "))
    assert lines[place + 1].split()[:4] == ["jaxexport", "explain", "--case", "tests.models.test_cholesky"]
    assert "jaxexport explain" in ended(130, full=True)
    missing = [result(), result(Verdict.NOT_RUN, Judgement.INCOMPLETE, writer="0.10.2", reader="0.11.1")]
    assert "explain" not in drawn(print_report, document(missing))


def test_a_large_run_ends_with_one_screen():
    assert len(drawn(print_report, document(*large_run(5_000)), width=80).strip().splitlines()) <= 44


@pytest.mark.parametrize("width", [40, 80, 140])
def test_no_word_is_broken_at_any_width(width):
    # In a wide terminal names follow a count, which then ends with another sign.
    narrow, wide = ({word.rstrip(":;") for word in ended(columns).split()} for columns in (width, 10_000))
    assert narrow - {"..."} <= wide


def test_the_end_of_a_run_names_its_folder():
    assert "jaxexport report 'out dir' --html report.html  # or --full" in ended(130, folder=Path("out dir"))


def test_the_docs_show_the_printed_screen():
    """The screen has the table of writers, the causes with what to do, what to run next, and the counts."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "terminal.md"
    blocks = map(textwrap.dedent, re.findall(r"(?:^    .*\n|^\n)+", page.read_text(encoding="utf-8"), re.MULTILINE))
    shown = {text.partition("\n")[0]: text for text in map(str.strip, blocks)}
    printed = "\n".join(line.rstrip() for line in ended().strip().splitlines())
    assert shown[printed.partition("\n")[0]] == printed, f"copy this screen into {page}"


def test_the_newest_writer_is_the_first_row():
    results = [result(writer=writer, reader="0.12.0.1") for writer in ("0.10.1", "0.9.2", "0.8.3")]
    rows = [line.plain.split()[0] for line in table_lines(run_of(results), 100)]
    assert rows == ["writer", "0.10.1", "0.9.2", "0.8.3"]


def test_many_causes_are_counted_and_findings_of_other_kinds_shown():
    failed = [
        result(Verdict.ERROR, Judgement.BROKEN, case=f"t.{letter}", message=f"no {letter}") for letter in "abcdef"
    ]
    missing = result(Verdict.NOT_RUN, Judgement.INCOMPLETE, case="t.m", message="no disk", stage=Stage.ENVIRONMENT)
    text = reported([*failed, missing])
    assert text.count("BROKEN PROMISE  t.") == 2
    assert "BROKEN PROMISE  and 4 causes, 4 cells: c in 0.10.2, d in 0.10.2, e in 0.10.2 and 1 more\n" in text
    assert "INCOMPLETE  t.m was not run" in text


def owed_and_crashed(letters: str, *crashed: str) -> list[Result]:
    facts = {"reader": "0.12.0.1", "promised": False}
    owed = [result(Verdict.ERROR, Judgement.OWED, case=f"t.{name}", message=f"no {name}", **facts) for name in letters]
    broken = [result(Verdict.CRASH, Judgement.BROKEN, case=f"t.{name}", message=f"signal {name}") for name in crashed]
    return [*owed, *broken]


@pytest.mark.parametrize(("letters", "more"), [("abcde", ""), ("abcdefgh", "OWED  and 3 causes, 3 cells: f in ")])
def test_the_first_causes_of_owed_cells_are_named(letters, more):
    text = reported(owed_and_crashed(letters, "z"))
    assert [f"\n\nOWED  t.{name} failed" in text for name in "abc"] == [True, True, False]
    assert [f"OWED  and t.{name} failed" in text for name in "bcdef"] == [False, True, True, True, False]
    assert more in text


@pytest.mark.parametrize(("broken", "shown"), [("y", "ya"), ("xy", "xya"), ("wxyz", "wxa")])
def test_the_short_report_shows_three_findings_in_full(broken, shown):
    lines = reported(owed_and_crashed("ab", *broken)).splitlines()
    evidence = [line.split()[-1] for line in lines if line.startswith("  message")]
    assert len(evidence) == 3 or broken == "y"
    assert "".join(evidence)[: len(shown)] == shown


@pytest.mark.parametrize("width", [40, 80])
def test_findings_that_are_only_counted_have_their_kind_named(width):
    moved = msgspec.structs.replace(
        result(Verdict.NUMERICS, Judgement.BROKEN, case="t.m"), looks_like="rounding: the last bits"
    )
    text = reported([*owed_and_crashed("a", "x", "y"), moved], width=width)
    assert "BROKEN PROMISE and 1 cause, 1 cell: y in 0.10.2 NUMBERS MOVED" in " ".join(text.split())


def listed(case: str, **facts) -> KnownFailure:
    terms = ((case,), ("*",), ("*",), "crash", "run", "signal 11", "r", "me", "#7")
    return KnownFailure(*terms, added=day("2026-10-01"), **facts)


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ([{"expires": day("2026-12-01")}], "#7, until 2026-12-01"),
        ([{"expires": day("2026-12-20")}, {"expires": day("2026-12-01")}], "#7, the first until 2026-12-01"),
        ([{"expires": day("2026-12-01")}, {"expires": day("2026-12-01")}], "#7, until 2026-12-01"),
        (
            [{"expires": day("2026-11-15")}, {"expires": day("2026-12-15")}],
            "#7, the first expired on 2026-11-15",
        ),
        ([{"permanent": True, "approver": "boss"}], "#7, permanent"),
    ],
    ids=["one entry", "two entries", "the same day", "one has expired", "permanent"],
)
def test_known_failures_are_named_with_issue_and_last_day(facts, named):
    cells = [
        result(Verdict.CRASH, Judgement.KNOWN, case=f"t.{name}", stage=Stage.RUN, message="signal 11")
        for name, _ in zip("ab", facts, strict=False)
    ]
    policy = Policy(known_failures=tuple(listed(f"t.{name}", **own) for name, own in zip("ab", facts, strict=False)))
    text = drawn(print_report, document([result(), *cells], summarize([result(), *cells], policy=policy)), width=80)
    counts = "1 cause, 2 cells: t.a and 1 other case" if len(cells) > 1 else "1 cause, 1 cell: t.a"
    line = f"known failure {counts} in 0.10.2 ({named}) "
    assert line in " ".join(text.split())
    if len(facts) > 1:
        days = named.partition(", ")[2]
        assert f"2 known failures{' ' if days.startswith('until') else ', '}{days}" in " ".join(text.split())


def test_failures_outside_the_window_are_named_with_their_cases():
    facts = {"stage": Stage.RUN, "message": "signal 11", "promised": False, "reader": "0.8.1"}
    outside = [result(Verdict.CRASH, Judgement.OUTSIDE, case=f"t.{name}", **facts) for name in "ab"]
    refused = result(Verdict.REFUSED, Judgement.OUTSIDE, case="t.c", message="too new", promised=False, reader="0.8.1")
    text = reported([result(), *outside, refused])
    counts = "1 cause, 2 of 3 cells: t.a and 1 other case in 0.8.1; the others were refused, as expected\n"
    assert f"outside the window  {counts}" in text


def test_a_single_failing_case_is_named_and_then_its_known_issue():
    facts = {"message": "too new", "promised": False, "upstream": "stablehlo-too-new"}
    failed = [result(Verdict.ERROR, Judgement.OUTSIDE, case=f"t.{name}", **facts) for name in "ab"]
    counts = "outside the window  1 cause, 1 cell: a in 0.10.2 (stablehlo-too-new)\n"
    assert counts in reported([result(case="t.c"), failed[0]])
    assert "1 cause, 2 cells: stablehlo-too-new in 0.10.2\n" in reported([result(case="t.c"), *failed])


def test_a_writer_with_broken_cells_is_shown_among_many_writers():
    results = [result(writer=writer, reader="0.12.0.1") for writer in load_calendar().versions()[-14:]]
    results[3] = result(Verdict.CRASH, Judgement.BROKEN, writer=results[3].writer.jaxlib, reader="0.12.0.1")
    rows = [row.plain for row in table_lines(run_of(results), 80)]
    assert len(rows) == 12
    assert any(row.startswith(results[3].writer.jaxlib) for row in rows)
    assert rows[-1].startswith("and 4 more writers, none with a broken cell: ")


def test_the_full_report_has_every_cell_and_its_evidence():
    text = ended(140, full=True)
    assert text.count("crash! 0.6.2 to 0.8.1") == text.count("crash! 0.9.1, 0.9.2") == 8
    assert "(180 days)" in text
    assert "jaxexport report --html report.html\n" in text


def test_counts_have_the_colours_of_their_judgements():
    cells = [
        result(case="t.a"),
        result(Verdict.CRASH, Judgement.BROKEN, case="t.b", reader="0.9.2"),
        result(Verdict.CRASH, Judgement.OWED, case="t.b", reader="0.12.0.1", promised=False),
    ]
    spans = {
        line.plain[span.start : span.end]: span.style for line in table_lines(run_of(cells), 100) for span in line.spans
    }
    assert {text: spans[text] for text in ("ok", "1 broken", "1 owed")} == {
        "ok": Judgement.KEPT.facts.style,
        "1 broken": Judgement.BROKEN.facts.style,
        "1 owed": Judgement.OWED.facts.style,
    }


def test_each_cause_shown_has_its_advice_or_the_command_that_gives_it():
    failed = [result(Verdict.ERROR, Judgement.BROKEN, case=f"t.{letter}", message=f"no {letter}") for letter in "ab"]
    worst, second = reported(failed).split("BROKEN PROMISE  ")[1:]
    assert "\n  to do      " in worst
    assert "\n  explain    jaxexport explain --case t.b --writer 0.9.2 --reader 0.10.2\n" in second


def test_a_second_cause_of_cells_not_run_refers_to_the_advice_above():
    lacking = [
        result(
            Verdict.NOT_RUN, Judgement.INCOMPLETE, reader=reader, stage=Stage.ENVIRONMENT, message=f"no {missing}"
        )
        for reader, missing in (("0.10.2", "jax"), ("0.11.0", "wheel"))
    ]  # fmt: skip
    worst, second = reported(lacking).split("INCOMPLETE  ")[1:]
    assert "\n  to do      Fix what the message names, then run the same `jaxexport matrix` command" in worst
    assert "\n  to do      as above\n" in second


def test_the_second_cause_has_advice_on_calls_that_only_jax_runs():
    call = {"custom_calls": ("lapack_spotrf_ffi",), "stage": Stage.DESERIALIZE, "message": "convert it"}
    plain = result(Verdict.REFUSED, Judgement.OWED, case="t.b", deployed=("robot",), **call)
    in_iree = of_runtime(plain, "iree==3.13.0", "2026-10-19", promised=False)
    worst = result(Verdict.ERROR, Judgement.OWED, case="t.a", deployed=("robot",), promised=False)
    second = reported([worst, in_iree]).split("OWED  ")[2]
    assert "\n  to do      Only jax registers lapack_spotrf_ffi; compute with operations that need no LAPACK." in second

"""The commands `jaxexport report` and `jaxexport judge --baseline`: their files, output and exit codes."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from click.testing import CliRunner
from click.testing import Result as Ended
from commands import finished
from making import result

from export_core.base.errors import ExportCompatError
from export_core.cli.app import jaxexport
from export_core.judge import Judgement
from export_core.judge.gate import RunIdentity, recorded_policy
from export_core.matrix import Verdict
from export_core.policy import load_policy
from export_core.readers.worker.protocol import Stage
from export_core.report.document import ReportError
from export_core.run.errors import IncompleteResults, RunError
from export_core.run.plan_record import policy_hash
from export_core.run.results import read_run

ROOT = Path(__file__).parents[2]
CRASH = result(Verdict.CRASH, Judgement.BROKEN, case="t.b", stage=Stage.RUN, message="died by signal 11", signal=11)


@pytest.fixture
def command(cwd) -> Callable[..., Ended]:
    """A function that runs `jaxexport` in a folder with two runs: `new` broke a promise that `old` kept."""
    finished(cwd / "new", result(case="t.a"), CRASH)
    finished(cwd / "old", result(case="t.a"), result(case="t.b"))
    return lambda *words: CliRunner().invoke(jaxexport, words)


def refused(ended: Ended) -> str:
    """Return the error message of a command that ended with 3 for incomplete results, or with 2 otherwise."""
    assert isinstance(ended.exception, ExportCompatError), ended.output
    assert ended.exception.exit_code == (3 if isinstance(ended.exception, IncompleteResults) else 2)
    return str(ended.exception)


def test_report_prints_a_broken_run_and_exits_with_0(command):
    ended = command("report", "new")
    assert "BROKEN PROMISE" in ended.stdout
    assert "exit code 1." in ended.stdout
    assert ended.exit_code == 0
    assert command("judge", "new").exit_code == 1


@pytest.mark.parametrize("words", [("report", "new"), ("judge", "new"), ("report", "new", "--trend")], ids=" ".join)
def test_results_in_a_folder_above_are_named(words, command, cwd, monkeypatch):
    (cwd / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(cwd / "src" / "deep")
    text = refused(command(*words))
    assert f"found none in {cwd}/src/deep/new. There is a run in {cwd}/new: run this command in {cwd}." in text
    assert "Run `jaxexport matrix` first" in refused(command("report", "other"))


def test_report_writes_all_formats_and_makes_their_folders(command):
    ended = command("report", "new", "--html", "out/r.html", "--markdown", "out/r.md", "--junit", "out/r.xml")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert [line.split(":")[0] for line in ended.stderr.splitlines()] == ["out/r.html", "out/r.md", "out/r.xml"]
    assert Path("out/r.html").read_text().startswith("<!DOCTYPE html>")
    assert Path("out/r.md").read_text().startswith("### ❌ BROKEN")
    assert Xml.parse("out/r.xml").getroot().tag == "testsuites"
    assert len(list(Path("out").iterdir())) == 3


@pytest.mark.parametrize(
    ("words", "stream"),
    [
        (("--html", "r.html"), "stdout"),
        (("--badge", "b.svg"), "stdout"),
        (("--markdown", "-"), "stderr"),
        (("--annotations",), "stderr"),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_option_full_prints_every_cell_even_if_reports_go_to_files(words, stream, command):
    ended = command("report", "new", "--full", *words)
    for name in ("stdout", "stderr"):
        assert ("a: ok 0.10.2\n" in getattr(ended, name)) is (name == stream)
    assert command("report", "new", *words).stdout == ("" if stream == "stdout" else ended.stdout)


@pytest.mark.parametrize(
    "words",
    [
        *(("--full",), ("--open",), ("--html", "r.html"), ("--badge", "b.svg"), ("--annotations",)),
        *(("--baseline", "old"), ("--policy", "p.yaml"), ("--as-of", "2026-11-21"), ("--fail-on", "outside")),
    ],
    ids=" ".join,
)
def test_trend_refuses_options_that_it_would_ignore(words, command):
    ended = command("report", "new", *words, "--trend")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert f"--trend neither judges a run nor writes a file: it cannot be combined with {words[0]}." in ended.stderr
    assert not Path("r.html").exists()


@pytest.mark.parametrize(
    ("file", "address"), [("r.html", "golden/"), ("out/r.html", "../golden/"), ("../r.html", "work/golden/"), ("-", "")]
)
def test_links_to_goldens_are_relative_to_the_pages_folder(file, address, command, cwd, monkeypatch):
    finished(cwd / "work" / "run", result(case="t.a"), identity=RunIdentity(goldens="golden"))
    (cwd / "work" / "golden").mkdir()
    monkeypatch.chdir(cwd / "work")
    ended = command("report", "run", "--html", file)
    page = ended.stdout if file == "-" else Path(file).read_text()
    assert f'"goldens":"golden","files":"{address}"' in page.replace('": "', '":"').replace(', "', ',"')


def test_sarif_goes_to_a_file_and_annotations_to_stdout(command):
    ended = command("report", "new", "--sarif", "out.sarif", "--annotations")
    assert ended.stdout.startswith("::error title=BROKEN%3A 1 of 2 promised cells%2C 1 cause::Only reader affected")
    assert json.loads(Path("out.sarif").read_bytes())["version"] == "2.1.0"


def test_the_map_is_drawn_as_svg(command):
    assert command("report", "new", "--svg", "map.svg").exit_code == 0
    assert "BROKEN: 1 of 2 promised cells" in Path("map.svg").read_text()


def test_a_badge_is_svg_or_json_for_shields_io(command):
    picture = Xml.fromstring(command("report", "new", "--badge", "-").stdout)
    assert "broken: 1 of 2 promised cells" in picture.get("aria-label", "")
    written = command("report", "old", "--badge", "badge.json").stderr
    assert f"badge.json: {len(Path('badge.json').read_bytes())} bytes\n" in written
    assert json.loads(Path("badge.json").read_bytes())["message"] == "kept: all 2 promised cells"


def test_a_report_with_a_baseline_shows_what_regressed(command):
    assert "1 regressed, 0 fixed" in command("report", "new", "--baseline", "old").stdout
    assert "<b>REGRESSED</b>" in command("report", "new", "--baseline", "old", "--markdown", "-").stdout


def test_one_format_may_go_to_standard_output(command):
    assert command("report", "new", "--markdown", "-").stdout.startswith("### ❌ BROKEN")
    assert Xml.fromstring(command("report", "new", "--junit", "-").stdout).tag == "testsuites"


def test_judge_prints_the_command_that_reports_the_same_run(command):
    Path("other.yaml").write_text("windows: {backward: 1, forward: 1}\n")
    judged = command("judge", "new", "--policy", "other.yaml", "--as-of", "2026-11-20").stdout
    advice = "jaxexport report new --policy other.yaml --as-of 2026-11-20 --html report.html"
    assert advice in judged
    words = advice.split()[1:-2]
    assert command(*words).stdout.splitlines()[-2:] == judged.splitlines()[-2:]
    assert "BROKEN:" not in judged
    assert "BROKEN:" in command("report", "new").stdout
    other = policy_hash(recorded_policy(load_policy(Path("other.yaml"))))[:12]
    heads = [command(*named, "--markdown", "-").stdout for named in (words, ("report", "new"))]
    assert [f"policy {other}" in head for head in heads] == [True, False], "the head names the policy that judged"


def test_judge_prints_a_command_without_the_policy_of_the_run(command):
    assert "jaxexport report new --html report.html" in command("judge", "new").stdout


def test_a_report_that_cannot_be_written_changes_no_file(command):
    Path("out").write_text("before")
    assert "out/r.html: cannot write there" in refused(command("report", "new", "--html", "out/r.html"))
    assert Path("out").read_text() == "before"


def test_a_broken_run_exits_1_even_if_its_report_fails(command, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise KeyError("a cell")

    monkeypatch.setattr("export_core.report.terminal.print_report", fails)
    ended = command("judge", "new")
    assert ended.exit_code == 1
    assert "unexpected KeyError: a report is missing. " in ended.stderr
    assert ended.stderr.endswith("The run is judged, and the exit code is its own: 1.\n")
    assert isinstance(command("judge", "old").exception, KeyError), "a kept run is not shown as one that was reported"


def test_a_kept_run_exits_3_if_its_report_cannot_be_written(command, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise ReportError("r.html: cannot write there: No space left on device.")

    monkeypatch.setattr("export_core.report.terminal.print_report", fails)
    ended = command("judge", "old")
    assert (ended.exit_code, read_run(Path("old")).summary.exit_code) == (3, 0)
    assert ended.stderr.endswith("kept: the exit code is 3, not 0, since a report is missing.\n")


@pytest.mark.parametrize("at", ["folder", "file/r.html", "closed/sub/r.html"])
def test_a_matrix_refuses_a_report_where_it_cannot_write(command, at, monkeypatch):
    Path("folder").mkdir()
    Path("file").touch()
    Path("closed").mkdir()
    may = os.access
    # By its name: root may write into any folder.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed" and may(path, mode))
    assert f"{at}: cannot write there" in refused(command("matrix", "--html", at))
    assert not Path(".jaxexport").exists(), "no cell has run"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--html", "x", "--svg", "x"), "expected a different file for each format"),
        (("--junit", "x", "--markdown", "./x"), "expected a different file for each format"),
        (("--junit", "-", "--html", "-"), "only one format can be written to it"),
        (("--annotations", "--sarif", "-"), "only one format can be written to it"),
    ],
)
def test_two_formats_in_one_file_are_refused(command, words, message):
    ended = command("report", "new", *words)
    assert (ended.exit_code, message in ended.stderr, Path("x").exists()) == (2, True, False)


def test_report_writes_into_a_pipe_without_replacing_it(command):
    os.mkfifo("pipe")
    read: list[bytes] = []
    reading = threading.Thread(target=lambda: read.append(Path("pipe").read_bytes()))
    reading.start()
    assert command("report", "new", "--markdown", "pipe").exit_code == 0
    reading.join(10)
    assert read[0].startswith("### ❌ BROKEN".encode())
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda new: (new / "summary.json").unlink(),
            "a run that has not finished, made with goldens that are missing or damaged now",
        ),
        (lambda new: (new / "summary.json").write_text("{}"), "summary.json: not a summary"),
        (lambda new: (new / "results.jsonl").write_bytes(b""), "each of 2 planned cells, found none for 2"),
        (lambda new: (new / "results.jsonl").write_bytes(b"no\n"), "results.jsonl:1: not a result"),
    ],
)
def test_an_unfinished_or_damaged_run_is_not_reported(damage, message, command):
    damage(Path("new"))
    assert message in refused(command("report", "new", "--html", "r.html"))
    assert not Path("r.html").exists()


def test_commands_that_read_a_run_exit_with_3_if_a_result_is_lost(command):
    Path("new/results.jsonl").write_bytes(b"")
    for words in (("report", "new"), ("judge", "new"), ("explain", "--case", "t.b", "--results", "new")):
        assert isinstance(command(*words).exception, IncompleteResults)
    assert IncompleteResults.exit_code == 3
    assert "Exit code 3: it was not, since a planned cell" in " ".join(command("report", "--help").stdout.split())
    of_every_command = (ROOT / "docs/reference/verdicts.md").read_text().partition("Of every command:")[2]
    assert "| `3` | A planned cell of the finished run that it reads has no result, or two. Cells" in of_every_command


def test_commands_that_read_an_unfinished_run_exit_with_2(command):
    Path("new/summary.json").unlink()
    for words in (("report", "new"), ("judge", "new"), ("explain", "--case", "t.b", "--results", "new")):
        error = command(*words).exception
        assert isinstance(error, RunError)
        assert error.exit_code == 2
    of_every_command = (ROOT / "docs/reference/verdicts.md").read_text().partition("Of every command:")[2]
    assert "| `2` | Wrong usage or bad input, also an unfinished run: nothing was done. |" in of_every_command


def test_a_baseline_does_not_change_the_exit_code(command):
    ended = command("judge", "new", "--baseline", "old")
    assert ended.exit_code == 1
    assert "REGRESSED  t.b, written by" in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith(
        "Since the baseline (as of 2026-11-21, 2 cells): 1 regressed, 0 fixed"
    )
    back = command("judge", "old", "--baseline", "new")
    assert (back.exit_code, "fixed  t.b, written by" in back.stdout) == (0, True)


def test_cells_that_are_not_in_the_baseline_are_counted_in_one_line(command):
    names = ["t.b", "t.c", "t.d"]
    added = [
        result(case=name, reader=reader) for name, reader in zip(names, ("0.9.2", "0.10.0", "0.11.0"), strict=True)
    ]
    added[0] = msgspec.structs.replace(added[0], verdict=Verdict.COMPILED)
    finished(Path("then"), result())
    finished(Path("now"), result(), *added)
    lines = command("judge", "now", "--baseline", "then").stdout.splitlines()
    (line,) = [number for number, text in enumerate(lines) if text.startswith("new  ")]
    assert lines[line] == "new  3 cells: --full shows them"
    assert line < next(number for number, text in enumerate(lines) if text.startswith("KEPT: "))
    full = command("judge", "now", "--baseline", "then", "--full").stdout
    assert (full.count("\nnew  "), "not in the baseline" in full) == (2, True)


def test_a_regression_outside_the_window_breaks_no_promise(command):
    was = result(case="t.c", writer="0.6.2", judgement=Judgement.BONUS, promised=False)
    finished(Path("then"), was, result())
    finished(Path("now"), result(), msgspec.structs.replace(was, verdict=Verdict.CRASH, judgement=Judgement.OUTSIDE))
    ended = command("judge", "now", "--baseline", "then")
    assert (ended.exit_code, "REGRESSED" in ended.stdout) == (0, True)


def test_judge_with_json_prints_the_comparison_with_a_baseline(command):
    ended = command("judge", "new", "--baseline", "old", "--json")
    assert ended.exit_code == 1
    assert json.loads(ended.stdout)["counts"]["regressed"] == 1
    alone = command("judge", "new", "--json")
    assert (alone.exit_code, "it needs --baseline OLD" in alone.stderr) == (2, True)


@pytest.mark.parametrize("old", ["nowhere", "new", "empty"])
def test_an_unusable_baseline_is_bad_input(old, command):
    finished(Path("empty"), planned=0)
    assert "expected" in refused(command("judge", "old" if old == "empty" else "new", "--baseline", old))


def test_the_page_is_opened_in_a_browser(command, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert command("report", "new", "--open").exit_code == 0
    assert command("report", "new", "--open", "--html", "page.html").exit_code == 0
    pages = Path("new/report.html"), Path("page.html")
    assert opened == [page.resolve().as_uri() for page in pages]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert "--open needs the page in a file" in command("report", "new", "--open", "--html", "-").stderr
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    done = command("report", "new", "--open")
    assert done.stderr.splitlines()[-1] == "new/report.html: found no browser that opens it. Open the file yourself."
    assert done.exit_code == 0


def test_report_and_judge_take_the_folder_as_argument_or_option(command):
    assert command("report", "--results", "new").stdout == command("report", "new").stdout
    assert command("judge", "--results", "new").stdout == command("judge", "new").stdout
    assert "which means the same" in command("report", "new", "--results", "new").stderr


@pytest.mark.parametrize("words", [["--json"], ["--cases", "t.a"]], ids=" ".join)
def test_json_and_cases_can_only_be_used_with_trend(command, words):
    ended = command("report", "new", *words)
    assert (ended.exit_code, f"{words[0]} can only be used with --trend" in ended.stderr) == (2, True)


def test_matrix_writes_reports_and_exits_as_judged(command, monkeypatch):
    monkeypatch.setattr("export_core.run.session.run_matrix", lambda *_, **__: read_run(Path("new")))
    ended = command("matrix", "t.*", "--html", "page.html", "--junit", "-", "--quiet")
    assert (ended.exit_code, Xml.fromstring(ended.stdout).tag) == (1, "testsuites")
    assert "BROKEN: 1 of 2 promised cells" in ended.stderr
    assert "--html" not in ended.stderr  # no advice to write the page that was just written
    assert "jaxexport report new --full  # every cell" in ended.stderr
    command("report", "new", "--html", "later.html")
    assert Path("page.html").read_bytes() == Path("later.html").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dry-run", "--html", "x"], "--html reports a run: it cannot be combined with --dry-run."),
        (["--json"], "--json prints the plan: it needs --dry-run."),
        (["--html", "x", "--svg", "x"], "expected a different file for each format"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_exclude_each_other_run_nothing(command, words, message):
    ended = command("matrix", *words)
    assert (ended.exit_code, message in ended.stderr) == (2, True)

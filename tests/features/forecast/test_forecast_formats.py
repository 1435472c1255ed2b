"""The forecast for people: text, Markdown and a page."""

import datetime
import json
import re
from pathlib import Path
from xml.etree import ElementTree as Xml

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner
from making import day, golden, manifest, write_golden

from export_core.cli.app import jaxexport
from export_core.features.forecast.forecast import Event, Forecast, Kind, forecast
from export_core.features.forecast.forecast_text import forecast_lines, forecast_markdown, forecast_page
from export_core.goldens import GoldenError, GoldenStore
from export_core.policy import KnownFailure, Policy
from export_core.releases import load_calendar
from export_core.report.document import ReportError
from tools.schemas import schema

TODAY = day("2026-11-21")
GOLDENS = [golden("a", "0.9.2"), golden("a", "0.11.0"), golden("a", "0.12.0.1")]


def made(when: datetime.date = TODAY) -> Forecast:
    return forecast(GOLDENS, Policy(), load_calendar(), when, 200, ["0.11.0"])


def figure() -> Xml.Element:
    """The drawing of the page."""
    return Xml.fromstring(re.search("<svg class=.drawing windows.*?</svg>", forecast_page(made()))[0])


def run(*words: str):
    return CliRunner().invoke(jaxexport, ["forecast", *words])


@pytest.fixture
def project(tmp_path) -> Path:
    for jaxlib in ("0.9.2", "0.11.0", "0.12.0.1"):
        write_golden(GoldenStore(tmp_path / "golden"), manifest("t.test_f", jaxlib))
    return tmp_path


def test_json_follows_its_schema_and_is_all_of_the_forecast(project):
    done = run("--json", "--as-of", "2026-11-21", "--deployed", "0.11.0")
    said = json.loads(done.stdout)
    checker = jsonschema.Draft202012Validator(schema("forecast"), format_checker=jsonschema.FormatChecker())
    checker.validate(said)
    assert msgspec.convert(said, Forecast).deployed[0].jaxlib == "0.11.0"
    assert said["days"][0]["day"] == "2026-12-15"


def test_markdown_is_one_table_whatever_a_text_holds():
    found = made()
    event = Event(Kind.EXPIRES, "x", "a | b <script>\nc")
    changed = msgspec.structs.replace(found, days=(msgspec.structs.replace(found.days[0], events=(event,)),))
    rows = [line for line in forecast_markdown(changed).splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
    assert "**expires** a \\| b \\<script\\> c" in rows[-1]


def test_nothing_ahead_is_said(project):
    done = run("--as-of", "2026-11-21", "--days", "3")
    assert done.stdout.splitlines()[-1] == "nothing happens until 2026-11-24"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "--markdown"], "--json cannot be combined with --markdown"),
        (["--days", "-1"], "Invalid value for '--days'"),
    ],
)
def test_what_cannot_be_asked_for_is_a_usage_error(project, words, said):
    done = run(*words)
    assert done.exit_code == 2
    assert said in done.output


def test_no_goldens_and_a_file_that_cannot_be_written_are_errors(project):
    for words, error, said in (
        (["--goldens", "none"], GoldenError, "none: expected goldens, found none"),
        (["--html", "golden/t.test_f/0.9.2-cpu/golden.yaml/a.html"], ReportError, "a.html: cannot write there: "),
    ):
        with pytest.raises(error, match=said):
            raise run(*words).exception


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_says_first_what_leaves_first(project):
    assert run("--as-of", "2026-11-21", "--html", "forecast.html").exit_code == 0
    page = (project / "forecast.html").read_text()
    assert "<h1>Next to leave: the 1 golden by 0.11.0, in 53 days (2027-01-13)</h1>" in page


def test_text_markdown_and_page_say_the_same_of_each_day():
    # 0.9.2 has left its window, and is not the last of its case.
    ahead = forecast(GOLDENS, Policy(), load_calendar(), day("2027-06-01"), 30)
    assert len(ahead.prunable) > 0
    for written in ("\n".join(forecast_lines(ahead)), forecast_markdown(ahead), forecast_page(ahead)):
        assert "goldens may be pruned (jaxexport goldens prune)" in written
        assert "no published reader" in written
        assert "no golden" in written
    now = made()
    for written in ("\n".join(forecast_lines(now)), forecast_markdown(now), forecast_page(now)):
        assert "0.10.2 (1 case), 0.11.1 (1 case)" in written
        assert "2 goldens by 0.11.0, 0.12.0.1" in written


def test_a_bar_ends_on_the_day_on_which_its_goldens_leave():
    wide = figure()
    bars = {bar.find("title").text: bar.find("rect") for bar in wide.iter("g") if bar.find("rect") is not None}
    ends = {title.split(",")[0]: float(bar.get("x")) + float(bar.get("width")) for title, bar in bars.items()}
    today = float(next(line for line in wide.iter("line") if line.get("class") == "today").get("x1"))
    assert ends["writer 0.9.2"] < today < ends["writer 0.11.0"] < ends["writer 0.12.0.1"]
    # 96 days lie between the two last ones, and 53 between today and the first of them.
    scale = (ends["writer 0.12.0.1"] - today) / 149
    assert ends["writer 0.11.0"] == pytest.approx(today + 53 * scale, abs=0.3)


def test_what_has_left_is_no_window_of_today():
    texts = [text.text for text in figure().iter("text")]
    assert "left on 2026-09-15" in texts
    assert "leaves on 2027-04-19, in 149 days" in texts


def test_two_entries_of_one_issue_and_case_are_two_events():
    entries = [
        KnownFailure(
            ("a",), (writer,), ("*",), "crash", "run", "m", "r", "me", "issue/1", TODAY, expires=day("2026-12-24")
        )
        for writer in ("0.9.2", "0.11.0")
    ]
    ahead = forecast(GOLDENS, Policy(known_failures=tuple(entries)), load_calendar(), TODAY, 60)
    subjects = [event.subject for each in ahead.days for event in each.events if "issue/1" in event.subject]
    assert len(set(subjects)) == 2

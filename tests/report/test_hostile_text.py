"""Hostile text in every field of manifests, results and summaries appears as plain text in every format.

The fields are found by walking through a complete value: each text that its type lets another one replace.
"""

import functools
import html
import io
import itertools
import json
import re
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import day, document, files, golden, manifest, result, rules, summarize
from rich.console import Console

from export_core.base.json_text import safe_json
from export_core.base.text import for_markdown, plain_text, shown
from export_core.cli.app import jaxexport
from export_core.cli.output import echo, fail_safe, safe_console
from export_core.features.compare_runs.comparison import BaselineDifference, CellDifference, Change, as_run_difference
from export_core.features.compare_runs.trend import Trend, number_drift, trend_lines
from export_core.features.forecast.forecast import forecast, forecast_lines
from export_core.goldens import Check, Golden, GoldenError, GoldenStore, Manifest, Options, verify
from export_core.goldens.manifest import JaxprSummary
from export_core.goldens.manifest_file import check_manifest
from export_core.goldens.store import INPUTS, OUTPUTS, sha256
from export_core.judge import Judgement, Result, Summary
from export_core.judge.accepted import Accepted
from export_core.judge.custom_call_changes import JudgedChange, Phase
from export_core.matrix import Selection, Verdict, make_plan
from export_core.policy import Policy
from export_core.policy.entries import KnownFailure
from export_core.readers.worker.protocol import Stage
from export_core.releases import Windows, load_calendar
from export_core.report.annotations import annotation_commands
from export_core.report.badge import badge, badge_svg
from export_core.report.document import Document
from export_core.report.first_policy import first_policy
from export_core.report.junit import junit_xml
from export_core.report.map_svg import map_picture, map_svg
from export_core.report.markdown import markdown_text
from export_core.report.page import html_page
from export_core.report.plan_report import github_jobs, print_plan_report
from export_core.report.policy_text import policy_text, proposal
from export_core.report.progress import RunProgress
from export_core.report.run_tables import release_map
from export_core.report.sarif import sarif_file
from export_core.report.terminal import print_report
from export_core.run.run import Run
from pytest_jaxexport.summary import summary_lines

TODAY = day("2026-11-21")
HOSTILE = (
    "::error file=x::forged",
    "a\n::set-output name=x::y",
    "a\n  ::stop-commands::z",
    "x ##[error]forged",
    "\x1b[2J\x1b]0;title\x07\x9b31m",
    "\u202e\u2066evil\u2069 \u200e",
    "\r\n\x00\x08\x7f\x85\u2028\u2029\x0b\x0c",
    "</script><script>alert(1)</script><!--",
    "'\"><img src=x onerror=alert(1)>]]>&amp;",
    "a | b || c \\| `d` ``` ~~~",
    "![x](https://evil/x.png) [l](javascript:1) @octocat www.evil.com https://evil",
    "[red]markup[/] [/nothing]",
    "\ud800\udfff\ufffe\uffff",
    "- a: b\nknown_failures: [x] # {}&*!%@`",
    "\n\n# heading\n| a |\n|---|",
    "{{ 7 * 7 }}{% raw %}",
    "x" * 400 + " ::error::y" * 40,
)
TEXT = st.sampled_from(HOSTILE) | st.text(max_size=40) | st.lists(st.sampled_from(HOSTILE), max_size=3).map(" ".join)
# No text is blank, since a policy with a blank pattern is refused.
TEXTS = st.lists(TEXT.filter(str.strip), min_size=1, max_size=7)

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)

ENTRY = KnownFailure(
    ("t.known",), ("*",), ("*",), "crash", "run", "signal 11", "r", "o", "i", TODAY, ("cpu",), day("2026-12-01")
)
TEXTS_OF_A_CELL = {"message": "m", "allowed": "l", "stderr": "error: s", "flaky": "f", "outputs": "b"}
TEXTS_OF_A_CELL |= {"device": "d", "driver": "v", "foreseen": "n"}
RESULT = result(Verdict.CRASH, Judgement.BROKEN, stage=Stage.RUN, signal=11, custom_calls=("c",), **TEXTS_OF_A_CELL)


JUDGEMENTS = [
    RESULT,
    msgspec.structs.replace(RESULT, verdict=Verdict.ERROR, case="t.error"),
    msgspec.structs.replace(RESULT, judgement=Judgement.KNOWN, case="t.known"),
    msgspec.structs.replace(RESULT, judgement=Judgement.INCOMPLETE, verdict=Verdict.NOT_RUN, case="t.gone"),
    msgspec.structs.replace(RESULT, judgement=Judgement.OUTSIDE, promised=False, case="t.outside"),
    msgspec.structs.replace(RESULT, judgement=Judgement.KEPT, verdict=Verdict.PASS, case="t.kept"),
    *(
        msgspec.structs.replace(RESULT, verdict=Verdict.NUMERICS, golden="g", outputs=bits, reader=reader)
        for bits, reader in (("c", RESULT.reader), ("d", result(reader="0.11.2").reader))
    ),
]
SUMMARY = summarize(
    JUDGEMENTS,
    planned=7,
    policy=rules(known=[ENTRY]),
    accepted=[Accepted("what", "reason", ("case",))],
    without_cells="w",
    undecided=["u"],
    unmeasured=["u"],
    inputs_only=["i"],
    other_generations=["o"],
)
SUMMARY = msgspec.structs.replace(
    SUMMARY,
    stale=["stale"],
    uncovered=["uncovered"],
    custom_call_changes=[
        JudgedChange("old", "new", "why", next(iter(Phase)), ("must",), ("broken",), ("g",), ("m",), 1, 0, TODAY)
    ],
)
MANIFEST = manifest(
    name="n",
    test="t",
    options=Options(("cpu",), allow={"target": "reason"}, disabled_checks={"check": "reason"}, constraints=("b >= 2",)),
    custom_calls=("call",),
    files={name: sha256(data) for name, data in files().items()},
    checks=(Check("again", inputs=INPUTS, outputs=OUTPUTS), Check("no", refused="no")),
    out_shardings=("s",),
    jaxpr=JaxprSummary({"sin": 1}, ("float32[3]",), ("effect",)),
)

TextPath = tuple[Any, ...]


def texts_in(value: Any, path: TextPath = ()) -> Iterator[TextPath]:
    """Yield the paths of texts in a plain value. The path of a dict's key ends in None."""
    if isinstance(value, str):
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        if isinstance(name, str):
            yield (*path, name, None)
        yield from texts_in(part, (*path, name))


def replaced(value: Any, path: TextPath, text: str) -> Any:
    """Return a copy of the plain value with another text at this path."""
    if not path:
        return text
    name, *rest = path
    if isinstance(value, list):
        return [replaced(part, tuple(rest), text) if number == name else part for number, part in enumerate(value)]
    if rest == [None]:
        return {text if key == name else key: part for key, part in value.items()}
    return {key: replaced(part, tuple(rest), text) if key == name else part for key, part in value.items()}


def plain(value: msgspec.Struct) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


@functools.cache
def free_texts(kind: type, encoded: bytes) -> tuple[TextPath, ...]:
    """Return the paths where the type accepts any text: no field's name, no date, no word of a fixed list."""

    def is_free(path: TextPath) -> bool:
        try:
            made = msgspec.convert(replaced(value, path, "any text"), kind, strict=False)
            if isinstance(made, Summary):
                msgspec.convert(made.policy, Policy)
        except msgspec.ValidationError:
            return False
        return "any text" in json.dumps(plain(made)) and path[0] not in ("verdicts", "judgements")

    value = msgspec.json.decode(encoded)
    # Keys come last, since the paths below a renamed key would be gone.
    return tuple(sorted(filter(is_free, texts_in(value)), key=lambda path: path[-1] is None))


def filled(value: Any, choose: Callable[[], str]) -> Any:
    """Return a copy with hostile text in each free path, without surrogates, which no file of JSON or YAML holds."""
    kind, changed = type(value), plain(value)
    for path in free_texts(kind, msgspec.json.encode(value)):
        text = choose().encode(errors="replace").decode()
        changed = replaced(changed, path, text)
    return msgspec.convert(changed, kind, strict=False)


def on_console(draw: Callable[[Console], object], width: int = 140) -> str:
    stream = io.StringIO()
    draw(safe_console(stream, width=width, highlight=False))
    return stream.getvalue()


def printed(text: str) -> str:
    stream = io.StringIO()
    fail_safe(stream).write(shown(text))
    return stream.getvalue()


class Tags(HTMLParser):
    """The elements of a page, and the attributes that could run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: dict[str, int] = {}
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in ("href", "xlink:href")}


def columns(text: str) -> list[set[int]]:
    """Return the numbers of columns in the rows of each Markdown table, outside of fences."""
    outside, fence = [], ""
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif ticks := re.match(r"`{3,}", line):
            fence = ticks[0]
        else:
            outside.append(line)
    assert not fence, "a fence is open to the end"
    tables = re.findall(r"(?:^\|.*\n)+", "\n".join(outside) + "\n", re.MULTILINE)
    return [{len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()} for table in tables]


def assert_harmless(name: str, text: str) -> None:
    assert not CONTROL.search(text), (name, CONTROL.search(text))
    assert not COMMAND.search(text), (name, COMMAND.search(text), text[:2000])


def progress(console: Console, results: Sequence[Result]) -> None:
    plan = make_plan([golden()], load_calendar(), Windows(), Selection(readers="0.12.0.1"), TODAY)
    with RunProgress(console, plan) as shows:
        for one in results:
            shows._left[f"{one.reader.jaxlib}-jax{one.reader.jax}"] += 2
            shows.result(one)
            shows.note(one.message)


def disarmed(commands: str) -> str:
    """Return the text that a runner shows for annotations. Each of their lines must be one whole command."""
    parts = [re.fullmatch(r"::(error|warning) ([^:]+)::(.*)", line) for line in commands.split("\n")[:-1]]
    assert parts
    texts = [part for found in parts for pair in found[2].split(",") for part in (pair.partition("=")[2], found[3])]
    return "\n".join(text.replace("%0A", "\n").replace("%3A", ":").replace("%25", "%") for text in texts)


def changed(results: Sequence[Result], summary: Summary) -> BaselineDifference:
    cells = [CellDifference(change, one, one) for change, one in zip(itertools.cycle(Change), results, strict=False)]
    run = Run(results, summary)
    return BaselineDifference(run, run, cells, [results[0].message])


def event(one: Result) -> dict[str, Any]:
    """Build the plugin's record of a test, with the texts of this result."""
    return {
        **dict.fromkeys(("crash", "renamed", "changed", "measure"), one.message),
        **dict.fromkeys(("elsewhere", "without_outputs", "unmeasured"), 1),
        "case": one.case,
        "test": one.message,
        "writer": one.writer.jaxlib,
        "written": "replaced",
        "replaced": [one.message],
        "own": False,
        "named": [one.message],
        "to_do": [one.message],
        "not_seen": {one.message: (1e-6, "float32")},
        "runtimes": [one.message],
        "run_deployed": one.message,
        "other_inputs": [one.message],
        "other_generations": [one.message],
        "corrected": {"compare": one.message},
        "rounded": ["float64"],
        "not_repeated": one.message,
        "compared_by_outputs": True,
        "undecided": [one.golden],
        "judgements": {one.judgement: 1},
        "shown": [(one.golden, one.message)],
    }


DOCUMENT_FORMATS: dict[str, Callable[[Document], str]] = {
    "terminal 80": lambda reported: on_console(lambda to: print_report(to, reported), 80),
    "terminal 140": lambda reported: on_console(lambda to: print_report(to, reported)),
    "terminal in full": lambda reported: on_console(lambda to: print_report(to, reported, full=True)),
    "Markdown": markdown_text,
    "JUnit": junit_xml,
    "HTML": html_page,
    "map": map_picture,
    "SARIF": lambda reported: sarif_file(reported).decode(),
    "annotations": lambda reported: disarmed(annotation_commands(reported)),
}
RUN_FORMATS: dict[str, Callable[[list[Result], Summary], str]] = {
    "progress": lambda results, summary: on_console(lambda to: progress(to, results)),
    "policy show": lambda results, summary: printed(
        policy_text(msgspec.convert(summary.policy, Policy), {}, results[0].message)
    ),
    "comparison": lambda *run: html_page(document(*run, as_run_difference(changed(*run)))),
    "badge": lambda results, summary: badge_svg(badge(summary)),
    "map of a page": lambda *run: map_svg(release_map(Run(*run)), links=True),
    "trend": lambda results, summary: "\n".join(map(printed, trend_lines(Trend(number_drift(results))))),
    "trend as JSON": lambda results, summary: safe_json(Trend(number_drift(results)), indent=2).decode(),
    "JSON lines": lambda results, summary: "\n".join(safe_json(one).decode() for one in results),
    "proposal": lambda results, summary: proposal(
        results, msgspec.structs.replace(summary, uncovered=[], shard=None, judgements={}, partial="")
    ),
    "pytest": lambda results, summary: "\n".join(map(printed, summary_lines([event(one) for one in results]))),
}
DRAWN_TAGS = {"both", "div", "svg", "title", "style", "g", "a", "rect", "line", "text"}
PLAIN_TAGS = {
    *("html", "head", "meta", "title", "style", "script", "body", "header", "main", "section", "article", "footer"),
    *("figure", "figcaption", "h1", "h2", "h3", "p", "div", "span", "b", "small", "pre", "code", "a", "ul", "ol", "li"),
    *("dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "form", "label", "select"),
    *("option", "input", "output", "br", "noscript", "dialog", "button", "svg", "g", "rect", "line", "text", "circle"),
}


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(texts=TEXTS)
def test_a_runs_texts_are_harmless_in_every_format(texts):
    following = itertools.cycle(texts)
    check_run([filled(one, lambda: next(following)) for one in JUDGEMENTS], filled(SUMMARY, lambda: next(following)))


@pytest.mark.parametrize("text", HOSTILE)
def test_one_hostile_text_in_all_fields_of_a_run_is_harmless(text):
    check_run([filled(one, lambda: text) for one in JUDGEMENTS], filled(SUMMARY, lambda: text))


def check_run(results: list[Result], summary: Summary) -> None:
    reported = document(results, summary)
    texts = {name: form(reported) for name, form in DOCUMENT_FORMATS.items()}
    texts |= {name: form(results, summary) for name, form in RUN_FORMATS.items()}
    for name, text in texts.items():
        assert_harmless(name, text)
    Xml.fromstring(texts["JUnit"])
    for name in ("badge", "map", "map of a page"):
        drawn = Xml.fromstring(f"<both>{texts[name]}</both>")
        assert {element.tag.rpartition("}")[2] for element in drawn.iter()} <= DRAWN_TAGS
        assert all(element.get("href", "#filter=").startswith("#filter=") for element in drawn.iter())
    assert "](" not in "".join(json.loads(texts["SARIF"])["runs"][0]["results"][0]["message"]["text"])
    assert [len(widths) for widths in columns(texts["Markdown"])] == [1, 1]
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", texts["Markdown"])
    # Web addresses stand as code, of characters that end no code and begin no markup: GitHub makes no links of them.
    outside = re.sub(r"`https?://[^\s`<>\[\]|\\]+`|<code>https?://[^\s`<>\[\]|\\]+</code>", "", outside)
    assert not re.search(r"(?<!\\)<(?!br>|details|/?summary>|/details>|/?b>)|(?<!\\)\[|@\w|https?://|www\.", outside), (
        outside
    )
    assert Tags(texts["comparison"]).elements.keys() <= PLAIN_TAGS
    page = Tags(texts["HTML"])
    assert page.elements.keys() <= PLAIN_TAGS
    assert page.elements["script"] == 2
    # Counted as text too, since this parser does not know how a script with <!-- ends.
    assert (texts["HTML"].count("<script"), texts["HTML"].count("</script")) == (2, 2)
    assert not {name for name in page.attributes if name.startswith("on") or name in ("src", "style")}
    assert all(link.startswith(("#", "http://", "https://")) for link in page.links), page.links
    lines = texts["JSON lines"].split("\n")
    assert [msgspec.json.decode(line, type=Result) for line in lines] == results
    entries = yaml.safe_load(texts["proposal"])["known_failures"]
    assert {case for entry in entries for case in entry["cases"]} == {
        one.case for one in results if one.judgement is Judgement.BROKEN
    }


# --- manifests --------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def _believed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Switch off the check that an artifact confirms its manifest, which would refuse these hostile manifests.

    Run in a folder without a policy, so that commands do not read the policy of this repository.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path_factory.mktemp("without_policy"))
        patched.setattr(verify, "_shown_by_bytes", lambda *_: ())
        yield


def stored(root: Path, made: Manifest) -> Golden:
    """Store a golden without the checks of our tools."""
    store = GoldenStore(root)
    store.write(made, files())
    return store.goldens()[0]


def lines_of(*words: str) -> str:
    ended = CliRunner().invoke(jaxexport, list(words))
    assert ended.exit_code == 0, ended.output
    return ended.output


def golden_formats(root: Path, made: Golden) -> dict[str, str]:
    calendar = load_calendar()
    plan = make_plan([made], calendar, Windows(), Selection(readers="0.12.0.1"), TODAY)
    ahead = forecast([made], Policy(), calendar, TODAY, 200, ["0.11.0"])
    return {
        "goldens list": lines_of("goldens", "list", "--goldens", str(root)),
        "inspect": lines_of("inspect", "--goldens", str(root), "--", made.id),
        "goldens verify": lines_of("goldens", "verify", "--goldens", str(root)),
        "plan": on_console(lambda to: print_plan_report(to, plan, Windows()), 60),
        "plan for GitHub": json.dumps(github_jobs(plan, [])),
        "policy": first_policy([made], "golden", "schema.json"),
        "forecast": "\n".join(map(printed, forecast_lines(ahead))),
    }


def test_each_text_of_a_manifest_is_refused_or_harmless():
    """One field is replaced at a time, since a manifest with two wrong fields is refused for the first."""
    refused, accepted = set(), set()
    for path in free_texts(Manifest, msgspec.json.encode(MANIFEST)):
        for text in (one.encode(errors="replace").decode() for one in HOSTILE):
            made = msgspec.convert(replaced(plain(MANIFEST), path, text), Manifest, strict=False)
            try:
                check_manifest(made, "golden.yaml")
            except GoldenError as error:
                assert_harmless(f"error of {path}", str(error))
                refused.add(path)
                continue
            accepted.add(path)
    assert {("case",), ("writer", "jaxlib"), ("files", INPUTS, None), ("options", "platforms", 0)} <= refused
    assert {("test",), ("signature", "in_tree"), ("custom_calls", 0), ("options", "allow", "target")} <= accepted
    assert not accepted & {("writer", "jax"), ("writer", "jaxlib"), ("writer", "platform"), ("comparison", "compare")}


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(texts=TEXTS)
def test_a_manifests_texts_are_harmless_in_every_format(tmp_path_factory, texts):
    following = itertools.cycle(texts)
    check_golden(tmp_path_factory.mktemp("goldens"), lambda: next(following))


@pytest.mark.parametrize("text", HOSTILE)
def test_one_hostile_text_in_a_whole_manifest_is_harmless(tmp_path, text):
    check_golden(tmp_path / "golden", lambda: text)


def check_golden(root: Path, choose: Callable[[], str]) -> None:
    changed = plain(MANIFEST)
    for path in free_texts(Manifest, msgspec.json.encode(MANIFEST)):
        if path[0] in ("files", "writer") or path[:2] == ("options", "platforms"):
            continue  # a missing file, an unknown release, and a golden without a cell are errors of other tests
        tried = replaced(changed, path, choose().encode(errors="replace").decode())
        try:
            check_manifest(msgspec.convert(tried, Manifest, strict=False), "golden.yaml")
            changed = tried
        except GoldenError as error:
            assert_harmless("error", str(error))
    made = stored(root, msgspec.convert(changed, Manifest, strict=False))
    texts = golden_formats(root, made)
    for name, text in texts.items():
        assert_harmless(name, text)
    yaml.safe_load(texts["policy"])


# --- the functions ----------------------------------------------------------------------------------------------------


def test_plain_text_removes_control_sequences():
    assert plain_text("\x1b[31mred\x1b[0m \x00\x08 <script>").startswith("red \ufffd\ufffd <script>")
    assert plain_text("10%\r20%\r\nend") == "10%\n20%\nend"
    assert plain_text("naïve → 数\tтест 🎉") == "naïve → 数\tтест 🎉"


@given(st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=150)
def test_plain_text_is_legal_xml_and_idempotent(text):
    plain = plain_text(text)
    assert (Xml.fromstring(f"<a>{html.escape(plain)}</a>").text or "") == plain
    assert plain_text(plain) == plain


@given(TEXT)
def test_shown_text_is_harmless_and_idempotent(text):
    once = shown(text).replace("\t", " ")
    assert_harmless("shown", once)
    assert shown(once) == once


@given(TEXT)
def test_text_in_markdown_is_one_line_without_markup(text):
    escaped = for_markdown(text)
    assert "\n" not in escaped
    assert not re.search(r"(?<!\\)(?:\\\\)*[<|`\[*]", escaped)


def test_echo_escapes_what_a_command_prints(capsys):
    echo("a\x1b[2J\n::error::b")
    assert capsys.readouterr().out == "a\n:\\:error::b\n"


def test_commands_print_through_one_function_only():
    """Only that function escapes text. The raw bytes of a report are printed otherwise, since its format escapes them.

    In features, programs that run elsewhere print themselves: a reader's, and scripts written for a person.
    """
    package = Path(jaxexport.callback.__code__.co_filename).parents[1]
    direct_prints = {
        path.relative_to(package).as_posix(): len(
            re.findall(r"click\.echo\(|(?<![.\w])print\(|\bConsole\(|sys\.stdout\.write\(", path.read_text())
        )
        for folder in ("cli", "features")
        for path in (package / folder).rglob("*.py")
    }
    assert {name: count for name, count in direct_prints.items() if count} == {
        "cli/output.py": 3,
        "cli/click_options.py": 1,
        "cli/entry.py": 2,
        "features/inspect/screen.py": 1,
        "features/backfill/backfill.py": 1,
        "features/why/explain/bundle_script.py": 9,
        "features/why/reduce/editing/editing_program.py": 1,
    }

"""A run as Markdown: what is visible first, what is folded, and how it stays within GitHub's limits."""

import html
import json
import re
from typing import Any
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from comparing import compared
from example_runs import broken_document, broken_run, kept_run
from making import document, result, run_of, summarize
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich_run import assert_shown, rich_document

from export_core.judge import Judgement, Result, Summary
from export_core.judge.gate import RunIdentity
from export_core.matrix import Verdict
from export_core.readers.worker.protocol import Stage
from export_core.report.badge import badge, badge_svg
from export_core.report.map_svg import map_svg
from export_core.report.markdown import MOST_BYTES, markdown_map, markdown_text
from export_core.report.run_tables import release_map
from tools.example_report import PAGE, example


def cell(verdict: Verdict, judgement: Judgement, case: str, **changes: Any) -> Result:
    return result(verdict, judgement, case=case, **{"stage": Stage.RUN, "message": "signal 11", **changes})


def tokens_of(text: str) -> list[Token]:
    """Read the document as GitHub does: as CommonMark with tables."""
    return MarkdownIt("commonmark").enable("table").parse(text)


def assert_whole(text: str) -> None:
    """Check that nothing is open at the end, and that the rows of a table have one width."""
    tokens = tokens_of(text)
    blocks = "".join(token.content for token in tokens if token.type == "html_block")
    assert blocks.count("<details") == blocks.count("</details>")
    assert blocks.count("<summary>") == blocks.count("</summary>") == blocks.count("<details")
    assert all(token.markup and token.content for token in tokens if token.type == "fence")
    for table in re.findall(r"(?m)(?:^\|.*\n)+", re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def visible(text: str) -> list[str]:
    """Return the lines that are visible before anything is unfolded."""
    lines, depth, shown = [], 0, [True]
    for line in filter(None, text.splitlines()):
        if line.startswith("<details"):
            lines += [line] if shown[-1] else []
            shown.append(shown[-1] and line.startswith("<details open"))
            depth += 1
        elif line == "</details>":
            shown.pop()
        elif shown[-1]:
            lines.append(line)
    return lines


def test_markdown_shows_everything_but_pictures_and_tables():
    text = markdown_text(rich_document())
    assert_whole(text)
    plain = html.unescape(re.sub(r"\\(?=[^\w\s])", "", text)).replace("<br>", " ")
    assert_shown(plain, lambda element: element.sort not in ("picture", "row line", "table", "looks like"))


@pytest.mark.parametrize("judgement", Judgement)
def test_a_map_square_has_the_symbol_of_its_judgement(judgement):
    text = markdown_map(release_map(run_of([result(judgement=judgement)])))
    symbol = judgement.facts.symbol
    is_counted = judgement.fails_run or judgement is Judgement.KNOWN
    assert f"| 0.9.2 | {symbol}{' 1' if is_counted else ''} |" in text
    assert f"\n{symbol} {judgement}: {judgement.facts.meaning}\n" in text


def test_markdown_and_picture_count_the_same_failing_cells():
    verdicts = (Verdict.ERROR, Judgement.OUTSIDE), (Verdict.ERROR, Judgement.OUTSIDE), (Verdict.PASS, Judgement.BONUS)
    cells = [result(*one, case=f"t.{number}", promised=False) for number, one in enumerate(verdicts)]
    shown = release_map(run_of(cells))
    text = markdown_map(shown)
    assert "| 0.9.2 | ⚪ 2/3 |" in text
    assert text.endswith("⚪ outside: not promised, and it fails · 2/3: 2 of 3 cells fail\n"), "as in this map"
    assert ">2</text>" in map_svg(shown)


def test_a_cause_says_if_it_looks_like_rounding():
    moved = result(Verdict.NUMERICS, Judgement.BROKEN, message="far", looks_like="rounding: errors of both signs")
    text = markdown_text(document([moved]))
    assert "**numerics in stage compare, looks like rounding**: far<br>To do: Find the operation" in text
    assert "<b>NUMBERS MOVED</b>" in text


def test_the_docs_show_the_unfolded_part_of_the_example_report():
    """The visible part is the headline, the causes with the worst first, and the map."""
    assert PAGE.read_text() == example(), "run `python -m tools.example_report`"


def test_a_run_with_three_causes_fits_a_screen():
    text = markdown_text(broken_document())
    assert_whole(text)
    assert len(visible(text)) < 45
    assert len([line for line in visible(text) if line.startswith("  reproduce")]) == 1, "one example is unfolded"


def test_columns_with_different_counts_are_not_merged():
    broken = [result(Verdict.CRASH, Judgement.BROKEN, case=case, reader="0.12.0") for case in ("t.a", "t.b")]
    one = result(Verdict.CRASH, Judgement.BROKEN, case="t.a", reader="0.12.0.1")
    text = markdown_map(release_map(run_of([*broken, one, result(case="t.b", reader="0.12.0.1")])))
    assert "| ❌ 2 | ❌ 1 |" in text


def test_headline_and_folded_section_count_the_same_cells():
    text = markdown_text(broken_document())
    assert "1,896 outside" in text
    assert "<summary>outside the window: 216 of 1,896 cells; the others were refused, as expected</summary>" in text


def test_one_jaxlib_with_two_jax_is_two_columns():
    first = result(writer="0.9.2", reader="0.12.0")
    other = msgspec.structs.replace(
        first, reader=msgspec.structs.replace(first.reader, jax="0.11.2"), judgement=Judgement.BROKEN
    )
    assert "| | 0.12.0 (jax 0.11.2) | 0.12.0 (jax 0.12.0.1) |" in markdown_map(release_map(run_of([first, other])))


def test_a_large_map_is_folded():
    readers = ("0.6.2", "0.7.0", "0.7.1", "0.7.2", "0.8.0", "0.8.1", "0.9.1", "0.9.2", "0.10.0", "0.10.1", "0.10.2")
    wide = [result(writer=name, reader=name) for name in (*readers, "0.11.0", "0.11.1", "0.11.2", "0.12.0.1")]
    text = markdown_text(document(wide))
    assert "Goldens by writer" in text
    assert not [line for line in visible(text) if line.startswith("Goldens by writer")]


def test_a_kept_run_shows_no_causes_and_no_open_details():
    text = markdown_text(document(*kept_run()))
    assert text.startswith("### ✅ KEPT: ")
    assert "| when |" not in text
    assert "<details open>" not in text


def test_a_link_to_a_github_issue_leaves_no_mention_in_the_issue():
    text = markdown_text(broken_document())
    assert "LAPACK calls crash in a fresh process ([lapack-cold-process](<https://redirect.github.com/" in text
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)
    assert "https://github.com/jax-ml" not in outside


def test_the_project_commit_job_and_test_are_linked(tmp_path, monkeypatch):
    results, made = broken_run()
    identity = RunIdentity(
        project="waves",
        commit="0123456789abcdef",
        ci_url="https://ci.example/1",
        source_url="https://git.example/blob/01",
    )
    made = msgspec.structs.replace(made, identity=identity)
    results = [msgspec.structs.replace(each, test="tests/a.py::test_f") for each in results]
    assert "<br>waves at 0123456789ab · [CI job](<https://ci.example/1>)" in markdown_text(document(results, made))
    test = "[tests/a.py::test\\_f](<https://git.example/blob/01/tests/a.py"
    assert f"{test}>)" in markdown_text(document(results, made))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text("\ndef test_f(): ...\n")
    monkeypatch.chdir(tmp_path)
    assert f"{test}#L2>)" in markdown_text(document(results, made))


def test_a_link_that_is_not_a_web_address_is_left_out():
    made = msgspec.structs.replace(broken_run()[1], identity=RunIdentity(ci_url="javascript:alert(1)"))
    assert "javascript" not in markdown_text(document(broken_run()[0], made))


def many_kinds(count: int) -> tuple[list[Result], Summary]:
    """Build a run with this many causes of each kind, with long messages."""
    texts = [f"{chr(0x4E00 + n)} {'é|`[' * 400}" for n in range(count)]
    kinds = [
        (Verdict.ERROR, Judgement.BROKEN, True),
        (Verdict.NOT_RUN, Judgement.INCOMPLETE, True),
        (Verdict.ERROR, Judgement.OUTSIDE, False),
    ]
    results = [
        cell(verdict, judgement, f"t.{judgement}{n}", message=text, stderr=text, promised=promised)
        for n, text in enumerate(texts)
        for verdict, judgement, promised in kinds
    ]
    made = summarize(results, without_cells=f"Goldens without a cell: {'x ' * 5000}", undecided=["t.f " * 2000])
    return results, msgspec.structs.replace(made, stale=["stale " * 1000] * count, partial="cases " * 1000)


@pytest.mark.parametrize("count", [1, 50])
def test_each_kind_of_finding_is_shown_within_the_limit(count):
    text = markdown_text(document(*many_kinds(count)))
    assert len(text.encode()) <= MOST_BYTES
    assert_whole(text)
    for kind in ("BROKEN PROMISE", "INCOMPLETE", "STALE LIST", "outside the window", "NOT COVERED", "NOT DECIDED"):
        assert f"<b>{kind}</b>" in text
    assert ("Not shown here: " in text) == (count == 50)


def test_omitted_findings_are_counted_by_kind():
    results, made = many_kinds(50)
    text = markdown_text(document(results, made))
    left_out = {kind: int(count) for count, kind in re.findall(r"(\d+) ([A-Za-z ]+)(?:, |\.)", text.splitlines()[-1])}
    for kind in ("BROKEN PROMISE", "INCOMPLETE", "outside the window"):
        assert left_out[kind] + text.count(f"<b>{kind}</b>") == 50
    (more,) = re.findall(r"^\| \| (\d+) more: STALE LIST \|", text, re.MULTILINE)
    assert int(more) + text.count("| ❗ | STALE LIST: ") == 50


def test_a_line_about_the_run_and_its_url_are_not_cut():
    todo = "write a new `expires` with its reason, or remove the entry."
    address = "https://github.com/o/r/issues/7"
    text = (
        f"export_compat.yaml:2: known_failures[0] ({'reason ' * 30}; owner o, {address}): expired on 2026-01-01; {todo}"
    )
    made = summarize([result()], identity=RunIdentity(commit="926445ce15159999"))
    made = msgspec.structs.replace(made, stale=[text])
    shown = markdown_text(document([result()], made))
    (row,) = [line for line in shown.splitlines() if line.startswith("| ❗ | STALE LIST: ")]
    assert row.endswith(f"{todo.replace('`', chr(92) + '`')} | | | | | |")
    assert f"owner o, `{address}`): " in row
    assert f"<code>{address}</code>" in shown
    assert "<br>commit 926445ce1515" in shown


def test_a_message_cannot_end_the_code_block_around_it():
    results = [cell(Verdict.ERROR, Judgement.BROKEN, "t.f[<b>|`]", message="````\n</details>\n# x", promised=True)]
    text = markdown_text(document(results))
    assert re.findall(r"^`{3,}", text, re.MULTILINE) == ["`````", "`````"]
    assert "</details>" in next(token.content for token in tokens_of(text) if token.type == "fence")


# --- with a baseline --------------------------------------------------------------------------------------------------


WORKS = result(case="t.a"), result(case="t.b", reader="0.11.0")
FAILS = cell(Verdict.CRASH, Judgement.BROKEN, "t.a"), cell(Verdict.CRASH, Judgement.BROKEN, "t.b", reader="0.11.0")


def test_changes_since_the_baseline_come_first():
    now = [FAILS[0], WORKS[1], result(case="t.new")]
    text = markdown_text(compared([WORKS[0], FAILS[1]], now, ["the baseline is another plan"]))
    assert_whole(text)
    assert "**Since the baseline (as of 2026-11-21, 2 cells): 1 regressed, 1 fixed, 1 new, 0 gone, " in text
    assert "- the baseline is another plan.\n" in text
    titles = re.findall(r"<summary>(?:❌ )?<b>([\w ]+)</b>", text)
    assert titles == ["REGRESSED", "fixed", "new", "BROKEN PROMISE"]
    assert text.index("<b>fixed</b>") < text.index("| when |") < text.index("<b>BROKEN PROMISE</b>")
    assert "<details open><summary><b>REGRESSED</b>" in text


def test_a_map_square_that_changed_shows_both_runs():
    text = markdown_text(compared([WORKS[0], FAILS[1]], [FAILS[0], WORKS[1]]))
    assert "| 0.9.2 | ✅→❌ 1 | ❌→✅ |" in text
    another = msgspec.structs.replace(FAILS[0], golden="g/1")
    assert "| 0.9.2 | ❌ 1→2 |" in markdown_text(compared([FAILS[0]], [FAILS[0], another]))


# --- the badge --------------------------------------------------------------------------------------------------------


def test_the_badge_of_a_kept_run_is_green():
    kept = badge(kept_run()[1])
    assert (kept["message"][:9], kept["color"]) == ("kept: all", "#2c8a58")


def test_the_badge_of_a_kept_run_names_known_failures():
    known = result(Verdict.CRASH, Judgement.KNOWN, case="t.b", stage=Stage.RUN)
    made = summarize([result(), known])
    assert (
        badge(msgspec.structs.replace(made, exit_code=0))["message"] == "kept: 1 of 2 promised cells, 1 known failure"
    )


def test_the_badge_of_a_run_without_results_says_incomplete():
    empty = summarize([], planned=2)
    assert badge(empty)["message"] == "incomplete: 2 of 2 planned cells have no result that counts"


def test_the_badge_has_its_text_for_a_screen_reader():
    picture = Xml.fromstring(badge_svg(badge(broken_run()[1])))
    assert picture.get("aria-label") == "jax.export: broken: 67 of 1,350 promised cells"


def test_the_badge_follows_the_format_of_shields_io():
    assert json.loads(msgspec.json.encode(badge(broken_run()[1]))) == {
        "schemaVersion": 1,
        "label": "jax.export",
        "message": "broken: 67 of 1,350 promised cells",
        "color": "#c62f38",
    }


def test_a_finding_without_details_is_not_folded():
    kept, made = kept_run()
    lines = markdown_text(
        document(kept, msgspec.structs.replace(made, without_cells="2 goldens have no cell."))
    ).splitlines()
    assert "<b>NOT COVERED</b>: 2 goldens have no cell." in lines

"""The map of a run: the colour, the count, the position and the link of each square."""

import datetime
import io
import re
from urllib.parse import unquote
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from example_runs import broken_document, broken_run
from hypothesis import given
from hypothesis import strategies as st
from making import day, document, release, result, run_of
from rich.console import Console

from export_core.features.forecast.windows_svg import generations_of
from export_core.judge import Judgement
from export_core.matrix import Verdict
from export_core.releases import Windows, promise
from export_core.report.document import ReportError
from export_core.report.map_svg import map_picture, map_svg
from export_core.report.markdown import markdown_map, markdown_text
from export_core.report.page import html_page
from export_core.report.page_data import page_data
from export_core.report.run_tables import release_map
from export_core.report.svg import make_axis, width_of
from export_core.report.terminal import print_cells, print_report
from export_core.run.run import Run

DAYS = st.dates(day("2023-06-01"), day("2027-01-01"))


def drawn(results, **options):
    return Xml.fromstring(map_svg(mapped(results), **options))


def mapped(results):
    return release_map(run_of(results))


@pytest.fixture(scope="module")
def broken():
    """The map of the example run, with links."""
    return Xml.fromstring(map_svg(release_map(Run(*broken_run())), links=True))


def squares(picture, kind="a"):
    return [element for element in picture.iter(kind) if element.get("class", "").startswith("square")]


def on_platform(platform, **changes):
    return msgspec.structs.replace(result(**changes), platform=platform)


# --- positions --------------------------------------------------------------------------------------------------------


@given(st.lists(DAYS, min_size=1, max_size=40), DAYS, DAYS)
def test_a_drawn_window_covers_the_promised_readers(built, writer, as_of):
    built.sort()
    axis = make_axis(built, as_of, 786, slot=27, end=26)
    windows = Windows()
    begin = axis.start(writer - datetime.timedelta(days=windows.forward_days))
    end = axis.end(writer + datetime.timedelta(days=windows.backward_days))
    inside = [begin - 1e-6 <= slot - axis.slot / 2 and slot + axis.slot / 2 <= end + 1e-6 for slot in axis.slots]
    assert inside == [promise(writer, reader, windows).promised for reader in built]


@given(st.lists(DAYS, min_size=1, max_size=60), DAYS)
def test_columns_of_the_map_do_not_overlap_or_leave_the_picture(built, as_of):
    axis = make_axis(sorted(built), as_of, 786, slot=27, end=26)
    assert axis.slots[0] - axis.slot / 2 >= -1e-6
    assert axis.slots[-1] + axis.slot / 2 <= 786 - 26 + 1e-6
    assert all(right - left >= axis.slot - 1e-6 for left, right in zip(axis.slots, axis.slots[1:], strict=False))


def test_releases_far_apart_are_drawn_at_their_build_date():
    axis = make_axis([day("2026-01-01"), day("2026-04-11"), day("2026-07-20")], day("2026-07-20"), 1000, 20, 20)
    assert axis.slots[1] - axis.slots[0] == pytest.approx(axis.slots[2] - axis.slots[1])


# --- squares ----------------------------------------------------------------------------------------------------------


def test_a_square_shows_and_counts_its_worst_judgement():
    results = [
        result(Verdict.CRASH, Judgement.BROKEN, case="t.a"),
        result(Verdict.CRASH, Judgement.KNOWN, case="t.b"),
        result(case="t.c"),
    ]
    (square,) = squares(drawn(results, links=True))
    assert square.get("class") == "square is-broken"
    assert square.find("text").text == "1"
    assert square.get("aria-label") == ("written by 0.9.2, read by 0.10.2 on cpu: 1 broken, 1 known, 1 kept (promised)")


def test_a_squares_number_counts_all_cells_that_fail_the_run():
    results = [
        result(Verdict.NUMERICS, Judgement.BROKEN, case="t.a", promised=False),
        result(Verdict.CRASH, Judgement.OWED, case="t.b", promised=False),
        result(Verdict.REFUSED, Judgement.OUTSIDE, case="t.c", promised=False),
        *(result(case=f"t.{name}", judgement=Judgement.BONUS, promised=False) for name in "def"),
    ]
    (square,) = squares(drawn(results, links=True))
    assert (square.get("class"), square.find("text").text) == ("square is-broken", "2")
    link = "#filter=writer:0.9.2 reader:0.10.2 platform:cpu judgement:broken,owed"
    assert unquote(square.get("href")) == link, "the cells that are counted"
    text = markdown_map(mapped(results))
    assert "| 0.9.2 | ❌ 2 |" in text
    assert text.endswith(" · a number counts all cells that fail the run\n")


@pytest.mark.parametrize("judgement", Judgement)
def test_squares_have_numbers_as_the_pages_legend_says(judgement):
    made = [result(Verdict.CRASH, judgement)]
    says = "Without a number all cells work or, in grey, all fail and nothing is promised."
    assert says in html_page(document(made))
    without = (judgement.facts.works and not judgement.fails_run) or judgement is Judgement.OUTSIDE
    assert (squares(drawn(made), "g")[0].find("text") is None) is without


def test_a_square_of_failing_and_working_cells_looks_partly_failing():
    outside = [
        result(Verdict.ERROR, Judgement.OUTSIDE, case="t.a", promised=False),
        result(Verdict.PASS, Judgement.BONUS, case="t.b", promised=False),
    ]
    assert squares(drawn(outside), "g")[0].get("class") == "square is-partly"
    assert squares(drawn(outside[:1]), "g")[0].get("class") == "square is-outside"
    # A runtime that is not jaxlib can promise one artifact of a writer, and not another one.
    kept = result(Verdict.PASS, Judgement.KEPT, case="t.b")
    assert squares(drawn([outside[0], kept]), "g")[0].get("class") == "square is-partly"


def test_rows_are_sorted_by_platform_then_newest_writer():
    results = [on_platform("tpu"), on_platform("cpu"), on_platform("cpu", writer="0.10.1")]
    rows = mapped(results).rows
    assert [(row.platform, row.writer.name) for row in rows] == [("cpu", "0.10.1"), ("cpu", "0.9.2"), ("tpu", "0.9.2")]


def test_rows_of_two_platforms_are_drawn_apart():
    picture = drawn([on_platform("cpu"), on_platform("cpu", writer="0.10.1"), on_platform("tpu")], links=True)
    first, second, other = sorted(float(one.find("rect").get("y")) for one in squares(picture))
    assert other - second > second - first + 20


def test_one_jaxlib_with_two_jax_is_two_readers():
    plain = result()
    other = msgspec.structs.replace(plain, reader=msgspec.structs.replace(plain.reader, jax="0.10.1"))
    assert [reader.term for reader in mapped([plain, other]).readers] == ["0.10.2-jax0.10.1", "0.10.2-jax0.10.2"]


def test_a_golden_on_two_platforms_is_counted_once():
    (generation,) = generations_of(run_of([on_platform("cpu"), on_platform("tpu"), result(case="t.b")]))
    assert (generation.writer, generation.goldens, str(generation.leaves)) == ("0.9.2", 2, "2026-09-15")


def test_drawing_a_run_without_cells_is_an_error():
    with pytest.raises(ReportError, match="found none"):
        map_svg(mapped([]))


# --- links ------------------------------------------------------------------------------------------------------------


def test_a_square_links_to_its_cells():
    (square,) = squares(drawn([result()], links=True))
    assert unquote(square.get("href")) == "#filter=writer:0.9.2 reader:0.10.2 platform:cpu"


def test_all_squares_are_one_tab_stop(broken):
    assert [square.get("tabindex") for square in squares(broken)] == ["0", *["-1"] * (5 * 17 - 1)]


def test_the_map_as_a_file_defines_its_colours_and_has_no_links():
    picture = map_picture(broken_document())
    assert "--map-kept: #" in picture
    assert "BROKEN: 67 of 1,350 promised cells, 3 causes<" in picture
    affected = "lapack-cold-process in 0.6.2 to 0.9.2, timeout in 0.12.0.1, numerics in 0.12.0 to 0.12.0.1"
    assert f"readers affected, by cause: {affected} · a number counts" in picture
    (line,) = re.findall(r'<text class="legend"[^>]*>([^<]*a number counts[^<]*)', picture)
    assert width_of(line, 10.5) < 900 - 20
    assert "<a " not in picture


def test_every_square_is_inside_the_picture(broken):
    _, _, width, height = map(float, broken.get("viewBox").split())
    for square in squares(broken):
        box = {name: float(square.find("rect").get(name)) for name in ("x", "y", "width", "height")}
        assert 0 <= box["x"] <= width - box["width"]
        assert 0 <= box["y"] <= height - box["height"]


def test_the_map_names_its_axes_and_the_day():
    texts = " ".join(element.text for element in drawn([result()]).iter("text"))
    assert "written by jaxlib" in texts
    assert "read by jaxlib" in texts
    assert "as of 2026-11-22" in texts


def test_no_month_is_left_out_where_there_is_room():
    picture = drawn([result(reader=name) for name in ("0.9.2", "0.10.2", "0.12.0.1")])
    months = [one.text for one in picture.iter("text") if one.get("class") == "month"]
    assert months == ["Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


@pytest.mark.parametrize(("writer", "is_clipped"), [("0.12.0.1", (False, True)), ("0.9.2", (True, False))])
def test_a_window_beyond_the_map_is_drawn_without_an_edge_there(writer, is_clipped):
    (clip,) = [one for one in drawn([result(writer=writer, reader="0.10.2")]) if one.tag == "svg"]
    band = clip.find("rect")
    left = float(band.get("x"))
    assert (left < 0, left + float(band.get("width")) > float(clip.get("width"))) == is_clipped


def test_map_tables_and_sentences_name_a_release_the_same_way():
    other = {"jax": "0.11.2"}
    crash = result(Verdict.CRASH, Judgement.BROKEN, writer="0.11.2", reader="0.12.0", message="died")
    crash = msgspec.structs.replace(crash, reader=msgspec.structs.replace(crash.reader, **other))
    older = msgspec.structs.replace(
        result(writer="0.11.2", reader="0.12.0"),
        golden="tests.test_a.test_f/0.11.2-jax0.11.2-cpu",
        writer=msgspec.structs.replace(crash.writer, **other),
    )
    report = document([result(writer="0.11.2", reader="0.12.0"), crash, older])
    data = page_data(report)["tables"]
    media = {
        "map": map_svg(release_map(report.run)),
        "page": html_page(report),
        "data": " ".join(named["title"] for name in ("reader", "writer") for named in data[name]),
        "markdown": markdown_text(report),
        "terminal": printed(print_report, report),
        "cells": printed(print_cells, report.run),
    }
    for medium, text in media.items():
        for name in ("0.12.0 (jax 0.11.2)", "0.11.2 (jax 0.12.0.1)"):
            assert name in text, medium
        assert not re.search(r"0\.11\.2 jax|0 · 0\.1", text), medium


def printed(draw, shown):
    file = io.StringIO()
    draw(Console(file=file, width=200), shown)
    return file.getvalue()


@pytest.mark.parametrize("links", [False, True])
def test_long_names_are_inside_the_picture(links):
    nightly = msgspec.structs.replace(release("0.12.0.1"), jaxlib="0.13.0.dev20261120", jax="0.13.0.dev20261120")
    read = [result(writer="0.11.0", reader="0.12.0"), msgspec.structs.replace(result(writer="0.11.0"), reader=nightly)]
    wrote = msgspec.structs.replace(
        result(), golden="t/x", writer=msgspec.structs.replace(result().writer, jaxlib="0.13.0.dev20261120")
    )
    picture = drawn([*read, wrote], links=links)
    width = float(picture.get("viewBox").split()[2])
    names = [text for text in picture.iter("text") if text.get("class") in ("writer", "reader")]
    for text in names:
        long = width_of(text.text or "", 11.5)
        if text.get("class") == "writer":
            assert float(text.get("x")) >= long
        else:
            start = float(re.search(r"translate\(([\d.]+)", text.get("transform"))[1])
            assert start + 0.71 * long <= width
    assert sum("dev" in (text.text or "") for text in names) == 2

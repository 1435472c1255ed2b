"""The speed of a report's HTML page in Chromium. It needs the dependency group `browser`."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.budgets import BUDGETS
from benchmarks.line import Line
from export_core.report.page import html_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

SIZES = (4_692, 25_000, 100_000)
PARTS = ("first paint", "ready", "a filter", "opening a cell", "a frame while scrolling")
"""What is timed, in milliseconds. The time of a frame is the fourth slowest of 60: other processes may delay some."""

# Each time ends when the frame that shows it has been drawn.
_MEASURE = """async () => {
    const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const timed = async (act) => {
        const start = performance.now();
        act();
        await drawn();
        return performance.now() - start;
    };
    const field = document.getElementById("query"), grid = document.getElementById("grid");
    const type = (text) => () => { field.value = text; field.dispatchEvent(new Event("input")); };
    // It may come later than `ready`.
    while (!performance.getEntriesByName("first-contentful-paint").length) await drawn();
    const times = {
        "first paint": performance.getEntriesByName("first-contentful-paint")[0].startTime,
        "ready": performance.getEntriesByName("ready")[0].startTime,
    };
    const filters = [];
    for (const text of ["sigsegv", "judgement:broken case:*cholesky*", "-verdict:pass", "0.9 model_1", ""])
        filters.push(await timed(type(text)));
    times["a filter"] = Math.max(...filters);
    times["opening a cell"] = await timed(() => document.querySelector("#grid .cell").click());
    document.getElementById("close").click();
    await drawn();
    const frames = [];
    for (let frame = 0; frame < 60; frame += 1) frames.push(await timed(() => { grid.scrollTop += 700; }));
    times["a frame while scrolling"] = frames.sort((one, other) => one - other)[56];
    return times;
}"""


def measure() -> list[Line]:
    """Measure pages with `SIZES` cells; return no lines if Playwright or a browser is missing."""
    if importlib.util.find_spec("playwright") is None:
        print("page: not measured, as playwright is not installed", file=sys.stderr)
        return []
    from playwright.sync_api import Error, sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        installed = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            # The sandbox of a browser needs rights that root in a container has not.
            browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        except Error as error:
            print(f"page: not measured, as no browser starts: {str(error).splitlines()[0]}", file=sys.stderr)
            return []
        times: dict[str, list[float]] = {what: [] for what in PARTS}
        for cells in SIZES:
            file = Path(scratch) / f"report-{cells}.html"
            file.write_text(_page(cells), encoding="utf-8")
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            for what, took in times_of(page, file).items():
                times[what].append(took)
            page.close()
        browser.close()
    return [_line(what, took) for what, took in times.items()]


def times_of(page: Page, file: Path) -> dict[str, float]:
    """Load a file into a browser's page, and return how long each of `PARTS` took, in milliseconds."""
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    times: dict[str, float] = page.evaluate(_MEASURE)
    return times


def _line(what: str, times: Sequence[float]) -> Line:
    """Return the line of one of `PARTS`. `times` has its milliseconds in each of `SIZES`; the slowest is limited."""
    measured = ", ".join(f"{took:.0f}" for took in times)
    sizes = ", ".join(f"{cells:,}" for cells in SIZES)
    slowest, budget = max(times), BUDGETS[what].limit
    return Line(
        f"the page: {what}",
        f"{measured} ms",
        f"{sizes} cells",
        f"{slowest:.0f} ms",
        f"{budget:.0f} ms",
        slowest <= budget,
    )


def _page(cells: int) -> str:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # as pytest has it
    from example_runs import large_run
    from making import document

    return html_page(document(*large_run(cells)))

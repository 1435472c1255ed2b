"""The page of a report in Chromium: how long a filter takes over many cells. Needs the dependency group `browser`."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.line import Line
from export_core.judge import Result, summarize
from export_core.policy import Policy
from export_core.report.html import html_page

CELLS = 25_000
FILTER_BUDGET_MS = 5000.0
"""On two idle cores it takes 100 ms."""
_FILTER = """() => {
    const started = performance.now(), text = document.getElementById('by-text');
    text.value = 'sigsegv';
    text.dispatchEvent(new Event('input'));
    return performance.now() - started;
}"""


def measure() -> list[Line]:
    """One line, or none where Playwright or a browser is missing."""
    if importlib.util.find_spec("playwright") is None:
        print("page: left out, as playwright is not installed", file=sys.stderr)
        return []
    from playwright.sync_api import Error, sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        file = Path(scratch) / "report.html"
        file.write_text(_page(), encoding="utf-8")
        installed = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            # The sandbox of a browser needs rights that root in a container has not.
            browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        except Error as error:
            print(f"page: left out, as no browser starts: {str(error).splitlines()[0]}", file=sys.stderr)
            return []
        page = browser.new_page()
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        milliseconds = float(page.evaluate(_FILTER))
        browser.close()
    return [
        Line(
            f"a filter on the page of {CELLS:,} cells",
            f"{milliseconds:.0f} ms",
            "",
            f"{milliseconds:.0f} ms",
            f"{FILTER_BUDGET_MS:.0f} ms",
            milliseconds <= FILTER_BUDGET_MS,
        )
    ]


def _page() -> str:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # as pytest has it
    from making import day, result

    pairs = [(writer, reader) for writer in ("0.9.2", "0.10.0") for reader in ("0.9.2", "0.10.0", "0.10.1", "0.10.2")]
    cells = [result(writer=writer, reader=reader) for writer, reader in pairs]
    results: list[Result] = [
        msgspec.structs.replace(cell, case=f"t.test_{number}", golden=f"t.test_{number}/{cell.writer.jaxlib}-cpu")
        for number in range(CELLS // len(cells))
        for cell in cells
    ]
    results[5] = msgspec.structs.replace(results[5], message="died by signal 11 (SIGSEGV)")
    day_of_run = day("2026-11-21")
    return html_page(
        results,
        summarize(results, planned=CELLS, policy=Policy(), as_of=day_of_run, selection={"whole": True}, seconds=1),
    )

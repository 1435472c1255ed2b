"""The example of a report in Markdown, as a pull request shows it: a run with 67 broken cells of three causes.

``python -m tools.example_report [FILE]`` writes the part that is not folded; tests/example_runs.py makes the run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools import renew

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "example-report.md"


def example() -> str:
    """Return what `jaxexport report --markdown` writes for the example run, up to its first folded part."""
    sys.path.insert(0, str(ROOT / "tests"))
    from example_runs import broken_run

    from export_core.report.markdown import markdown_text
    from export_core.report.view import view
    from export_core.run.run import Run

    seen, folded, _ = markdown_text(view(Run(*broken_run()))).partition("<details><summary>")
    assert folded
    return f"{seen}Every other finding follows, folded.\n"


if __name__ == "__main__":
    renew(Path(*sys.argv[1:] or [PAGE]), example())

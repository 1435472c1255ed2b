"""The page docs/evidence/surface.md, from matrix runs: ``python tools/surface_page.py RESULTS_DIR… PAGE``."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from export_core.judge import Judgement, Result
from export_core.releases import load_calendar
from export_core.run.results import read_run

COMPAT = Path(__file__).parents[1] / "tests" / "compat"

HEAD = """# What is exported, and who runs it

Made by `python tools/surface_page.py .jaxexport docs/evidence/surface.md` after
`nox -s compat_matrix -- --as-of {as_of}`: {cells} cells, each a golden of this
repository in a fresh process of a reader.

Each section is a module of `tests/compat`, each row a writer, each column a reader: both are jaxlib releases, ordered
by build date. A number counts the goldens that passed all their checks: outputs, derivatives, further shapes, refusals,
meshes. In parentheses: outside the promise for these two dates. What JAX's documents say of all this, with a test for
each statement, is in [statements.md](statements.md).
"""


def table(results: Sequence[Result], as_of: str) -> str:
    """The page, from the cells of a matrix run."""
    parts = [HEAD.format(as_of=as_of, cells=len(results))]
    sections: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        sections[result.case.split(".")[2]].append(result)
    for module in sorted(sections):
        parts.append(section(module, sections[module]))
    return "\n".join(parts)


def section(module: str, results: Sequence[Result]) -> str:
    """One module of cases: its description, a row for each writer, and what did not pass."""
    built = load_calendar().built
    writers = sorted({result.writer.jaxlib for result in results}, key=built)
    readers = sorted({result.reader.jaxlib for result in results}, key=built)
    names = dict.fromkeys(result.case.split(".", 3)[3] for result in results)
    lines = [f"## {about(module)}", "", wrapped(f"`tests/compat/{module}.py`: {', '.join(names)}."), ""]
    lines += ["| writer ↓ reader → | " + " | ".join(readers) + " |", "|---" * (len(readers) + 1) + "|"]
    lines += [
        row(writer, readers, [result for result in results if result.writer.jaxlib == writer]) for writer in writers
    ]
    return "\n".join([*lines, "", *others(results)])


def row(writer: str, readers: Sequence[str], results: Sequence[Result]) -> str:
    """The cells of one writer's goldens, counted by reader."""
    cells = [cell([result for result in results if result.reader.jaxlib == reader]) for reader in readers]
    return f"| {writer} | " + " | ".join(cells) + " |"


def cell(results: Sequence[Result]) -> str:
    """``9``, ``8, 1 crash, known``; ``(9)`` outside the promise; nothing where no cell was planned."""
    if not results:
        return ""
    counts = Counter(word(result) for result in results)
    text = ", ".join(f"{count} {name}".strip() for name, count in sorted(counts.items()))
    return text if all(result.promised for result in results) else f"({text})"


def word(result: Result) -> str:
    """Nothing for a pass; else the verdict, with its judgement where it is a known failure."""
    if result.judgement.facts.works:
        return "" if result.verdict == "pass" else str(result.verdict)
    return f"{result.verdict}, {result.judgement}" if result.judgement is Judgement.KNOWN else str(result.verdict)


def others(results: Sequence[Result]) -> Iterator[str]:
    """What did not pass: a line for cases with the same outcome in the same readers."""
    readers: dict[tuple[str, ...], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if not result.judgement.facts.works:
            first = (result.message.splitlines() or [""])[0]
            short = first if len(first) <= 160 else first[:157] + "..."
            outcome = (result.writer.jaxlib, str(result.verdict), str(result.stage), str(result.judgement), short)
            readers[outcome][result.case.split(".", 3)[3]].append(result.reader.jaxlib)
    built = load_calendar().built
    for outcome in sorted(readers):
        writer, verdict, stage, judgement, message = outcome
        same_readers: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name, jaxlibs in sorted(readers[outcome].items()):
            same_readers[tuple(sorted(jaxlibs, key=built))].append(name)
        for read_by, names in same_readers.items():
            cells = f"{', '.join(names)} by {writer} in {', '.join(read_by)}"
            yield wrapped(f"- {cells}: {verdict} in stage {stage}, {judgement}: `{message}`", indent="  ")
    if readers:
        yield ""


def wrapped(text: str, indent: str = "") -> str:
    """Prose in lines of at most 120 characters."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def about(module: str) -> str:
    """The first line of the module's docstring."""
    text = ast.get_docstring(ast.parse((COMPAT / f"{module}.py").read_text(encoding="utf-8")))
    return (text or module).splitlines()[0].rstrip(".")


if __name__ == "__main__":
    *folders, page = map(Path, sys.argv[1:])
    runs = [read_run(folder) for folder in folders]
    every = [result for run in runs for result in run.results]
    page.write_text(table(every, str(runs[0].summary.as_of)), encoding="utf-8")

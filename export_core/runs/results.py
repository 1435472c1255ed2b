"""The two files that a run leaves: results.jsonl, a judged cell on each line, and summary.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from export_core.atomic import write_whole
from export_core.escaping import safe_json
from export_core.judge.gate import Summary
from export_core.judge.result import Result
from export_core.policy import Policy
from export_core.runs.errors import ResultsNotWritten, RunError
from export_core.runs.journal import PLAN, RESULTS, SUMMARY
from export_core.untrusted import decode_json


def result_line(result: Result) -> bytes:
    """A result as its line of results.jsonl, without the line break."""
    return safe_json(result)


def write_summary(folder: Path, summary: Summary) -> None:
    """Write summary.json beside results.jsonl, all or nothing.

    Raises `ResultsNotWritten` where there is no room for it.
    """
    try:
        write_whole(folder / SUMMARY, [safe_json(summary, indent=2), b"\n"])
    except OSError as error:
        raise ResultsNotWritten(f"{folder / SUMMARY}: cannot be written: {error.strerror or error}.") from error


def read_results(folder: Path) -> Iterator[Result]:
    """The results of a results.jsonl. Raises `RunError` for a line that is not a result, and names it."""
    path = folder / RESULTS
    try:
        # As bytes: a str would also be split at U+2028 and others, which JSON leaves as they are in a message.
        lines = path.read_bytes().splitlines()
    except OSError:
        raise RunError(f"{path}: expected the results of a matrix run, found none.") from None
    for number, line in enumerate(lines, 1):
        try:
            yield decode_json(line, Result)
        except msgspec.MsgspecError as error:
            raise RunError(f"{path}:{number}: not a result: {error}.") from None


def read_summary(folder: Path) -> Summary:
    """The summary.json of a run, whose policy this version reads.

    Raises `RunError` if there is none, or if another version wrote it in another form.
    """
    path = folder / SUMMARY
    try:
        summary: Summary = decode_json(path.read_bytes(), Summary)
        # All that a later command will use is checked here, where the message can name the file.
        msgspec.convert(summary.policy, Policy)
        if not isinstance(whole := summary.selection.get("whole"), bool):
            raise msgspec.ValidationError(f"Expected `selection.whole` to be true or false, found {whole!r}")
        return summary
    except OSError:
        found = (
            "a run that has not finished: `jaxexport matrix --resume` continues it"
            if (folder / PLAN).exists()
            else "none"
        )
        raise RunError(f"{path}: expected the summary of a finished matrix run, found {found}.") from None
    except msgspec.MsgspecError as error:
        raise RunError(f"{path}: not a summary that this version reads: {error}.") from None


def read_run(folder: Path) -> tuple[list[Result], Summary]:
    """The results of a finished run with their summary.

    Raises `RunError` if there are none, or not as many as the summary counts.
    """
    summary = read_summary(folder)
    results = list(read_results(folder))
    if not results or len(results) != summary.results:
        raise RunError(
            f"{folder / RESULTS}: expected the {summary.results} results that {SUMMARY} counts, and at least one, "
            f"found {len(results)}. Run the matrix again."
        )
    return results, summary

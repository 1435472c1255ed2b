"""The start of the command `jaxexport`: `inspect FILE` at once, everything else through click.

A person waits for `inspect`, and click with what it imports takes longer than reading an artifact: 50 ms of 90.
"""

import os
import sys

from export_core.base.errors import NOBODY_READS, PREFIX, ExportCompatError, report_unforeseen


def main() -> None:
    """Run the command; whatever is not just `inspect FILE [--json]` goes to click."""
    words = sys.argv[1:]
    files = [word for word in words[1:] if not word.startswith("-")]
    # An option such as --policy takes a value, which cannot be told from a file here: click does that.
    quick = words[:1] == ["inspect"] and len(files) == 1 and not set(words[1:]) - {*files, "--json"}
    if not quick or os.path.isdir(files[0]):  # noqa: PTH112 - pathlib takes 5 ms to import
        from export_core.cli.app import main as through_click

        through_click()
        return

    try:
        from export_core.features.inspect.inspect_text import inspect_text

        text = inspect_text(files[0], as_json="--json" in words)
    except ExportCompatError as error:
        print(f"{PREFIX}{error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception as error:
        sys.exit(report_unforeseen(error))
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # where a terminal cannot show ×
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; Python would complain once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(NOBODY_READS)

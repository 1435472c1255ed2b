"""The start of the command `jaxexport`: a feature may answer at once, everything else goes through click.

A person waits for `inspect`. Through click it takes 90 ms, 50 of them to import click, which is more than reading an
artifact takes. The garbage collector takes 10 ms of the rest, and a process that ends at once needs none.
"""

import gc
import sys

from export_core.base.errors import PREFIX, ExportCompatError, report_unforeseen, with_prefix
from export_core.base.feature import start_quickly
from export_core.base.streams import prepare_streams


def main() -> None:
    """Run the command line. A feature with a fast path for the command runs it; otherwise click does."""
    try:
        _answer()
    except KeyboardInterrupt:  # Ctrl-C before click watches for it, as while click is imported
        print(f"{PREFIX}interrupted.", file=sys.stderr)
        sys.exit(130)


def _answer() -> None:
    prepare_streams()
    gc.disable()
    try:
        start_quickly(sys.argv[1:])
    except SystemExit:
        gc.freeze()  # else the interpreter looks through all objects once more before it ends
        raise
    except ExportCompatError as error:
        print(with_prefix(error), file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception as error:
        sys.exit(report_unforeseen(error))
    gc.enable()
    from export_core.cli.app import main as through_click

    through_click()

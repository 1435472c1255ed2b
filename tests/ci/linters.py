"""The linters of workflows: check-jsonschema runs in this process, the other tools in processes."""

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner


def check(tool: str, *words: str | Path, text: str | None = None) -> None:
    command = [Path(sys.executable).with_name(tool), *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def check_schema(name: str, *words: str | Path) -> None:
    """Check files by a schema of check-jsonschema, which is slow to import: so it is imported once, and here."""
    from check_jsonschema import main

    done = CliRunner().invoke(main, ["--builtin-schema", f"vendor.{name}", *map(str, words)])
    assert done.exit_code == 0, done.output

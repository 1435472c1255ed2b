"""What workflows are checked with: check-jsonschema in this process, other tools as processes."""

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner


def check(tool: str, *words: str | Path, text: str | None = None) -> None:
    command = [Path(sys.executable).with_name(tool), *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def check_schema(name: str, *words: str | Path) -> None:
    """By a schema of check-jsonschema, which takes as long to import as to check a file."""
    from check_jsonschema import main

    done = CliRunner().invoke(main, ["--builtin-schema", f"vendor.{name}", *map(str, words)])
    assert done.exit_code == 0, done.output

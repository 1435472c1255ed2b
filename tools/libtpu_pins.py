"""Add to the table of libtpu pins what the calendar has and the table lacks, by asking uv: python -m tools.libtpu_pins."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import export_core.environments
from export_core.environments.build import uv_command
from export_core.environments.libtpu import load_pins
from export_core.releases import load_calendar

TABLE = Path(export_core.environments.__file__).with_name("data") / "libtpu.yaml"
HEAD = """# The libtpu that jax[tpu] pins, by the version that jax and jaxlib share. Written by `python -m tools.libtpu_pins`.
# Releases before 0.5.1 pin libtpu-nightly, which is no longer on the index.
"""


def main() -> None:
    """Renew the table."""
    calendar, pins = load_calendar(), dict(load_pins())
    for version in calendar.versions():
        if version in pins or calendar.built(version) < calendar.built("0.5.1"):
            continue
        python = max(calendar.pythons(version), key=lambda text: tuple(map(int, text.split("."))))
        command = [uv_command(), "pip", "compile", "--quiet", "--python-version", python, "-"]
        asked = subprocess.run(command, input=f"jax[tpu]=={version}", capture_output=True, text=True, check=False)
        if found := re.search(r"^libtpu==(\S+)", asked.stdout, re.MULTILINE):
            pins[version] = found[1]
        else:
            print(f"{version}: {asked.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    lines = (f'"{version}": "{pin}"\n' for version, pin in pins.items())
    TABLE.write_text(HEAD + "".join(lines))


if __name__ == "__main__":
    main()

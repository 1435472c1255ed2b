"""The writer of the table of libtpu pins: `python -m tools.libtpu_pins` asks uv about releases that are not in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

import export_core.readers
from export_core.base.atomic import write_whole
from export_core.readers.build import uv_command
from export_core.readers.placement import load_pins
from export_core.releases import load_calendar

TABLE = Path(export_core.readers.__file__).with_name("data") / "libtpu.yaml"
HEAD = """\
# The libtpu that jax[tpu] pins, by the version that jax and jaxlib share. Written by `python -m tools.libtpu_pins`.
# Releases before 0.5.1 pin libtpu-nightly, which is no longer on the index.
"""


def main() -> None:
    """Add the releases since 0.5.1 that the table lacks, each with the version of libtpu that it pins."""
    calendar, pins = load_calendar(), dict(load_pins())
    for version in calendar.versions():
        if version in pins or calendar.built(version) < calendar.built("0.5.1"):
            continue
        python = max(calendar.pythons(version), key=Version)
        command = [uv_command(), "pip", "compile", "--quiet", "--python-version", python, "-"]
        resolved = subprocess.run(command, input=f"jax[tpu]=={version}", capture_output=True, text=True, check=False)
        if pin := find_pin(resolved.stdout):
            pins[version] = pin
        else:
            print(f"{version}: {resolved.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    lines = (f'"{version}": "{pin}"\n' for version, pin in pins.items())
    write_whole(TABLE, [HEAD.encode(), *(line.encode() for line in lines)])


def find_pin(resolved: str) -> str:
    """Return the version of libtpu among resolved requirements, one on each line; "" if libtpu is not among them."""
    for line in resolved.splitlines():
        try:
            requirement = Requirement(line.partition("#")[0].strip())
        except InvalidRequirement:  # a comment
            continue
        if requirement.name == "libtpu":
            return next(iter(requirement.specifier)).version
    return ""


if __name__ == "__main__":
    main()

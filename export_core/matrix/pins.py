"""Which libtpu was published with a jaxlib? Its jax wheel pins one.

``python -m export_core.matrix.pins`` adds to the table what the calendar has and the table lacks, by asking uv.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import yaml

_HEAD = """# The libtpu that jax[tpu] pins, by the version that jax and jaxlib share. Written by `python -m export_core.matrix.pins`.
# Releases before 0.5.1 pin libtpu-nightly, which is no longer on the index.
"""


def libtpu_for(jaxlib: str) -> str | None:
    """The version of libtpu that was published with this jaxlib; None where the table lacks it."""
    return _pins().get(jaxlib)


@functools.cache
def _pins() -> dict[str, str]:
    text = resources.files("export_core.matrix").joinpath("data/libtpu.yaml").read_text()
    return yaml.safe_load(text) or {}


def _renew() -> None:
    from export_core.matrix.building import uv_command
    from export_core.releases import load_calendar

    calendar, pins = load_calendar(), dict(_pins())
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
    Path(__file__).with_name("data").joinpath("libtpu.yaml").write_text(_HEAD + "".join(lines))


if __name__ == "__main__":
    _renew()

"""The command that a result prints, which gives the same verdict and message and leaves the first run alone."""

import hashlib
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from replaying import misbehaving

from export_core.matrix import cached_replay
from export_core.run.results import RESULTS

pytestmark = pytest.mark.usefixtures("forked_workers")


@pytest.fixture(autouse=True)
def _project(monkeypatch, cwd, golden_folder, flaky) -> None:
    """A project with goldens in a folder that no policy names, and with this interpreter as the reader."""
    flaky.touch()
    monkeypatch.setenv("JAXEXPORT_CACHE", str(cwd / "cache"))
    monkeypatch.setattr(cached_replay.ReaderEnvironments, "build", lambda _, placement: misbehaving(placement.reader))
    for case in BROKEN:
        shutil.copytree(golden_folder / case, cwd / "other goldens" / case)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


BROKEN = {
    "is_flaky": ("timeout", "after 1 s, killed"),
    "eats_memory": ("crash", "more than the limit of 0.9 GiB"),
    "other_numbers": ("numerics", "elements differ"),
}


def lines(folder: Path) -> dict[str, dict[str, Any]]:
    return {line["case"]: line for line in map(json.loads, (folder / RESULTS).read_text().splitlines())}


# Cells that must not time out have a limit that is long enough for any machine.
@pytest.mark.parametrize(("cases", "timeout"), [(("is_flaky",), "1"), (("eats_memory", "other_numbers"), "60")])
def test_the_printed_command_reproduces_a_cell(cases, timeout, jaxexport, here):
    chosen = [word for case in cases for word in ("--cases", case)]
    options = ["--goldens", "other goldens", "--readers", here.jaxlib, "--timeout", timeout, "--memory", "0.9"]
    jaxexport("matrix", *chosen, *options, "--quiet", code=1)
    folder = Path(".jaxexport")
    first, before = lines(folder), digests(folder)
    for case in cases:
        verdict, message = BROKEN[case]
        assert (first[case]["verdict"], message in first[case]["message"]) == (verdict, True)
        command = shlex.split(first[case]["reproduce"])
        jaxexport(*command[1:], code=1)
        (again,) = lines(folder / "reproduced").values()
        for name in ("case", "verdict", "message", "stage"):
            assert again[name] == first[case][name]
        assert digests(folder) == before

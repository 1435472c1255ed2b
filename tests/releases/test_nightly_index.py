"""A nightly from a package index as the reader of goldens, with a real index, jax and jaxlib."""

import functools
import hashlib
import http.server
import importlib.metadata
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from making import NEWEST

from export_core.policy import load_policy
from export_core.readers.environment import ReaderEnvironments
from export_core.readers.placement import Placement
from tools.stored_results import read_results

pytestmark = pytest.mark.weekly
ROOT = Path(__file__).parents[2]
NIGHTLY, BUILT = "0.12.1.dev20261101", "2026-11-01"


def repack(site: Path, name: str, folder: Path) -> None:
    """Make a wheel of an installed package, as the nightly of the same code would be."""
    (found,) = importlib.metadata.distributions(name=name, path=[str(site)])
    tags = next(line for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: "))[5:]
    folder.mkdir(parents=True)
    old, new = f"{name}-{found.version}.dist-info", f"{name}-{NIGHTLY}.dist-info"
    record = ""
    with zipfile.ZipFile(folder / f"{name}-{NIGHTLY}-{tags}.whl", "w") as wheel:
        for file in found.files or ():
            if file.parts[0] == ".." or file.name in ("RECORD", "INSTALLER", "REQUESTED"):
                continue
            data = Path(str(file.locate())).read_bytes()
            if file.name in ("METADATA", "version.py"):
                data = data.replace(found.version.encode(), NIGHTLY.encode())
                # An extra may want 0.12.0.*, which no nightly has.
                data = b"".join(line for line in data.splitlines(keepends=True) if b"; extra ==" not in line)
            path = str(file).replace(old, new)
            wheel.writestr(path, data)
            record += f"{path},,\n"
        wheel.writestr(f"{new}/RECORD", f"{record}{new}/RECORD,,\n")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The URL of a simple index (PEP 503) on this machine."""
    calendar = load_policy(ROOT / "export_compat.yaml").calendar()
    environment = ReaderEnvironments(calendar).build(Placement(calendar.release(NEWEST)))
    asked = [str(environment.python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    for name in ("jax", "jaxlib"):
        folder = tmp_path / "index" / "simple" / name
        repack(site, name, folder)
        (wheel,) = folder.iterdir()
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "index"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def test_a_nightly_is_judged_by_the_day_in_its_version(index, cwd, jaxexport, monkeypatch):
    monkeypatch.setenv("JAXEXPORT_CACHE", str(cwd / "cache"))  # nobody else can use its environment
    for writer in ("0.9.2", NEWEST):
        golden = Path("golden") / "tests.compat.test_programs.test_sort" / f"{writer}-cpu"
        shutil.copytree(ROOT / golden, golden)
    words = ("--readers", f"{NIGHTLY},{NEWEST}", "--index", index, "--results", "results", "--as-of", "2026-11-21")
    jaxexport("matrix", *words, code=0)
    nightly = [result for result in read_results(cwd / "results") if result.reader.jaxlib == NIGHTLY]
    assert {str(result.reader.built) for result in nightly} == {BUILT}
    newest = [result for result in nightly if result.writer.jaxlib == NEWEST]
    assert [(result.verdict, result.judgement, result.days) for result in newest] == [("pass", "kept", 12)]
    assert all(f"--index {index}" in result.reproduce for result in nightly)

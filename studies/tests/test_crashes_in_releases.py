"""The commands on goldens that crash in some releases: reduce finds the operation, bisect the release."""

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from commands import wait_for

from export_core.features.why.bisect.bisection_report import Bisection
from export_core.features.why.reduce.reduction import STEPS, ReductionFolder
from export_core.goldens import Golden
from export_core.goldens.manifest_file import load_manifest

pytestmark = pytest.mark.weekly
ROOT = Path(__file__).parents[2]
CELL = ("--cases", "tests.compat.test_linear_algebra.test_svd", "--writers", "0.11.0", "--readers", "0.9.2")


def test_a_lapack_crash_reduces_to_one_custom_call(jaxexport, tmp_path):
    """Until 0.9.2, a process that has lowered no LAPACK call has not loaded LAPACK, and crashes.

    The test also interrupts the reduction by Ctrl-C, and resumes it.
    """
    folder = tmp_path / "reduced"
    words = ("reduce", *CELL, "--goldens", str(ROOT / "golden"), "-o", str(folder))
    with subprocess.Popen([sys.executable, "-m", "export_core", *words], stderr=subprocess.PIPE, text=True) as running:
        wait_for(lambda: (folder / STEPS).exists() and (folder / STEPS).read_bytes().count(b"\n") > 2, "a step")
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    assert running.returncode == 130, err
    assert "The same command with --resume continues" in err
    reduction, steps, _ = ReductionFolder(folder).read()
    assert steps[-1].operations < reduction.operations

    ended = jaxexport(*words, "--resume", "--quiet")
    assert ended.code == 0, ended.err
    first, second, names, written, report = ended.out.splitlines()
    assert first.endswith("in 0.9.2-jax0.9.2 on cpu: crash in stage run: died by signal 11 (SIGSEGV)")
    assert second.startswith(f"{reduction.operations} operations → 1, ")
    assert names == "  stablehlo.custom_call @lapack_sgesdd_ffi"
    assert written == f"written: {folder}"
    assert report.startswith("to report it: jaxexport explain ")
    golden = Golden(load_manifest(folder / "golden.yaml"), folder)
    golden.verify()  # its writer has computed the outputs
    assert golden.manifest.writer.jaxlib == "0.11.0"
    assert len(golden.outputs()) == len(golden.read_artifact().envelope.out_avals)


def test_bisect_finds_the_release_that_fixed_lapack(jaxexport, monkeypatch):
    monkeypatch.chdir(ROOT)
    cell = "tests.compat.test_linear_algebra.test_cholesky/0.9.2-cpu in 0.9.2 on cpu"
    ended = jaxexport("bisect", cell, "--good", "0.10.0", "--as-of", "2026-11-22", "--json")
    found = msgspec.json.decode(ended.out, type=Bisection)
    assert ended.code == 0
    assert [(each.reader.jaxlib, str(each.verdict)) for each in found.tried] == [("0.9.2", "crash"), ("0.10.0", "pass")]
    assert found.first_bad
    assert found.first_bad.jaxlib == "0.9.2"
    assert "compare/a659757d768587a81d095a9fab5f0c36f8beb218..." in found.commits[1].link, "as jaxlib 0.9.2 says"

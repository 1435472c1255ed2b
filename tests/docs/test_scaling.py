"""The commands of docs/how-to/many-machines.md, run as written. tests/ci runs those of docs/ci."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from export_core.run.results import read_summary
from tools.stored_results import read_results

ROOT = Path(__file__).parents[2]
CASES = ("waves", "both", "keys", "other_numbers")
POLICY = "readers: 0.11.2,0.12.0.1\n"
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
"""Settings without which a process of Dask looks at itself up to a hundred times a second while it waits."""

pytestmark = pytest.mark.matrix


def blocks(heading: str, language: str) -> list[str]:
    section = (ROOT / "docs" / "how-to" / "many-machines.md").read_text().split(f"\n## {heading}")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, flags=re.DOTALL)


@pytest.fixture
def warm(warm_programs, monkeypatch) -> None:
    """The command `jaxexport` as a fork of a process that has imported all, if it can fork."""
    if warm_programs:
        monkeypatch.setenv("PATH", f"{warm_programs}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def project(small, tmp_path, monkeypatch) -> Path:
    """A small project, and a `PATH` with this interpreter's commands first."""
    shutil.copytree(small, tmp_path / "project")
    (tmp_path / "project" / "export_compat.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "project"


def shell(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    words, env = ["bash", "-c", script], {**os.environ, **variables}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env, timeout=300)


def check_whole_run(folder: Path, readers: int = 2) -> None:
    """Check that all results are there: one case differs in each reader, and all others pass."""
    cells = len(CASES) * readers
    assert len(read_results(folder)) == cells
    summary = read_summary(folder)
    verdicts = {"numerics": readers, "pass": cells - readers}
    assert (summary.planned, summary.verdicts, summary.exit_code) == (cells, verdicts, 1)


def test_shards_are_merged_into_one_whole_run(project, warm):
    (script,) = blocks("Shards", "sh")
    done = shell(script)
    assert done.returncode == 1, done.stderr
    check_whole_run(project / "jaxexport-results")


def test_kubernetes_pods_give_one_whole_run(project, warm):
    (text,) = blocks("Kubernetes", "yaml")
    spec = yaml.safe_load(text)["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    variables = {entry["name"]: entry["value"] for entry in container["env"]} | {"RESULTS": str(project / "results")}
    assert container["command"] == ["bash", "-c"]
    for index in range(spec["completions"]):
        done = shell(container["args"][0], JOB_COMPLETION_INDEX=str(index), **variables)
        assert done.returncode == 0, "a pod succeeds if it has stored its results"
    assert shell("jaxexport judge results/* --results merged").returncode == 1
    check_whole_run(project / "merged")


def test_slurm_tasks_give_one_whole_run(project, warm):
    (script,) = blocks("Slurm", "bash")
    last = int(re.search(r"--array=1-(\d+)", script)[1])
    for index in range(1, last + 1):
        variables = {"SLURM_ARRAY_TASK_ID": str(index), "SLURM_ARRAY_TASK_COUNT": str(last), "SLURM_CPUS_PER_TASK": "2"}
        assert shell(script, **variables).returncode == 0
    assert shell("jaxexport judge jaxexport-shards/* --results merged").returncode == 1
    check_whole_run(project / "merged")


def on_dask(script: str, folder: Path) -> int:
    """Run the last command of a block, and return its exit code; the block's `dask` commands run in the background."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        script = script.replace("8786", str(free.getsockname()[1])).replace("127.0.0.1:8787", "127.0.0.1:0")
    script = script.replace("--nworkers 3", "--nworkers 2")  # one for each reader
    lines = script.strip().splitlines()
    exports = "\n".join(line for line in lines if line.startswith("export "))
    background = []
    try:
        for line in (line for line in lines if line.startswith("dask ")):
            with (folder / f"log-{len(background)}").open("wb") as log:
                command = ["bash", "-c", f"{exports}\nexec {line}"]
                given = os.environ | QUIET
                background.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=given))
            time.sleep(2)
        return shell(f"{exports}\n{lines[-1]}").returncode
    finally:
        for process in reversed(background):
            process.terminate()
            process.wait(timeout=60)


def test_dask_on_one_machine_gives_one_whole_run(project):
    assert on_dask(blocks("Dask", "sh")[0], project) == 1
    check_whole_run(project / ".jaxexport")


@pytest.mark.skipif(not shutil.which("openssl"), reason="certificates are made with openssl")
def test_dask_with_tls_gives_one_whole_run(project):
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=jaxexport -keyout key.pem -out cert.pem"
    subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
    shutil.copy("cert.pem", "ca.pem")
    (project / "export_compat.yaml").write_text("readers: 0.12.0.1\n")  # its one worker would start both readers
    script = blocks("Dask", "sh")[1]
    assert on_dask(script, project) == 1
    check_whole_run(project / ".jaxexport", readers=1)

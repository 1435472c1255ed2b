"""The exit code of the templates for Kubernetes and Slurm in docs/how-to/many-machines.md, by that of the matrix."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "many-machines.md"


def kubernetes(text: str) -> str:
    (block,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    (container,) = yaml.safe_load(block)["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["bash", "-c"]
    return container["args"][0]


def slurm(text: str) -> str:
    (block,) = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    return block


@pytest.mark.parametrize("template", [kubernetes, slurm])
@pytest.mark.parametrize(
    ("matrix", "summary", "succeeds"),
    [
        *((code, True, True) for code in (0, 1, 3, 4)),
        (2, True, False),  # the summary is of an earlier run, with another plan
        (137, True, False),
        (3, False, False),  # the disk was full
    ],
)
def test_a_shards_task_fails_without_results_of_this_run(tmp_path, template, matrix, summary, succeeds):
    results = tmp_path / "jaxexport-shards" / "1"
    results.mkdir(parents=True)
    if summary:
        (results / "summary.json").touch()
    command = tmp_path / "bin" / "jaxexport"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexit {matrix}\n")
    command.chmod(0o755)
    of_kubernetes = {"JOB_COMPLETION_INDEX": "1", "SHARDS": "3", "RESULTS": str(results.parent)}
    of_slurm = {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_CPUS_PER_TASK": "2"}
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", template(PAGE.read_text())],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, **of_kubernetes, **of_slurm},
        check=False,
    )
    assert (ended.returncode == 0) is succeeds

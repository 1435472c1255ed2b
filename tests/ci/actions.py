"""A small emulator of GitHub Actions, which runs each step in a real bash with GitHub's files and contexts.

The actions that `uses:` may name are in `EMULATED`. An unknown action, expression or command file is an error.
"""

import fnmatch
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml
from expressions import filled, wanted

FOR_THE_ACTION = ("README.md", "LICENSE", "pyproject.toml", "action.yml", "export_core", "pytest_jaxexport")
"""What the pages copy of this repository for the action, until the first release."""


class Workflow(dict[str, Any]):
    """A workflow or an action, read from YAML without taking the key `on` for a boolean."""

    @classmethod
    def read(cls, path: Path) -> Self:
        text = re.sub(r"^on:", '"on":', path.read_text(), flags=re.MULTILINE)
        return cls(yaml.safe_load(text))


def scripts(path: Path) -> dict[str, str]:
    """Return the shell of each step by its name."""
    read = Workflow.read(path)
    jobs = read.get("jobs", {"": read.get("runs")})
    found = [(step["name"], step["run"]) for job in jobs.values() for step in job["steps"] if "run" in step]
    named = dict(found)
    shared = [name for name, script in found if named[name] != script]
    assert not shared, f"steps with one name and different shell: {shared}"
    return named


@dataclass
class Job:
    """A job that has run: its result, the exit code of each step with shell, its outputs and its summary page."""

    name: str
    result: str = "success"
    codes: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    log: str = ""


@dataclass
class Actions:
    """An emulator of GitHub Actions: a checkout copies `project`, and a cache restores `environments`."""

    folder: Path
    project: Path
    environments: Path
    variables: dict[str, str]
    artifacts: dict[str, Path] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    cache_keys: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def run(
        self,
        path: Path,
        *,
        event: str = "push",
        inputs: Mapping[str, str] | None = None,
        done: Mapping[str, list[Job]] | None = None,
    ) -> dict[str, list[Job]]:
        """Run all jobs of a workflow, except those of `done`, which have ended elsewhere."""
        workflow = Workflow.read(path)
        assert event in workflow["on"], f"{path}: not for {event}"
        assert workflow["permissions"] == {"contents": "read"}
        given = dict(inputs or {})
        if event == "workflow_dispatch":
            declared = workflow["on"]["workflow_dispatch"]["inputs"]
            assert given.keys() <= declared.keys()
            given = {name: given.get(name, each.get("default", "")) for name, each in declared.items()}
        ran = dict(done or {})
        for name, job in workflow["jobs"].items():
            if name in ran:
                continue
            before = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            needs = {each: {"result": _worst(ran[each]), "outputs": ran[each][0].outputs} for each in before}
            contexts = {
                "needs": needs,
                "inputs": given,
                "vars": {},
                "github": {"event_name": event, "ref_type": "branch"},
                "env": {},
            }
            status = "success" if all(each["result"] == "success" for each in needs.values()) else "failure"
            if not wanted(job.get("if", ""), contexts, status):
                ran[name] = [Job(name, "skipped")]
                continue
            strategy = filled(job.get("strategy", {}), contexts)
            rows = strategy["matrix"]["include"] if strategy else [{}]
            ran[name] = []
            for row in rows:
                own = {**contexts, "matrix": row, "strategy": {"job-total": len(rows)}}
                ended = self._job(workflow, job, filled(job.get("name", name), own), own)
                ran[name].append(ended)
                self.jobs.append(ended)
        return ran

    def action(self, path: Path, **inputs: str) -> Job:
        """Run a composite action in a job of its own, in a checkout of the project."""
        action = Workflow.read(path)
        given = {name: inputs.get(name, each["default"]) for name, each in action["inputs"].items()}
        assert inputs.keys() <= given.keys()
        assert action["runs"]["using"] == "composite"
        job, workspace = self._begin("action")
        self._checkout(workspace)
        contexts = {**self._contexts(workspace), "inputs": given}
        variables = {**self._environment(workspace), "GITHUB_ACTION_PATH": str(path.parent)}
        self._steps(job, action["runs"]["steps"], contexts, variables, workspace)
        job.outputs = {name: filled(each["value"], contexts) for name, each in action["outputs"].items()}
        self.jobs.append(job)
        return job

    def _job(self, workflow: Workflow, job: Mapping[str, Any], title: str, contexts: Mapping[str, Any]) -> Job:
        done, workspace = self._begin(title)
        whole = {**contexts, **self._contexts(workspace)}
        whole["github"] = {**contexts["github"], **whole["github"]}
        own = filled({**workflow.get("env", {}), **job.get("env", {})}, whole)
        whole["env"] = own
        default = workflow.get("defaults", {}).get("run", {}).get("shell")
        self._steps(done, job["steps"], whole, {**self._environment(workspace), **own}, workspace, default)
        done.outputs = {name: filled(value, whole) for name, value in job.get("outputs", {}).items()}
        return done

    def _begin(self, title: str) -> tuple[Job, Path]:
        workspace = self.folder / f"job-{len(self.jobs)}" / "workspace"
        workspace.mkdir(parents=True)
        (workspace.parent / "temp").mkdir()
        return Job(title), workspace

    def _contexts(self, workspace: Path) -> dict[str, Any]:
        return {
            "github": {"workspace": str(workspace)},
            "runner": {"os": "Linux", "arch": "X64", "temp": str(workspace.parent / "temp")},
            "steps": {},
            "env": {},
        }

    def _environment(self, workspace: Path) -> dict[str, str]:
        return {**self.variables, "RUNNER_TEMP": str(workspace.parent / "temp"), "GITHUB_WORKSPACE": str(workspace)}

    def _steps(
        self,
        job: Job,
        steps: list[Mapping[str, Any]],
        contexts: dict[str, Any],
        variables: Mapping[str, str],
        workspace: Path,
        default: str | None = None,
    ) -> None:
        for number, step in enumerate(steps):
            label = step.get("name") or step.get("uses", "")
            runs = wanted(step.get("if", ""), contexts, job.result)
            outcome, outputs = "skipped", {}
            if runs and "uses" in step:
                outputs = self._use(step["uses"], filled(step.get("with", {}), contexts), workspace)
                outcome = "success"
            elif runs:
                assert "${{" not in step["run"], (
                    f"{label}: expected no expression in a script, where its text runs as code"
                )
                own = {**variables, **{name: str(each) for name, each in filled(step.get("env", {}), contexts).items()}}
                job.codes[label], outputs = self._bash(
                    job, step["run"], step.get("shell", default), own, workspace, number
                )
                outcome = "failure" if job.codes[label] else "success"
                job.result = "failure" if job.codes[label] else job.result
            if "id" in step:
                contexts["steps"][step["id"]] = {"outputs": outputs, "outcome": outcome}

    def _bash(
        self, job: Job, script: str, shell: str | None, variables: Mapping[str, str], workspace: Path, number: int
    ) -> tuple[int, dict[str, str]]:
        assert shell in (None, "bash"), f"expected bash, found another shell: {shell}"
        step_files = workspace.parent / f"step-{number}"
        step_files.mkdir()
        files = {
            name: step_files / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH")
        }
        for file in files.values():
            file.touch()
        (step_files / "script.sh").write_text(script)
        # As the runner calls it: with `shell: bash` a pipe fails where one of its parts does.
        options = ["--noprofile", "--norc", "-eo", "pipefail"] if shell else ["-e"]
        done = subprocess.run(
            ["bash", *options, str(step_files / "script.sh")],
            cwd=workspace,
            env={**variables, **{name: str(file) for name, file in files.items()}},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        job.log += f"$ {script}\n{done.stdout}"
        job.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        assert not files["GITHUB_ENV"].read_text() + files["GITHUB_PATH"].read_text(), (
            "not emulated: GITHUB_ENV, GITHUB_PATH"
        )
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        assert all(re.match(r"[\w-]+=", line) for line in lines), f"not emulated: an output of several lines: {lines}"
        return done.returncode, dict(line.split("=", 1) for line in lines)

    def _use(self, action: str, given: Mapping[str, Any], workspace: Path) -> dict[str, str]:
        assert action in EMULATED, f"expected an action of EMULATED, found {action}"
        self.used.add(action)
        return (
            EMULATED[action](self, workspace, **{name.replace("-", "_"): value for name, value in given.items()}) or {}
        )

    def _checkout(self, workspace: Path, *, persist_credentials: bool = False) -> None:
        assert not persist_credentials, "no step needs the token after the checkout"
        shutil.copytree(self.project, workspace, dirs_exist_ok=True, symlinks=True)

    def _python(self, workspace: Path, *, python_version: str) -> dict[str, str]:
        return {"python-version": f"{python_version}.0"}

    def _cache(self, workspace: Path, *, path: str, key: str) -> None:
        # Source: validation of keys in actions/cache.
        assert 0 < len(key) <= 512
        assert "," not in key
        assert not key.endswith("-"), f"a part of the key is empty: {key}"
        self.cache_keys.append(key)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).symlink_to(self.environments)

    def _upload(self, workspace: Path, *, name: str, path: str) -> None:
        assert name not in self.artifacts, f"an artifact of this name is there: {name}"
        assert re.fullmatch(r'[^"/:<>|*?\\\r\n]+', name), f"no name of an artifact: {name}"
        source, target = workspace / path, self.folder / "artifacts" / name
        if not source.exists():
            return  # the action warns, and uploads nothing
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
        else:
            target.mkdir(parents=True)
            shutil.copy(source, target)
        self.artifacts[name] = target

    def _download(self, workspace: Path, *, pattern: str, path: str) -> None:
        for name, source in self.artifacts.items():
            if fnmatch.fnmatchcase(name, pattern):
                shutil.copytree(source, workspace / path / name)


EMULATED: dict[str, Callable[..., dict[str, str] | None]] = {
    "actions/checkout@v6": Actions._checkout,
    "actions/setup-python@v6": Actions._python,
    "actions/cache@v5": Actions._cache,
    "actions/upload-artifact@v6": Actions._upload,
    "actions/download-artifact@v7": Actions._download,
    # As action.yml names them: v5.0.5 and v7.0.0.
    "actions/cache@27d5ce7f107fe9357f9df03efb73ab90386fccae": Actions._cache,
    "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f": Actions._upload,
}


def _worst(jobs: list[Job]) -> str:
    return next((job.result for job in jobs if job.result != "success"), "success")

"""The workflows and forms of this repository in .github: valid, with least permissions, every action by its digest."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from actions import Workflow, scripts
from linters import check, check_schema

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
NAMES = [path.stem for path in WORKFLOWS]
ACTION = ROOT / "action.yml"
PINNED = re.compile(r"uses: ([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$")

each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)


def uses(path: Path) -> list[str]:
    return [line.strip(" -") for line in path.read_text().splitlines() if re.match(r"\s+(- )?uses:", line)]


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("readthedocs", ".readthedocs.yaml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_each_file_follows_its_schema(schema, files):
    words = ["--force-filetype", "yaml"] if files.endswith(".cff") else []
    check_schema(schema, *words, *sorted(ROOT.glob(files)))


def test_no_audit_of_security_finds_anything():
    check("zizmor", "--offline", "--quiet", "--no-config", GITHUB, ACTION)


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=[*NAMES, "action"])
def test_each_action_is_pinned_by_its_digest(path):
    assert [line for line in uses(path) if not line.startswith("uses: ./ ") and not PINNED.match(line)] == []


def test_an_action_has_one_digest_everywhere():
    found = {pinned.groups() for path in (*WORKFLOWS, ACTION) for line in uses(path) if (pinned := PINNED.match(line))}
    assert len({name for name, _, _ in found}) == len(found)


@each_workflow
def test_shell_is_quoted_and_nothing_is_interpolated(path):
    for script in scripts(path).values():
        assert "${{" not in script
        check("shellcheck", "--shell", "bash", "--enable", "quote-safe-variables", "-", text=script)


@each_workflow
def test_only_the_job_that_publishes_has_more_than_read(path):
    workflow = Workflow.read(path)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    assert "secrets." not in path.read_text()
    assert not {"pull_request_target", "workflow_run"} & {*workflow["on"]}
    for name, job in workflow["jobs"].items():
        if {"write"} & {*job.get("permissions", {}).values()}:
            assert (path.stem, name) == ("publish", "publish")
            assert not [step for step in job["steps"] if "run" in step], "no code runs beside that permission"


@each_workflow
def test_each_session_of_nox_that_is_run_exists(path):
    sessions = {*re.findall(r"(?m)^def (\w+)\(session", (ROOT / "noxfile.py").read_text())}
    for line in " ".join(scripts(path).values()).splitlines():
        if asked := re.search(r"nox --session ([\w ]+?)(?: --|$)", line):
            assert {*asked[1].split()} <= sessions


def test_the_tests_run_on_each_python_and_system_that_is_named():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    matrix = Workflow.read(GITHUB / "workflows" / "tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    pythons = [words.rpartition(" ")[2] for words in classifiers if re.search(r"Python :: 3\.\d+$", words)]
    assert matrix["python"] == pythons
    systems = {"MacOS": "macos-latest", "Linux": "ubuntu-latest"}
    named = {words.rpartition(" ")[2] for words in classifiers if words.startswith("Operating System")}
    assert {*matrix["system"]} == {systems[name] for name in named}


def step(workflow: str, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    script = scripts(GITHUB / "workflows" / f"{workflow}.yml")[name]
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=ROOT,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_tag_that_is_not_the_version_is_not_published():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert step("publish", "Compare the tag with the version", TAG=f"v{version}").returncode == 0
    other = step("publish", "Compare the tag with the version", TAG="v0.1.99")
    assert other.returncode == 1
    assert other.stdout == f"::error::Expected the tag v{version}, the version in pyproject.toml, found v0.1.99.\n"


def test_without_an_index_of_nightlies_no_release_is_taken_for_one():
    ended = step("nightly", "Download", KIND="nightly", PIP_EXTRA_INDEX_URL="")
    assert ended.returncode == 1
    assert ended.stdout.startswith("::error::Expected the address of JAX's index of nightlies")

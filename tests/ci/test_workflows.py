"""Workflows and action.yml follow their schemas, have the least permissions, and quote their shell."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from actions import EMULATED, FOR_THE_ACTION, Workflow, scripts
from expressions import evaluate, filled, wanted
from linters import check, check_schema
from newest import ANY_RELEASE, NEWEST

from tools.release_day import RELEASED

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
CI = ROOT / "docs" / "ci"
OWN = sorted((GITHUB / "workflows").glob("*.yml"))
SHOWN = sorted(CI.glob("github*.yml"))
OF_EXAMPLES = sorted((ROOT / "examples").glob("*/.github/workflows/*.yml"))
ACTION = ROOT / "action.yml"
GITLAB = CI / "gitlab.yml"


def each(*paths: Path) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.relative_to(ROOT).as_posix())


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-workflows", "docs/ci/github*.yml"),
        ("github-workflows", "examples/*/.github/workflows/*.yml"),
        ("github-actions", "action.yml"),
        ("gitlab-ci", "docs/ci/gitlab.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("readthedocs", ".readthedocs.yaml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_each_ci_file_follows_its_schema(schema, files):
    words = ["--force-filetype", "yaml"] if files.endswith(".cff") else []
    check_schema(schema, *words, *sorted(ROOT.glob(files)))


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """The workflow of docs/ci/github.yml, with the jobs of more-jobs.yml added."""
    _, jobs = (CI / "more-jobs.yml").read_text().split("\njobs:\n")
    path = tmp_path / "github.yml"
    path.write_text(f"{(CI / 'github.yml').read_text()}\n{jobs}")
    return path


def test_jobs_with_write_permission_do_not_check_out_the_code(extended):
    check_schema("github-workflows", extended)
    jobs = Workflow.read(extended)["jobs"]
    # A job whose token can write must not have files of the pull request.
    for name in ("comment", "code-scanning"):
        assert not [step for step in jobs[name]["steps"] if step.get("uses", "").startswith("actions/checkout")]


COMMENTS = [
    {"id": 5, "user": {"login": "github-actions[bot]"}, "body": "Coverage: 93 %"},
    {"id": 6, "user": {"login": "somebody"}, "body": "<!-- jaxexport -->\nquoted"},
]
OURS = {"id": 7, "user": {"login": "github-actions[bot]"}, "body": "<!-- jaxexport -->\n# KEPT"}
OTHER = {"id": 8, "user": {"login": "github-actions[bot]"}, "body": "A preview is deployed"}
GH = """#!/bin/bash
case "$*" in
  "api --paginate"*) jq -r "${*: -1}" < comments.json ;;
  *) echo "$*" >> asked; cat comment.md >> asked ;;
esac
"""


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
@pytest.mark.parametrize(
    ("comments", "asked"),
    [
        (COMMENTS, "pr comment 3 --repo me/mine --body-file comment.md"),
        ([*COMMENTS, OURS, OTHER], "api --method PATCH repos/me/mine/issues/comments/7 --field body=@comment.md"),
        ([OURS, {**OURS, "id": 9}], "api --method PATCH repos/me/mine/issues/comments/7 --field body=@comment.md"),
    ],
    ids=["others only", "its own among others", "two of its own"],
)
def test_the_workflow_edits_only_its_own_comment_on_a_pull_request(extended, tmp_path, comments, asked):
    (tmp_path / "comments.json").write_text(json.dumps(comments))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "report.md").write_text("# BROKEN\n")
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "NUMBER": "3", "GITHUB_REPOSITORY": "me/mine"}
    script = scripts(extended)["Comment"]
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path, env=variables, check=True)
    assert (tmp_path / "asked").read_text() == f"{asked}\n<!-- jaxexport -->\n# BROKEN\n"


def test_zizmor_finds_no_problem_in_workflows(extended):
    check("zizmor", "--offline", "--quiet", "--no-config", GITHUB, ACTION)
    config = ROOT / "tests" / "ci" / "zizmor.yml"
    check("zizmor", "--offline", "--quiet", "--config", config, *SHOWN, extended, *OF_EXAMPLES)


def uses(path: Path) -> list[str]:
    return [line.strip(" -") for line in path.read_text().splitlines() if re.match(r"\s+(- )?uses:", line)]


PINNED = re.compile(r"uses: ([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$")


@each(*OWN, ACTION)
def test_each_action_is_pinned_by_its_digest(path):
    assert [line for line in uses(path) if not line.startswith("uses: ./ ") and not PINNED.match(line)] == []


def test_an_action_has_the_same_digest_in_all_workflows():
    found = {pinned.groups() for path in (*OWN, ACTION) for line in uses(path) if (pinned := PINNED.match(line))}
    assert len({name for name, _, _ in found}) == len(found)


@each(*OWN, *SHOWN, ACTION, GITLAB)
def test_ci_scripts_quote_variables_and_contain_no_expressions(path):
    if path == GITLAB:
        jobs = [job for job in Workflow.read(path).values() if isinstance(job, Mapping)]
        every = [
            "\n".join(job[key]) for job in jobs for key in ("before_script", "script", "after_script") if key in job
        ]
    else:
        every = list(scripts(path).values())
    assert every
    for script in every:
        assert "${{" not in script
        check("shellcheck", "--shell", "bash", "--enable", "quote-safe-variables", "-", text=script)


@each(*OWN)
def test_only_the_publishing_job_can_write(path):
    workflow = Workflow.read(path)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    assert "secrets." not in path.read_text()
    assert not {"pull_request_target", "workflow_run"} & {*workflow["on"]}
    for name, job in workflow["jobs"].items():
        if {"write"} & {*job.get("permissions", {}).values()}:
            assert (path.stem, name) == ("publish", "publish")
            assert not [step for step in job["steps"] if "run" in step], "no code runs beside that permission"


@each(*SHOWN)
def test_the_workflows_of_the_docs_can_only_read(path):
    workflow = Workflow.read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert not {"pull_request_target", "workflow_run"} & {*workflow["on"]}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 120


@each(*SHOWN, ACTION)
def test_no_workflow_that_runs_goldens_has_a_secret(path):
    workflow = Workflow.read(path)
    assert "secrets." not in path.read_text()
    assert "github.token" not in path.read_text()
    jobs = workflow["jobs"].values() if "jobs" in workflow else [workflow["runs"]]
    checkouts = [step for job in jobs for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert path == ACTION or checkouts


@each(*OWN)
def test_each_nox_session_that_a_workflow_runs_exists(path):
    sessions = {*re.findall(r"(?m)^def (\w+)\(session", (ROOT / "noxfile.py").read_text())}
    for line in " ".join(scripts(path).values()).splitlines():
        if asked := re.search(r"nox --session ([\w ]+?)(?: --|$)", line):
            assert {*asked[1].split()} <= sessions


def test_tests_run_on_each_declared_python_and_system():
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


def test_a_nightly_run_without_an_index_fails():
    ended = step("nightly", "Download", KIND="nightly", PIP_EXTRA_INDEX_URL="")
    assert ended.returncode == 1
    assert ended.stdout.startswith("::error::Expected the address of JAX's index of nightlies")


def test_a_run_for_a_git_tag_uses_no_cached_environments():
    steps = [step for job in Workflow.read(CI / "github.yml")["jobs"].values() for step in job["steps"]]
    (cache,) = (step for step in steps if step.get("uses", "").startswith("actions/cache"))
    assert wanted(cache["if"], {"github": {"ref_type": "branch"}}, "success") is True
    assert wanted(cache["if"], {"github": {"ref_type": "tag"}}, "success") is False


def test_exactly_the_actions_that_workflows_use_are_emulated():
    assert {
        step["uses"]
        for path in (*SHOWN, ACTION)
        for read in [Workflow.read(path)]
        for job in read.get("jobs", {"": read.get("runs")}).values()
        for step in job["steps"]
        if "uses" in step
    } == {*EMULATED}


CONTEXTS: dict[str, Any] = {
    "inputs": {"candidate": "", "index": "here"},
    "vars": {},
    "steps": {"plan": {"outputs": {"jobs": '{"include": [1]}'}, "outcome": "failure"}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("inputs.index", "here"),
        ("inputs.candidate || 'jaxlib jax'", "jaxlib jax"),
        ("inputs.candidate || vars.JAX_INDEX", ""),
        ("fromJSON(steps.plan.outputs.jobs)", {"include": [1]}),
        ("always() && steps.plan.outcome == 'success'", False),
        ("!cancelled() && steps.plan.outcome != 'success'", True),
        ("steps.plan.outputs.nothing", ""),
        ("'it''s'", "it's"),
    ],
)
def test_expressions_have_the_values_that_github_gives(text, value):
    assert evaluate(text, CONTEXTS) == value
    assert filled(f"${{{{ {text} }}}}", CONTEXTS) == value


@pytest.mark.parametrize(
    "text", ["inputs.candidat", "step.plan", "steps.plan.outcomes", "hashFiles('*')", "a[0]", "'open"]
)
def test_an_unknown_expression_is_an_error_and_not_empty(text):
    with pytest.raises((AssertionError, NameError)):
        evaluate(text, CONTEXTS)


@pytest.mark.parametrize(
    ("condition", "status", "runs"),
    [
        ("", "success", True),
        ("", "failure", False),
        ("always()", "failure", True),
        ("steps.plan.outcome == 'failure'", "failure", False),
        ("always() && steps.plan.outcome == 'failure'", "failure", True),
        ("${{ !cancelled() }}", "failure", True),
    ],
)
def test_an_emulated_step_runs_after_a_failure_only_with_always(condition, status, runs):
    assert wanted(condition, CONTEXTS, status) is runs


def test_each_expression_in_a_string_is_filled_in():
    assert filled({"a": "${{ inputs.index }}/${{ inputs.index }}", "b": 3}, CONTEXTS) == {"a": "here/here", "b": 3}


def test_the_tests_for_the_newest_jax_exist_and_run():
    places = [place.partition("::") for place in (*NEWEST, *ANY_RELEASE)]
    assert [path for path, _, _ in places if not (ROOT / path).exists()] == []
    assert [name for path, _, name in places if name and f"def {name}(" not in (ROOT / path).read_text()] == []
    assert '-m "(matrix or newest) and ' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@each(*OWN, *SHOWN, *OF_EXAMPLES, ACTION, GITLAB, CI / "more-jobs.yml")
def test_no_python_of_a_workflow_imports_from_the_checkout(path):
    starts = re.findall(r"\bpython3?\"? +(?=-)[^\n]*", path.read_text())
    assert [start for start in starts if " -I " not in start] == []
    assert path != ACTION or len(starts) == 4


def folders_made(path: Path) -> set[str]:
    """Return the folders at the top of a checkout that a workflow makes, by the options and keys that name them."""
    named = re.findall(r"(?:--results|--wheels|--dest|\bpaths?:) \[?\"?([\w.-]+)(?=[/\"\]\s])", path.read_text())
    return {name for name in named if "." not in name.lstrip(".")}  # no files


MAKING = {
    CI / "github.yml": {"jaxexport-shard", "jaxexport-shards", "jaxexport-results"},
    CI / "github-prerelease.yml": {"jaxexport-wheels", "jaxexport-results"},
    CI / "github-weekly.yml": {"jaxexport-results"},
    GITLAB: {"jaxexport-shards", "jaxexport-results", ".cache"},
}


@each(*MAKING, *OF_EXAMPLES, ACTION)
def test_no_folder_of_a_workflow_has_the_name_of_a_package(path):
    """setuptools takes such a folder for a package, and refuses to install a project with two packages."""
    assert folders_made(path) == MAKING.get(path, set())
    assert [name for name in folders_made(path) if name.isidentifier()] == []


@pytest.mark.matrix  # uv installs setuptools
@pytest.mark.parametrize(("more", "code"), [(sorted(set().union(*MAKING.values())), 0), (["results"], 1)])
def test_setuptools_finds_the_package_beside_the_folders_of_workflows(tmp_path, more, code):
    for name in ("mymod2", "tests", "tests/golden", "ci", *more):
        (tmp_path / name).mkdir()
    (tmp_path / "mymod2" / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mymod2"\nversion = "1"\n')
    program = "import setuptools; setuptools.setup(script_args=['--quiet', 'egg_info'])"
    uv = Path(sys.executable).with_name("uv")
    words = [uv, "run", "--quiet", "--no-project", "--with", "setuptools", "python", "-c", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Multiple top-level packages" in done.stderr) == (code, bool(code)), done.stderr
    tops = tmp_path / "mymod2.egg-info" / "top_level.txt"
    assert code or tops.read_text() == "mymod2\n"


@pytest.mark.skipif(RELEASED, reason="the pages name the published action, and copy nothing")
@each(ROOT / "docs" / "how-to" / "run-in-ci.md", ROOT / "docs" / "tutorial" / "5-gate.md")
def test_a_page_names_the_files_the_action_needs_and_their_size(path):
    text = path.read_text(encoding="utf-8")
    assert f"archive HEAD \\\n    {' '.join(FOR_THE_ACTION)} | tar -x -C .pytest-jaxexport\n" in text
    files = [path for name in FOR_THE_ACTION for path in [ROOT / name, *(ROOT / name).rglob("*")] if path.is_file()]
    sizes = [path.stat().st_size for path in files if path.suffix != ".pyc"]
    size = re.search(r"what the action needs\s.*?, about (\d+) files, ([\d.]+) MB", text, re.DOTALL)
    assert size
    assert (len(sizes), sum(sizes) / 1e6) == pytest.approx((int(size[1]), float(size[2])), rel=0.04)

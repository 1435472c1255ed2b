"""The workflows of docs/ci and action.yml: valid for GitHub and GitLab, with least permissions and quoted shell."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from actions import EMULATED, Workflow, scripts
from expressions import evaluate, filled, wanted
from linters import check, check_schema

ROOT = Path(__file__).parents[2]
CI = ROOT / "docs" / "ci"
WORKFLOWS = sorted(CI.glob("github*.yml"))
ACTION = ROOT / "action.yml"
GITLAB = CI / "gitlab.yml"


@pytest.mark.parametrize(
    ("schema", "files"),
    [("github-workflows", WORKFLOWS), ("github-actions", [ACTION]), ("gitlab-ci", [GITLAB])],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_follows_the_schema_of_its_system(schema, files):
    assert files
    check_schema(schema, *files)


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """The gate with the jobs that can be added to it."""
    _, jobs = (CI / "more-jobs.yml").read_text().split("\njobs:\n")
    path = tmp_path / "github.yml"
    path.write_text(f"{(CI / 'github.yml').read_text()}\n{jobs}")
    return path


def test_the_gate_with_a_comment_and_code_scanning_follows_its_schema(extended):
    check_schema("github-workflows", extended)
    jobs = Workflow.read(extended)["jobs"]
    # With a token that can write, no file of the pull request is on the machine.
    for name in ("comment", "code-scanning"):
        assert not [step for step in jobs[name]["steps"] if step.get("uses", "").startswith("actions/checkout")]


COMMENTS = [
    {"id": 5, "user": {"login": "github-actions[bot]"}, "body": "Coverage: 93 %"},
    {"id": 6, "user": {"login": "somebody"}, "body": "<!-- jaxexport -->\nquoted"},
]
OWN = {"id": 7, "user": {"login": "github-actions[bot]"}, "body": "<!-- jaxexport -->\n# KEPT"}
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
        ([*COMMENTS, OWN, OTHER], "api --method PATCH repos/me/mine/issues/comments/7 --field body=@comment.md"),
        ([OWN, {**OWN, "id": 9}], "api --method PATCH repos/me/mine/issues/comments/7 --field body=@comment.md"),
    ],
    ids=["others only", "its own among others", "two of its own"],
)
def test_a_comment_is_changed_only_where_it_is_our_own(extended, tmp_path, comments, asked):
    (tmp_path / "comments.json").write_text(json.dumps(comments))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "report.md").write_text("# BROKEN\n")
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "NUMBER": "3", "GITHUB_REPOSITORY": "me/mine"}
    script = scripts(extended)["Comment"]
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path, env=variables, check=True)
    assert (tmp_path / "asked").read_text() == f"{asked}\n<!-- jaxexport -->\n# BROKEN\n"


def test_no_audit_of_security_finds_anything(extended):
    config = ROOT / "tests" / "ci" / "zizmor.yml"
    check("zizmor", "--offline", "--quiet", "--config", config, *WORKFLOWS, extended, ACTION)


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION, GITLAB], ids=lambda path: path.name)
def test_the_shell_of_each_step_is_quoted_as_it_should(path):
    if path == GITLAB:
        jobs = [job for job in Workflow.read(path).values() if isinstance(job, Mapping)]
        every = [
            "\n".join(job[key]) for job in jobs for key in ("before_script", "script", "after_script") if key in job
        ]
    else:
        every = list(scripts(path).values())
    assert every
    for script in every:
        check("shellcheck", "--shell", "bash", "--enable", "quote-safe-variables", "-", text=script)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_only_reads_when_it_runs_code_of_strangers(path):
    workflow = Workflow.read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert not {"pull_request_target", "workflow_run"} & {*workflow["on"]}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 120


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_no_secret_and_no_token_is_within_reach_of_a_golden(path):
    workflow = Workflow.read(path)
    assert "secrets." not in path.read_text()
    assert "github.token" not in path.read_text()
    jobs = workflow["jobs"].values() if "jobs" in workflow else [workflow["runs"]]
    checkouts = [step for job in jobs for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert path == ACTION or checkouts


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_nothing_is_interpolated_into_shell(path):
    assert [name for name, script in scripts(path).items() if "${{" in script] == []


def test_a_tag_is_judged_in_environments_that_no_branch_cached():
    steps = [step for job in Workflow.read(CI / "github.yml")["jobs"].values() for step in job["steps"]]
    (cache,) = (step for step in steps if step.get("uses", "").startswith("actions/cache"))
    assert wanted(cache["if"], {"github": {"ref_type": "branch"}}, "success") is True
    assert wanted(cache["if"], {"github": {"ref_type": "tag"}}, "success") is False


def test_these_actions_are_used_and_emulated():
    assert {
        step["uses"]
        for path in (*WORKFLOWS, ACTION)
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
def test_expressions_mean_what_they_mean_on_github(text, value):
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
def test_a_step_runs_after_a_failure_only_where_it_says_so(condition, status, runs):
    assert wanted(condition, CONTEXTS, status) is runs


def test_several_expressions_in_one_text_are_filled_in_each():
    assert filled({"a": "${{ inputs.index }}/${{ inputs.index }}", "b": 3}, CONTEXTS) == {"a": "here/here", "b": 3}
